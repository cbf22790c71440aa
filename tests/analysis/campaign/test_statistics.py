"""Statistics over problems, against values worked out by hand or by published tables."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.analysis.campaign.statistics import (
    geometric_interval,
    geometric_mean,
    sign_test,
    wilson_interval,
)
from cutegen_nb.analysis.figures.bootstrap import widening


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one():
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([]) is None


def test_one_problem_says_nothing_of_how_problems_differ():
    assert geometric_interval([]) is None
    assert geometric_interval([2.0]) is None
    assert geometric_interval([2.0, 2.0]) == (pytest.approx(2.0), pytest.approx(2.0))


@settings(max_examples=20)
@given(st.lists(st.floats(0.05, 20.0), min_size=2, max_size=8))
def test_an_interval_holds_its_mean_and_is_the_same_each_time(ratios):
    low, high = geometric_interval(ratios)
    assert low <= geometric_mean(ratios) * (1 + 1e-9)
    assert high >= geometric_mean(ratios) * (1 - 1e-9)
    assert geometric_interval(ratios) == (low, high)


def test_more_problems_make_a_narrower_interval():
    widths = [high / low for many in (1, 4, 16) for low, high in [geometric_interval([0.5, 2.0] * many)]]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("successes", "trials", "expected"),
    [
        (0, 10, (0.0, 0.2775)),
        (10, 10, (0.7225, 1.0)),
        (5, 10, (0.2366, 0.7634)),
        (81, 263, (0.2553, 0.3662)),  # Newcombe 1998, table I
    ],
)
def test_the_interval_of_a_share_is_wilsons(successes, trials, expected):
    assert wilson_interval(successes, trials) == pytest.approx(expected, abs=1e-4)
    assert wilson_interval(0, 0) is None


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [(0, 0, None), (1, 0, 1.0), (5, 0, 0.0625), (8, 2, 0.109375), (2, 8, 0.109375), (3, 3, 1.0)],
)
def test_the_sign_test_is_two_sided_and_exact(wins, losses, p):
    assert sign_test(wins, losses) == (None if p is None else pytest.approx(p))


def test_few_blocks_widen_an_interval_by_students_quantile():
    # t(0.975; 10) = 2.228 and z = 1.960 of any table; n = 11.
    assert widening(11) == pytest.approx(2.228 / 1.960 * (11 / 10) ** 0.5, rel=1e-3)
    assert widening(10_000) == pytest.approx(1.0, abs=1e-3)
    assert widening(1) == float("inf")

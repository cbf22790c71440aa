"""Two estimates of one problem: estimated faster, estimated slower, or cannot tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.interval import ratio_deviation
from cutegen_nb.analysis.estimate.launch_terms import DRAM, LATENCY
from cutegen_nb.analysis.estimate.ratio import compare_estimates
from cutegen_nb.core.estimate import Estimate, Term
from cutegen_nb.core.search.comparison import Relation


def told(ms: float, *terms: tuple[str, float], width: float = 1.2, note: str = "") -> Estimate:
    """An estimate of `ms` with terms of these seconds, by default of DRAM alone."""
    made = tuple(Term(name=name, seconds=seconds) for name, seconds in terms) or (
        Term(name=DRAM, seconds=ms / 1e3),
    )
    return Estimate(
        target="NVIDIA H200", seconds=ms / 1e3, seconds_low=ms / 1e3 / width, seconds_high=ms / 1e3 * width,
        bound=made[0].name, terms=made, note=note,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("best", "candidate", "relation"),
    [
        (told(2), told(1), Relation.ESTIMATED_FASTER),
        (told(1), told(2), Relation.ESTIMATED_SLOWER),
        (told(1), told(1), Relation.CANNOT_TELL),
        # Bound by one term their errors cancel, and 10 % are told; by two terms they do not.
        (told(1.1), told(1), Relation.ESTIMATED_FASTER),
        (told(1.1), told(1, (LATENCY, 1e-3)), Relation.CANNOT_TELL),
        # Below what a kernel differs from itself nothing is told, however sure the model is.
        (told(1.009, width=1.0), told(1, width=1.0), Relation.CANNOT_TELL),
        (told(1, width=1.0), told(1.009, width=1.0), Relation.CANNOT_TELL),
        (told(1.02, width=1.0), told(1, width=1.0), Relation.ESTIMATED_FASTER),
        (told(2, width=40.0), told(1, width=40.0), Relation.CANNOT_TELL),
    ],
)
def test_the_interval_of_the_ratio_decides(best, candidate, relation):
    assert compare_estimates(best, candidate)[0] is relation


def test_the_sentence_holds_ratio_interval_target_times_and_bound():
    _, said = compare_estimates(told(2), told(1))
    assert said.startswith("estimated 2.00× the speed of the best before it, ")
    assert said.endswith("on NVIDIA H200: 2.00 ms → 1.00 ms, bound by DRAM.")
    _, said = compare_estimates(told(2), told(1, (LATENCY, 1e-3)))
    assert "bound by DRAM → latency of loads" in said
    assert compare_estimates(told(1), told(1))[1].endswith("; the interval holds 1.")


def test_a_restriction_of_both_is_told_once():
    _, said = compare_estimates(told(2, note="No registers."), told(1, note="No registers."))
    assert said.count("No registers.") == 1
    _, said = compare_estimates(told(2, note="One."), told(1, note="Two."))
    assert said.endswith("One. Two.")


def test_kernels_far_apart_or_bound_otherwise_are_less_alike():
    near, far = ratio_deviation(told(1), told(1.1)), ratio_deviation(told(1), told(100))
    assert near < far
    assert near < ratio_deviation(told(1), told(1.1, (LATENCY, 1e-3)))
    assert ratio_deviation(told(1), told(2)) == ratio_deviation(told(2), told(1))
    assert ratio_deviation(told(1, width=1.0), replace(told(1, width=1.0), bound="")) == 0


def test_the_ends_of_a_wide_interval_are_written_out():
    _, said = compare_estimates(told(200), told(1, (LATENCY, 1e-3)))
    assert "e+" not in said

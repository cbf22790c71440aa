"""Error norms, chunk by chunk: what is counted where values are infinite, NaN or zero."""

from __future__ import annotations

import math

import pytest
import torch

from cutegen_nb.evaluator.numerics import distance
from cutegen_nb.evaluator.numerics.distance import measure, root_mean_square

INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True, params=[2, 1 << 24], ids=["in chunks", "at once"])
def _chunks(request, monkeypatch):
    monkeypatch.setattr(distance, "_CHUNK_ELEMENTS", request.param)


def test_norms_are_those_of_the_definition():
    want, got = torch.tensor([3.0, -4.0, 0.0, 1.0]), torch.tensor([3.0, -4.5, 0.25, 1.0])
    found = measure(got, want, element=0.05)
    rms = math.sqrt((9 + 16 + 0 + 1) / 4)
    assert found.largest == 0.5
    assert found.largest_scaled == pytest.approx(max(0.5 / (4 + rms), 0.25 / rms))
    assert found.relative_l2 == pytest.approx(math.sqrt(0.25 + 0.0625) / math.sqrt(26))
    assert (found.bad_count, found.first_bad) == (2, 1)
    assert measure(got, want, element=0.05, to_first_bad=True).first_bad == 1
    assert root_mean_square(want) == pytest.approx(rms)


@pytest.mark.parametrize(
    ("got", "want", "plain", "bad"),
    [
        ([INF, 1.0], [INF, 1.0], None, 0),
        ([-INF, 1.0], [INF, 1.0], None, 1),
        ([1.0, 1.0], [INF, 1.0], None, 1),
        ([INF, 1.0], [1.0, 1.0], None, 1),
        ([NAN, 1.0], [NAN, 1.0], None, 0),
        ([NAN, 1.0], [1.0, 1.0], None, 1),
        ([INF, 1.0], [1e39, 1.0], [INF, 1.0], 0),  # where the reference overflows its own dtype
        ([NAN, 1.0], [1e39, 1.0], [INF, 1.0], 1),
    ],
)
def test_infinities_and_nan_are_right_where_they_are_expected(got, want, plain, bad):
    tensors = [
        None if item is None else torch.tensor(item, dtype=torch.float64) for item in (got, want, plain)
    ]
    found = measure(*tensors, element=1e-5)
    assert found.bad_count == bad
    if not bad:
        assert (found.largest, found.relative_l2) == (0.0, 0.0)


def test_a_wrong_infinity_is_an_infinite_error():
    found = measure(torch.tensor([INF, 1.0]), torch.tensor([2.0, 1.0]), element=1e-5)
    assert found.largest == found.largest_scaled == INF


def test_beside_zeros_alone_any_error_is_infinite_and_none_is_zero():
    zeros = torch.zeros(4)
    assert measure(zeros, zeros, element=1e-5).relative_l2 == 0.0
    found = measure(torch.tensor([0.0, 0.0, 1e-20, 0.0]), zeros, element=1e-5)
    assert (found.relative_l2, found.bad_count, found.first_bad) == (INF, 1, 2)


def test_complex_elements_count_as_two():
    want = torch.tensor([3.0 + 4.0j, 1.0 + 0.0j])
    assert root_mean_square(want) == pytest.approx(math.sqrt((9 + 16 + 1) / 4))
    found = measure(want + 1.0j, want, element=1e-5)
    assert (found.bad_count, found.first_bad) == (2, 1)


def test_infinite_elements_have_no_part_in_the_root_mean_square():
    assert root_mean_square(torch.tensor([INF, 3.0, -NAN, 4.0])) == pytest.approx(math.sqrt(12.5))
    assert root_mean_square(torch.tensor([INF])) == root_mean_square(torch.empty(0)) == 0.0

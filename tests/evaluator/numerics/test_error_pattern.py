"""Wrong elements are described by the pattern they have in common."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.wrong_values import WrongKind
from cutegen_nb.evaluator.numerics import (
    error_pattern as patterns,
)
from cutegen_nb.evaluator.numerics import (
    tolerance as correctness,
)
from cutegen_nb.evaluator.numerics.poison import poison


def _compare(candidate, reference, oracle=None, inputs=(), reduction_length=1.0):
    oracle = reference.double() if oracle is None else oracle
    gate = correctness.find_tolerance(reference, oracle, reduction_length)
    return correctness.compare(0, candidate, reference, oracle, gate, inputs)


@pytest.fixture
def values():
    generator = torch.Generator().manual_seed(7)
    return torch.randn(64, 48, generator=generator)


def _spoil(values, kind):
    return {
        "zeros": lambda: torch.zeros_like(values),
        "constant": lambda: torch.full_like(values, values.mean().item()),
        "factor": lambda: values * 2,
        "offset": lambda: values + 1,
        "transposed": lambda: values.t().contiguous().view(values.shape),
        "shifted": lambda: values.flatten().roll(1).view(values.shape),
        "negated": lambda: -values,
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("zeros", "all zeros"),
        ("constant", "every element is"),
        ("factor", "2 times the expected"),
        ("offset", "off by +1"),
        ("transposed", "transposed"),
        ("shifted", "shifted by +1"),
        ("negated", "-1 times"),
    ],
)
def test_a_wrong_output_is_described_by_what_its_elements_have_in_common(values, kind, words):
    result = _compare(_spoil(values, kind), values)
    assert not result.matches
    assert words in result.pattern


def test_a_copy_of_an_input_is_named(values):
    given = values.clone()
    assert "equals input 0" in _compare(given, values.relu(), inputs=(given,)).pattern


def test_unwritten_elements_at_the_end_are_named_with_their_number(values):
    flat = torch.empty(values.numel())
    poison(flat)
    flat[:-48] = values.flatten()[:-48]
    result = _compare(flat.view(values.shape), values)
    assert "48 elements were never written, at the end" in result.pattern


def test_wrong_columns_are_named_by_their_dimension(values):
    spoiled = values.clone()
    spoiled[:, 40:] += 3
    assert "dimension 1 are wrong throughout, from 40 on" in _compare(spoiled, values).pattern


def _wrong(found, expected, **given):
    wrong = _compare(found, expected, **given).wrong
    assert wrong is not None
    return wrong


@pytest.fixture
def large():
    torch.manual_seed(5)
    return torch.randn(256, 192)


def test_each_kind_of_wrong_values_is_an_object_with_its_figures(values):
    assert (_wrong(values * 2, values).kind, _wrong(values * 2, values).factor) == (WrongKind.FACTOR, 2.0)
    assert _wrong(values + 1, values).offset == pytest.approx(1.0, abs=1e-5)
    assert _wrong(_spoil(values, "shifted"), values).step == 1
    assert _wrong(_spoil(values, "transposed"), values).kind is WrongKind.TRANSPOSED
    assert _wrong(torch.zeros_like(values), values).kind is WrongKind.ZEROS
    assert _compare(values.clone(), values).wrong is None
    assert all(_wrong(_spoil(values, kind), values).hint for kind in ("zeros", "factor", "offset"))


def test_whole_tiles_are_told_from_single_threads(large):
    spoiled = large.clone()
    spoiled[64:128, 0:64] += 3
    spoiled[128:192, 64:128] += torch.rand(64, 64) + 1
    wrong = _wrong(spoiled, large)
    assert (wrong.kind, wrong.tile_shape) == (WrongKind.TILES, (64, 64))
    assert (wrong.bad_tiles, wrong.tile_count, wrong.bad_count) == (2, 12, 2 * 64 * 64)
    assert {one.tile for one in wrong.tiles} == {(1, 0), (2, 1)}
    assert {one.bad_fraction for one in wrong.tiles} == {1.0}


def test_no_race_is_named_where_no_element_is_right(large):
    wrong = _wrong(large * large.roll(7, 0) + 50, large)
    assert wrong.sentence == "every element is wrong"
    assert "operation left out" in wrong.hint
    assert "race" not in wrong.hint


def test_no_race_is_named_where_few_elements_are_right_by_chance(large):
    spoiled = large * large.roll(7, 0) + 50
    right = torch.rand(large.shape, generator=torch.Generator().manual_seed(1)) < 0.03
    wrong = _wrong(torch.where(right, large, spoiled), large)
    assert wrong.bad_count == (~right).sum()
    assert wrong.sentence == f"almost every element is wrong: {wrong.bad_count} of {large.numel()}"
    assert "operation left out" in wrong.hint
    assert "race" not in wrong.hint


def test_a_share_of_each_tile_is_given_where_no_tile_is_wrong_throughout(large):
    spoiled = large.clone()
    spoiled[torch.rand(large.shape, generator=torch.Generator().manual_seed(1)) < 0.1] += 5
    wrong = _wrong(spoiled, large)
    assert wrong.kind is WrongKind.SCATTERED
    assert "barrier" in wrong.hint
    assert (wrong.bad_tiles, wrong.tile_count) == (12, 12)
    assert all(0.05 < one.bad_fraction < 0.2 for one in wrong.tiles)


def test_a_tail_a_step_and_nans_are_counted(large):
    flat = large.flatten()
    tail = flat.clone()
    tail[-37:] += 4
    assert (_wrong(tail, flat).kind, _wrong(tail, flat).bad_count) == (WrongKind.TAIL, 37)
    step = flat.clone()
    step[3::4] += torch.rand(step[3::4].shape) + 2
    assert (_wrong(step, flat).kind, _wrong(step, flat).step) == (WrongKind.STRIDE, 4)
    some = flat.clone()
    some[100:164] = float("nan")
    assert (_wrong(some, flat).kind, _wrong(some, flat).nan_count) == (WrongKind.NAN, 64)


def test_unwritten_memory_is_counted_and_placed_by_tiles(large):
    tensor = torch.empty_like(large)
    poison(tensor)
    tensor[:, :128] = large[:, :128]
    wrong = _wrong(tensor, large)
    assert (wrong.kind, wrong.unwritten_count) == (WrongKind.UNWRITTEN, 256 * 64)
    assert {one.tile[1] for one in wrong.tiles} == {2 if wrong.tile_shape[0] == 64 else 1}


def test_of_a_large_output_the_end_that_is_wrong_is_described(monkeypatch):
    monkeypatch.setattr(patterns, "_LARGEST_EXAMINED", 1 << 10)
    expected = torch.randn(1 << 12, generator=torch.Generator().manual_seed(2))
    spoiled = expected.clone()
    spoiled[-37:] += 4
    assert (_wrong(spoiled, expected).kind, _wrong(spoiled, expected).bad_count) == (WrongKind.TAIL, 37)


def test_values_that_are_nearly_right_everywhere_point_at_precision(large):
    wrong = _wrong((large.double() * (1 + 1e-3 * torch.rand_like(large))).float(), large)
    assert wrong.kind is WrongKind.SMALL
    assert "precision" in wrong.hint


def test_a_few_huge_elements_are_not_called_a_transposition():
    want = torch.rand(40, 60)
    want[3, 5] = 1e30
    got = want.clone()
    got[3, 5] = 2980.0
    described = patterns.describe(got, want, 1e-5, float(want.double().square().mean().sqrt()), ())
    assert "transposed" not in described.sentence
    assert "one element is wrong" in described.sentence

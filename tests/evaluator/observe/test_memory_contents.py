"""Memory that a candidate knows gets other contents, in any layout, and its version counter does not tell."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.observe.memory_contents import change, elements_independent, put, write_over

LAYOUTS = {
    "dense": lambda item: item,
    "transposed": lambda item: item.t(),
    "sliced": lambda item: torch.cat([item, item], 1)[:, ::2],
    "expanded": lambda item: item[:1].expand(6, 8),
    "windows": lambda item: item.reshape(-1).unfold(0, 8, 4),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_new_contents_come_into_the_same_memory(layout):
    old, new = (LAYOUTS[layout](torch.randn(6, 8)) for _ in range(2))
    place, version = old.data_ptr(), old._version
    put(new, old)
    assert torch.equal(old, new)
    assert (old.data_ptr(), old._version) == (place, version)


@pytest.mark.parametrize("layout", ["dense", "transposed", "sliced", "expanded"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.bool])
def test_an_output_that_was_written_over_holds_nothing_of_itself(layout, dtype):
    output = LAYOUTS[layout](torch.zeros(6, 8, dtype=dtype))
    write_over(output)
    assert bool((output != 0).all()), output


def test_a_few_elements_are_changed_where_that_breaks_nothing():
    free, ordered = torch.randn(6, 8), torch.arange(48.0)
    before = free.clone()
    said = change([free, ordered, 3], [torch.randn(6, 8), torch.arange(48.0) + 100, 4], few=True)
    assert said == "a few elements changed in the same memory"
    assert 1 <= int((free != before).sum()) <= 8
    assert torch.equal(ordered, torch.arange(48.0))


@pytest.mark.parametrize(
    ("given", "fresh"),
    [
        (torch.arange(48.0), torch.arange(48.0) + 100),
        (torch.randn(8, 6).t(), torch.randn(8, 6).t()),
    ],
    ids=["in order", "transposed"],
)
def test_all_contents_are_changed_where_a_few_would_break_the_structure_or_cannot_be_reached(given, fresh):
    assert change([given], [fresh], few=True) == "new contents in the same memory"
    assert torch.equal(given, fresh)


def test_values_in_an_order_or_a_symmetry_hang_together():
    square = torch.randn(5, 5)
    assert elements_independent(square)
    assert not elements_independent(square + square.t())
    assert not elements_independent(torch.arange(9.0))
    assert not elements_independent(3)

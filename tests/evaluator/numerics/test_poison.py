"""Memory that no kernel wrote shows, in every type and for every layout."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.numerics import (
    poison as poisoning,
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_poison_is_seen_in_every_floating_dtype_and_is_nan(dtype):
    tensor = torch.empty(9, dtype=dtype)
    poisoning.poison(tensor)
    assert bool(tensor.isnan().all())
    assert bool(poisoning.poisoned(tensor).all())
    assert not bool(poisoning.poisoned(torch.full((9,), float("nan"), dtype=dtype)).any())


def test_memory_that_is_not_contiguous_is_poisoned_as_well():
    for tensor in (
        torch.zeros(8, 6).t(),
        torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    ):
        poisoning.poison(tensor)
        assert bool(tensor.isnan().all())
    expanded = torch.zeros(4, 1).expand(4, 5)
    poisoning.poison(expanded)
    assert not bool(expanded.isnan().any())

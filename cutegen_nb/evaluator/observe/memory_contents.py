"""Overwriting memory that a candidate knows: inputs get new contents, results are erased."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.evaluator.numerics.poison import poison
from cutegen_nb.evaluator.problem.input_variants import is_sorted, may_vary

_FEW = 8
"""Elements of a tensor that `change` draws to be changed, where it does not change all."""


def put(new: torch.Tensor, old: torch.Tensor) -> None:
    """Copy `new` into the memory of `old`, whose elements may share memory; its version counter stays."""
    where = once(old)
    target, source = old.data[where], new[where]
    if not target.is_contiguous() and target.numel() and target.stride() == source.stride():
        # Overlapping windows (`unfold`), too: copy the whole extent, 1 + Σ (nᵢ - 1) · strideᵢ elements.
        extent = 1 + sum((n - 1) * step for n, step in zip(target.shape, target.stride(), strict=True))
        target, source = target.as_strided((extent,), (1,)), source.as_strided((extent,), (1,))
    target.copy_(source)


def once(item: torch.Tensor) -> tuple[slice, ...]:
    """Index that leaves one element of each dimension of stride 0, as `expand` makes them."""
    steps = zip(item.shape, item.stride(), strict=True)
    return tuple(slice(0, 1) if size > 1 and step == 0 else slice(None) for size, step in steps)


def write_over(output: torch.Tensor) -> None:
    """Overwrite every element of an output. Elements of an expanded tensor are written once each."""
    output = output[once(output)]
    if output.is_contiguous():
        poison(output)
    elif output.is_floating_point():
        output.fill_(float("nan"))
    else:
        output.fill_(1)


def write_over_freed(sizes: Sequence[int]) -> None:
    """Allocate blocks of `sizes` bytes on the GPU, which were freed just now, and overwrite them.

    They held a baseline's outputs, the right answer to the inputs that the candidate is called with next.
    """
    with contextlib.suppress(torch.OutOfMemoryError):  # kept by whoever made it, after all
        held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
        for item in held:
            item.fill_(0xFF)


def change(
    given: Sequence[Any], fresh: Sequence[Any], *, few: bool, loose: Sequence[bool] | None = None
) -> str:
    """Put contents of `fresh` into the memory of `given`; say in words what changed.

    Version counters of the tensors stay as they are, so that a cache keyed by them is not told. With `few`,
    some elements change, in secret places of each tensor without structure, and the rest stays. Structure
    (sorted edges, symmetry, a permutation) would be broken so. Where every tensor has structure, all contents
    change. `loose` says of each whether it has none, where that is known already: `elements_independent`
    waits for the device.
    """
    few = few and all(item.is_contiguous() for item in (*given, *fresh) if isinstance(item, torch.Tensor))
    alone_each = loose if loose is not None else [few and elements_independent(item) for item in given]
    few = few and any(alone_each)
    for old, new, alone in zip(given, fresh, alone_each, strict=True):
        if not isinstance(old, torch.Tensor) or (few and not alone):
            continue
        if few:
            places = [secrets.randbelow(old.numel()) for _ in range(_FEW if old.numel() else 0)]
            old.data.view(-1)[places] = new.view(-1)[places]
        else:
            put(new, old)
    return "a few elements changed in the same memory" if few else "new contents in the same memory"


def elements_independent(item: Any) -> bool:
    """Return whether single elements of an input may change: free values in no order and no symmetry."""
    if not may_vary(item) or is_sorted(item):
        return False
    square = item.dim() > 1 and item.shape[-1] == item.shape[-2]
    return not square or not torch.equal(item, item.transpose(-1, -2))

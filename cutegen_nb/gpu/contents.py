"""Contents of memory that a candidate knows, put there anew: inputs are changed, results written over."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.gpu.checks.variants import is_free, is_sorted
from cutegen_nb.gpu.patterns import poison

_FEW = 8
"""Elements that are changed where not all are."""


def put(new: torch.Tensor, old: torch.Tensor) -> None:
    """Copy `new` into the memory of `old`, past its version counter; elements of one may share memory."""
    where = once(old)
    target, source = old.data[where], new[where]
    if not target.is_contiguous() and target.numel() and target.stride() == source.stride():
        # Windows over the same memory as well: all of it, from the first element's to the last one's.
        extent = 1 + sum((n - 1) * step for n, step in zip(target.shape, target.stride(), strict=True))
        target, source = target.as_strided((extent,), (1,)), source.as_strided((extent,), (1,))
    target.copy_(source)


def once(item: torch.Tensor) -> tuple[slice, ...]:
    """The part of a tensor in which no element lies where another does."""
    steps = zip(item.shape, item.stride(), strict=True)
    return tuple(slice(0, 1) if size > 1 and step == 0 else slice(None) for size, step in steps)


def write_over(output: torch.Tensor) -> None:
    """No element keeps what it held. An expanded tensor's elements are written once each."""
    output = output[once(output)]
    if output.is_contiguous():
        poison(output)
    elif output.is_floating_point():
        output.fill_(float("nan"))
    else:
        output.fill_(1)


def write_over_freed(sizes: Sequence[int]) -> None:
    """Have the allocator hand out blocks of these bytes, freed just now, and let nothing stay in them.

    What a baseline gave is the right answer to the inputs that the candidate is called with next.
    """
    with contextlib.suppress(torch.OutOfMemoryError):  # kept by whoever made it, after all
        held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
        for item in held:
            item.fill_(0xFF)


def change(
    given: Sequence[Any], fresh: Sequence[Any], *, few: bool, loose: Sequence[bool] | None = None
) -> str:
    """Put contents of `fresh` into the memory of `given`, past the version counter; what was done, in words.

    `few` changes some elements in secret places of each tensor that has no structure of its own, which that
    would break (sorted edges, symmetry, a permutation), and leaves the rest; where none is such, it is all.
    `loose` says of each whether it has none, where that is known: looking takes a pause.
    """
    few = few and all(item.is_contiguous() for item in (*given, *fresh) if isinstance(item, torch.Tensor))
    alone_each = loose if loose is not None else [few and is_loose(item) for item in given]
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


def is_loose(item: Any) -> bool:
    """Whether elements of an input may change by themselves: free, in no order, in no symmetry."""
    if not is_free(item) or is_sorted(item):
        return False
    square = item.dim() > 1 and item.shape[-1] == item.shape[-2]
    return not square or not torch.equal(item, item.transpose(-1, -2))

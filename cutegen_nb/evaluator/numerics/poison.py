"""Poison: the bytes that fill output memory before a candidate runs, which show elements never written."""

from __future__ import annotations

import torch

POISON_BYTE = 0x5A
"""Byte that fills integer outputs before a candidate writes them."""
OTHER_BYTE = 0x7B
"""Byte of the second poison, for a call whose result is compared with that of a first one.

A finite number in every floating-point type (61,280 in float16, about 1.3e36 in bfloat16 and float32).
Outputs that depend on the contents of fresh memory differ between the two calls.
"""
_POISON_BITS = {
    torch.float64: (torch.int64, 0x7FF8_5A5A_5A5A_5A5A),
    torch.float32: (torch.int32, 0x7FDA_5A5A),
    torch.float16: (torch.int16, 0x7E5A),
    torch.bfloat16: (torch.int16, 0x7FDA),
}
"""Integer type and bits of the poison, by dtype: a quiet NaN (IEEE 754: exponent all ones, top bit of the
mantissa set) with a payload that no arithmetic makes. Memory that still holds it was never written."""


def poison_bits(dtype: torch.dtype) -> int | None:
    """Return the bits of a poisoned element of `dtype`; None for types without a poison NaN."""
    known = _POISON_BITS.get(dtype)
    return None if known is None else known[1]


def poison(tensor: torch.Tensor, *, other: bool = False) -> None:
    """Fill freshly allocated memory with a value that cannot pass for a result.

    `other` takes the second poison, large numbers in place of NaN: results that depend on fresh memory differ
    between the two. Tensors with gaps in memory are left as they are.
    """
    if tensor.numel() == 0 or not _dense(tensor):
        return
    flat = tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    if other:
        # The only valid bytes of a bool are 0 and 1: False here, True as the first poison.
        flat.view(torch.uint8).fill_(OTHER_BYTE if tensor.dtype is not torch.bool else 0)
    elif tensor.dtype in _POISON_BITS:
        kind, bits = _POISON_BITS[tensor.dtype]
        flat.view(kind).fill_(bits)
    elif tensor.dtype is torch.bool:
        flat.fill_(True)
    else:
        flat.view(torch.uint8).fill_(POISON_BYTE)


def _dense(tensor: torch.Tensor) -> bool:
    """Return whether the elements fill memory without gaps, in any order of dimensions."""
    # Sorted by stride, each stride of a dense tensor is the product of the extents before it.
    wanted = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent != 1 and stride != wanted:
            return False
        wanted *= extent
    return True


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """Mask the elements that still hold the poison; all False for dtypes without a poison NaN."""
    if tensor.dtype not in _POISON_BITS:
        return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    kind, bits = _POISON_BITS[tensor.dtype]
    return tensor.contiguous().view(kind) == bits

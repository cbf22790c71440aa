"""Products that PyTorch has for GPUs only: with scales of blocks, and wider than their operands.

``torch._scaled_mm`` with scales of blocks is computed in float32 here. Elements of 4 bits come two a byte.
Scales are in the order that Blackwell's tensor cores take: tiles of 128 rows and 4 scales along K, in each of
which row r is at ``[r mod 32, r div 32]`` (cuBLAS, "1D Block Scaling Factors Layout").
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from cutegen_nb.simulator.numbers.small_floats import VALUES

_FOUR_BITS = torch.float4_e2m1fn_x2
_SCALES = {torch.float8_e8m0fnu: 32, torch.float8_e4m3fn: 16}
"""Type of the scales → elements of a block."""
_ROWS, _ALONG, _LANES = 128, 4, 32
"""Rows and scales of a tile, and rows that lie beside each other."""
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm")
"""Functions of torch that take ``out_dtype``."""


def with_block_scales(scaled_mm: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``torch._scaled_mm`` so that it multiplies matrices with block scales too."""

    @functools.wraps(scaled_mm)
    def multiply(a: Any, b: Any, scale_a: Any, scale_b: Any, *rest: Any, **options: Any) -> Any:
        if scale_a.dtype not in _SCALES or scale_b.dtype not in _SCALES:
            return scaled_mm(a, b, scale_a, scale_b, *rest, **options)
        left, right = _numbers(a), _numbers(b.t())
        product = _scaled(left, scale_a) @ _scaled(right, scale_b).t()
        bias = rest[0] if rest else options.get("bias")
        total = product if bias is None else product + bias.float()
        return total.to(options.get("out_dtype") or torch.bfloat16)

    return multiply


def _numbers(matrix: torch.Tensor) -> torch.Tensor:
    """Elements as float32, (rows, K)."""
    if matrix.dtype is not _FOUR_BITS:
        return matrix.float()
    octets = matrix.contiguous().view(torch.uint8).long()
    table = torch.from_numpy(VALUES["e2m1"])
    return torch.stack((table[octets & 0xF], table[octets >> 4]), dim=-1).flatten(-2)


def _scaled(matrix: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """Multiply each row's blocks along K by their scales."""
    rows, k = matrix.shape
    tiles = -(-rows // _ROWS)
    flat = scales.flatten().float()
    along = flat.numel() // (tiles * _ROWS)
    parts = flat.view(tiles, along // _ALONG, _LANES, _ROWS // _LANES, _ALONG)
    each = parts.permute(0, 3, 2, 1, 4).reshape(tiles * _ROWS, along)[:rows]
    return matrix * each.repeat_interleave(_SCALES[scales.dtype], dim=1)[:, :k]


def with_out_dtype(product: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a product so that operands are converted to ``out_dtype`` before, where it is given."""

    @functools.wraps(product)
    def multiply(*operands: Any, **options: Any) -> Any:
        placed = [one for one in operands if isinstance(one, torch.dtype)]
        dtype = options.pop("out_dtype", None) or next(iter(placed), None)
        if dtype is None:
            return product(*operands, **options)
        return product(*(one.to(dtype) for one in operands if isinstance(one, torch.Tensor)), **options)

    return multiply

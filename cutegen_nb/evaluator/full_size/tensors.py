"""Virtual tensors: any shape and strides, with zeros or repeated values in place of allocated contents."""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import numpy as np
import torch

from cutegen_nb.evaluator.full_size.mapping import AddressRange, range_at

PATTERN_BYTES = 16 << 20
"""Bytes of contents that a larger tensor repeats, and the size from which a tensor is virtual.

Small enough to be written in milliseconds. Large enough that 65,530 mappings, Linux's default limit for a
process, hold a terabyte.
"""
DRAWN = 1 << 16
"""Elements drawn for contents that repeat: a draw of `PATTERN_BYTES` would take a second."""


def zeros(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of zeros that takes no memory until it is written. Raises MappingFailed."""
    return _tensor(AddressRange(_storage_bytes(shape, strides, dtype)), shape, strides, dtype)


def repeating(
    shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, values: torch.Tensor
) -> torch.Tensor:
    """Return a tensor whose storage holds `values`, flattened, again and again. Raises MappingFailed."""
    reserved = AddressRange(_storage_bytes(shape, strides, dtype))
    _fill(reserved, values.to(dtype))
    return _tensor(reserved, shape, strides, dtype)


def drawn(dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Draw values for a tensor of which none are known: normal floats, integers and flags 0 or 1."""
    if dtype.is_floating_point:
        return torch.randn(DRAWN, generator=generator).to(dtype)
    # As indices, 0 and 1 stay within any dimension of two or more.
    return torch.randint(0, 2, (DRAWN,), generator=generator).to(dtype)


def is_virtual(tensor: torch.Tensor) -> bool:
    """Return whether `tensor` is the whole of a virtual tensor, so that `refill` may replace its contents."""
    reserved = range_at(tensor.untyped_storage().data_ptr())
    if reserved is None or tensor.storage_offset():
        return False
    return _storage_bytes(tensor.shape, tensor.stride(), tensor.dtype) == reserved.size_bytes


def refill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Replace the contents of a virtual tensor by repeated `values`. Raises MappingFailed."""
    reserved = range_at(tensor.untyped_storage().data_ptr())
    if reserved is None:
        raise ValueError("the tensor is not virtual")
    _fill(reserved, values.to(tensor.dtype))


def alike(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    """Return another virtual tensor that repeats the first values of a virtual one. Raises MappingFailed."""
    storage = tensor.untyped_storage()
    count = min(PATTERN_BYTES, storage.nbytes()) // tensor.element_size()
    first = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (count,), (1,))
    return repeating(tensor.shape, strides, tensor.dtype, first)


def tiled(values: torch.Tensor, count: int) -> torch.Tensor:
    """Return a vector of `count` elements: `values`, flattened, again and again."""
    flat = values.flatten()
    return flat.repeat(-(-count // max(flat.numel(), 1)))[:count]


def _fill(reserved: AddressRange, values: torch.Tensor) -> None:
    if not values.numel() or not reserved.size_bytes:
        return
    size = min(PATTERN_BYTES, -(-reserved.size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE)
    # Element sizes are powers of two, so a pattern of whole pages holds whole elements.
    pattern = tiled(values, size // values.element_size()).contiguous()
    reserved.repeat(pattern.view(torch.uint8).numpy())


def _tensor(
    reserved: AddressRange, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    # `set_`, so that the tensor is no view of another one.
    storage = torch.from_numpy(np.asarray(reserved)).untyped_storage()
    return torch.empty(0, dtype=dtype).set_(storage, 0, tuple(shape), tuple(strides))


def _storage_bytes(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> int:
    if 0 in shape:
        return 0
    # The last element lies at sum((extent - 1) * stride); strides may repeat or skip elements.
    elements = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
    return elements * dtype.itemsize

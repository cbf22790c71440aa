"""Memory that a program allocates without a value is filled with one that no arithmetic makes.

An element that a kernel loads while it still holds that value was never written, whoever wrote the others.
Only floating-point elements have such a value: a quiet NaN of unusual bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

_BITS = {
    torch.float64: (torch.int64, 0x7FF8_5A5A_5A5A_5A5A),
    torch.float32: (torch.int32, 0x7FDA_5A5A),
    torch.float16: (torch.int16, 0x7E5A),
    torch.bfloat16: (torch.int16, 0x7FDA),
}
"""Integer type of the same width, and the bits, by dtype."""

ALLOCATING: frozenset[Callable[..., object]] = frozenset(
    {
        torch.empty,
        torch.empty_like,
        torch.empty_strided,
        torch.empty_permuted,
        torch.Tensor.new_empty,
        torch.Tensor.new_empty_strided,
    }
)
"""Functions that give memory without a value."""

_CPU = torch.device("cpu")


def fill(tensor: object, tell: Callable[[torch.Tensor, int], None]) -> None:
    """Fill what an allocating function gave, and ``tell`` with which bits; other dtypes stay as they are.

    To be called with torch's functions not intercepted.
    """
    if not isinstance(tensor, torch.Tensor) or tensor.device != _CPU or tensor.dtype not in _BITS:
        return
    storage = tensor.untyped_storage()
    kind, bits = _BITS[tensor.dtype]
    count = storage.nbytes() // tensor.element_size()
    if count == 0:
        return
    torch.empty(0, dtype=kind).set_(storage, 0, (count,)).fill_(bits)
    tell(tensor, bits)

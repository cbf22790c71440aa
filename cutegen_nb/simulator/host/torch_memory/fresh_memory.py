"""Marker values for uninitialised tensors, so that a kernel's read of an unwritten element is detected.

Memory that a program allocates without a value is filled with a quiet NaN whose bits no arithmetic produces.
An element that still holds these bits when a kernel loads it was never written. Only floating-point dtypes
have such a value.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

_BITS = {
    torch.float64: (torch.int64, 0x7FF8_5A5A_5A5A_5A5A),
    torch.float32: (torch.int32, 0x7FDA_5A5A),
    torch.float16: (torch.int16, 0x7E5A),
    torch.bfloat16: (torch.int16, 0x7FDA),
}
"""Dtype → integer dtype of the same width, and the marker's bits."""

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
"""torch functions that return memory without a value."""

_CPU = torch.device("cpu")


def fill(tensor: object, tell: Callable[[torch.Tensor, int], None]) -> None:
    """Fill a fresh tensor's whole storage with the marker and call ``tell(tensor, bits)``.

    Tensors of other dtypes or on other devices stay as they are. Call it with torch's functions not
    intercepted.
    """
    if not isinstance(tensor, torch.Tensor) or isinstance(tensor, FakeTensor):
        return
    if tensor.device != _CPU or tensor.dtype not in _BITS:
        return
    storage = tensor.untyped_storage()
    kind, bits = _BITS[tensor.dtype]
    count = storage.nbytes() // tensor.element_size()
    if count == 0:
        return
    with _disable_current_modes():  # no step of a CUDA graph
        torch.empty(0, dtype=kind).set_(storage, 0, (count,)).fill_(bits)
    tell(tensor, bits)

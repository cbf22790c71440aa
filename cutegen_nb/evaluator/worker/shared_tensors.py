"""Tensors in GPU memory shared by two processes (CUDA IPC), so that gigabytes need no copy through files.

The owner allocates with the driver, outside PyTorch's allocator, so that a handle opens this buffer and
nothing beside it. The memory lives as long as its owner, whatever becomes of the other process.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.evaluator.worker.tensor_files import DTYPES, Packed

_HANDLE_BYTES = 64
"""CU_IPC_HANDLE_SIZE in cuda.h."""
_LAZY_PEER_ACCESS = 1
"""CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS in cuda.h, the only flag of cuIpcOpenMemHandle."""


class CannotShare(EvaluatorError):
    """Error where the driver shares no memory between these processes; files can carry smaller tensors."""


class _Handle(ctypes.Structure):
    """C structure CUipcMemHandle."""

    _fields_ = (("reserved", ctypes.c_byte * _HANDLE_BYTES),)


class _Bytes:
    """Device memory in the form that PyTorch wraps without a copy, ``__cuda_array_interface__``."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 2,
        }


def share(form: Packed) -> tuple[Packed, torch.Tensor]:
    """Allocate a contiguous tensor of the dtype and shape of `form`; return its record and the tensor.

    The record holds the handle by which another process opens the tensor. Raises CannotShare, and
    torch.OutOfMemoryError where the device is full.
    """
    count = _bytes_of(form)
    driver, address, handle = _driver(), ctypes.c_uint64(0), _Handle()
    torch.cuda.empty_cache()  # the driver cannot allocate from PyTorch's cache of freed memory
    # cuMemAlloc refuses a size of zero.
    failed = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
    if failed:
        message = f"the driver gave no {count} bytes of GPU memory (error {failed})"
        raise torch.OutOfMemoryError(message)
    failed = driver.cuIpcGetMemHandle(ctypes.byref(handle), address)
    if failed:
        raise CannotShare(f"cuIpcGetMemHandle gave error {failed}: this driver shares no memory here")
    packed = {"dtype": form["dtype"], "shape": list(form["shape"]), "handle": bytes(handle.reserved).hex()}
    return packed, _tensor(address.value, count, form)


def opened(packed: Packed) -> torch.Tensor:
    """Open another process's tensor, valid for as long as that process lives. Raises CannotShare."""
    count = _bytes_of(packed)
    address, handle = ctypes.c_uint64(0), _Handle()
    ctypes.memmove(ctypes.byref(handle), bytes.fromhex(packed["handle"]), _HANDLE_BYTES)
    torch.cuda.current_stream().synchronize()  # creates the CUDA context, where there is none yet
    failed = _driver().cuIpcOpenMemHandle_v2(ctypes.byref(address), handle, ctypes.c_uint(_LAZY_PEER_ACCESS))
    if failed:
        raise CannotShare(f"cuIpcOpenMemHandle gave error {failed}: this driver shares no memory here")
    return _tensor(address.value, count, packed)


def _tensor(address: int, count: int, form: Packed) -> torch.Tensor:
    dtype = getattr(torch, form["dtype"])
    if not count:
        return torch.empty(form["shape"], dtype=dtype, device="cuda")
    flat = torch.as_tensor(_Bytes(address, count), device="cuda")
    return flat.view(dtype).view(tuple(form["shape"]))


def _bytes_of(form: Packed) -> int:
    kind, shape = str(form["dtype"]), form["shape"]
    if kind not in DTYPES or not _is_shape(shape):
        raise EvaluatorError(f"a tensor of {kind} and shape {shape} cannot be shared: evaluate again")
    return int(math.prod(shape)) * int(getattr(torch, kind).itemsize)


def _is_shape(shape: Sequence[Any]) -> bool:
    return all(type(extent) is int and extent >= 0 for extent in shape)


def _driver() -> ctypes.CDLL:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise CannotShare(f"the driver's library is not there: {error}") from error

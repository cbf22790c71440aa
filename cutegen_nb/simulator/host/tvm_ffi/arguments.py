"""Python values as arguments of a TVM-FFI function, in the layout of its C ABI (``tvm/ffi/c_api.h``).

The host code that the DSL generates checks every argument itself: type, dtype, shape, strides, alignment,
device. Here values are only laid out, by the same rules as in the package ``apache-tvm-ffi``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from enum import IntEnum
from numbers import Integral, Real
from typing import Any

import torch
from cuda.bindings import driver


class TypeIndex(IntEnum):
    """Kinds of values, ``TVMFFITypeIndex``."""

    NONE = 0
    INT = 1
    BOOL = 2
    FLOAT = 3
    OPAQUE_POINTER = 4
    DL_TENSOR = 7
    RAW_STRING = 8
    ARRAY = 71
    OPAQUE_OBJECT = 74


class _Value(ctypes.Union):
    _fields_ = (("integer", ctypes.c_int64), ("real", ctypes.c_double), ("pointer", ctypes.c_void_p))


class AnyValue(ctypes.Structure):
    """``TVMFFIAny``: a kind and eight bytes."""

    _fields_ = (("kind", ctypes.c_int32), ("padding", ctypes.c_uint32), ("value", _Value))


class _ArrayObject(ctypes.Structure):
    """``TVMFFIObject`` with the cell of an array: a pointer to its values and their number."""

    _fields_ = (
        ("references", ctypes.c_uint64),
        ("kind", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("deleter", ctypes.c_void_p),
        ("values", ctypes.c_void_p),
        ("size", ctypes.c_int64),
    )


class Arguments:
    """Arguments of one call; valid while this object is alive."""

    def __init__(self, values: Sequence[object], shown_as_global: Callable[[object], object]) -> None:
        self._shown_as_global = shown_as_global
        self._kept: list[object] = []
        self.count = len(values)
        """Number of arguments."""
        self.array = self._array(values)
        """The arguments, an array of ``TVMFFIAny``."""

    def _array(self, values: Sequence[object]) -> ctypes.Array[AnyValue]:
        return (AnyValue * max(len(values), 1))(*map(self._value, values))

    def _value(self, value: Any) -> AnyValue:
        if value is None:
            return _made(TypeIndex.NONE, integer=0)
        if hasattr(value, "__tvm_ffi_object__"):
            return self._tensor(value.__tvm_ffi_object__())
        if isinstance(value, driver.CUstream):
            return _made(TypeIndex.OPAQUE_POINTER, pointer=int(value))
        if hasattr(value, "__cuda_stream__"):
            return _made(TypeIndex.OPAQUE_POINTER, pointer=int(value.__cuda_stream__()[1]))
        if isinstance(value, torch.Tensor) or hasattr(value, "__dlpack__"):
            return self._tensor(value)
        if isinstance(value, bool):
            return _made(TypeIndex.BOOL, integer=int(value))
        if isinstance(value, Integral):
            return _made(TypeIndex.INT, integer=int(value))
        if isinstance(value, Real):
            return _made(TypeIndex.FLOAT, real=float(value))
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, tuple | list):
            return self._sequence(value)
        return self._converted(value)

    def _converted(self, value: Any) -> AnyValue:
        """Lay out a value that says itself what it is to TVM-FFI, as the DSL's scalars and pointers do."""
        if isinstance(value, ctypes.c_void_p):
            return _made(TypeIndex.OPAQUE_POINTER, pointer=value.value or 0)
        if hasattr(value, "__tvm_ffi_opaque_ptr__"):
            return _made(TypeIndex.OPAQUE_POINTER, pointer=int(value.__tvm_ffi_opaque_ptr__()))
        if hasattr(value, "__tvm_ffi_int__"):
            return _made(TypeIndex.INT, integer=int(value.__tvm_ffi_int__()))
        if hasattr(value, "__tvm_ffi_float__"):
            return _made(TypeIndex.FLOAT, real=float(value.__tvm_ffi_float__()))
        if hasattr(value, "__tvm_ffi_value__"):
            return self._value(value.__tvm_ffi_value__())
        return _made(TypeIndex.OPAQUE_OBJECT, integer=0)

    def _tensor(self, value: Any) -> AnyValue:
        with torch._C.DisableTorchFunction():
            # A gradient is no reason to refuse here: the C exchange that TVM-FFI uses takes such tensors.
            plain = value.detach() if isinstance(value, torch.Tensor) else value
            capsule = self._shown_as_global(plain).__dlpack__()  # type: ignore[attr-defined]
        self._kept.append(capsule)
        return _made(TypeIndex.DL_TENSOR, pointer=capsule_address(capsule))

    def _string(self, value: str) -> AnyValue:
        kept = ctypes.create_string_buffer(value.encode())
        self._kept.append(kept)
        return _made(TypeIndex.RAW_STRING, pointer=ctypes.addressof(kept))

    def _sequence(self, value: Sequence[object]) -> AnyValue:
        values = self._array(value)
        array = _ArrayObject(1, TypeIndex.ARRAY, 0, None, ctypes.addressof(values), len(value))
        self._kept += (values, array)
        return _made(TypeIndex.ARRAY, pointer=ctypes.addressof(array))


def capsule_address(capsule: object) -> int:
    """Address of the ``DLTensor`` in a DLPack capsule that nothing has consumed yet."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    return int(get_pointer(capsule, b"dltensor"))


def _made(kind: TypeIndex, **value: float) -> AnyValue:
    return AnyValue(kind, 0, _Value(**value))

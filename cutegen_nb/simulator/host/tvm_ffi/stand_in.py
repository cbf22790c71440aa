"""Parts of the package ``apache-tvm-ffi`` that the CuTe DSL uses, for machines where it is not installed.

The DSL imports it under the name ``tvm_ffi`` while it compiles; :func:`importable` makes that possible. A
program that imports the package itself still finds it missing.
"""

from __future__ import annotations

import ctypes
import dataclasses
import keyword
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any, Self

from cutegen_nb.simulator.host.tvm_ffi.arguments import capsule_address

PACKAGE = "tvm_ffi"
"""Name by which the package is imported."""


def is_installed() -> bool:
    """Return whether the package itself is installed; another module of its name does not count."""
    try:
        version("apache-tvm-ffi")
    except PackageNotFoundError:
        return False
    return True


@contextmanager
def importable() -> Iterator[None]:
    """Make the name ``tvm_ffi`` importable inside ``with`` if the package is missing."""
    if is_installed():
        yield
        return
    before = {name: sys.modules[name] for name in _MODULES if name in sys.modules}
    sys.modules.update(_MODULES)
    try:
        yield
    finally:
        for name in _MODULES:
            sys.modules.pop(name, None)
        sys.modules.update(before)


class DataTypeCode(IntEnum):
    """``DLDataTypeCode`` of DLPack."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8E3M4 = 7
    FLOAT8E4M3 = 8
    FLOAT8E4M3B11FNUZ = 9
    FLOAT8E4M3FN = 10
    FLOAT8E4M3FNUZ = 11
    FLOAT8E5M2 = 12
    FLOAT8E5M2FNUZ = 13
    FLOAT8E8M0FNU = 14
    FLOAT6E2M3FN = 15
    FLOAT6E3M2FN = 16
    FLOAT4E2M1FN = 17


class DLDeviceType(IntEnum):
    """Kinds of devices of DLPack."""

    kDLCPU = 1  # noqa: N815 - the package's name
    kDLCUDA = 2  # noqa: N815 - the package's name
    kDLCUDAHost = 3  # noqa: N815 - the package's name


_DTYPE = re.compile(
    r"(?P<kind>bool|bfloat|float|uint|int|handle)(?P<bits>\d*)"
    r"(?:_(?P<form>e\dm\d[a-z]*?(?:11fnuz)?))?(?:x(?P<lanes>\d+))?"
)
_USUAL_BITS = {"bool": 8, "handle": 64}


class dtype(str):  # noqa: N801, SLOT000 - the package's name
    """Data type by its name, such as ``float16``."""

    bits: int
    """Bits of one element."""
    lanes: int
    """Elements of a vector; 1 for a scalar."""
    type_code: int
    """Code of the type in DLPack."""

    def __new__(cls, name: str) -> Self:
        """Read a name; raises ``ValueError`` for one that is no data type."""
        made = super().__new__(cls, name)
        found = _DTYPE.fullmatch(name)
        if found is None:
            raise ValueError(f"unknown dtype {name!r}")
        kind, form = found["kind"], found["form"] or ""
        made.bits = int(found["bits"] or _USUAL_BITS.get(kind, 0))
        made.lanes = int(found["lanes"] or 1)
        made.type_code = int(DataTypeCode[f"FLOAT{made.bits}{form}".upper() if form else kind.upper()])
        return made


class TvmDevice:
    """TvmDevice by type and index."""

    def __init__(self, kind: str, index: int) -> None:
        self.type = kind
        self.index = index

    def dlpack_device_type(self) -> int:
        """Return the device's type in DLPack."""
        return int(DLDeviceType.kDLCPU if self.type == "cpu" else DLDeviceType.kDLCUDA)


def device(kind: str, index: int = 0) -> TvmDevice:
    """Return a device by type and index."""
    return TvmDevice(kind, index)


class Tensor:
    """Tensor that was imported through DLPack."""

    def __init__(self, source: Any) -> None:
        self._source = source
        kind, index = source.__dlpack_device__()
        self.device = TvmDevice("cpu" if kind == DLDeviceType.kDLCPU else "cuda", int(index))
        self.dtype = _dtype_of(capsule_address(self.__dlpack__()))

    def __dlpack__(self, **_: object) -> object:
        return self._source.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device.dlpack_device_type(), self.device.index)


def _dtype_of(address: int) -> dtype:
    """Data type of the ``DLTensor`` at an address."""
    # data, device type and index, number of dimensions: 20 bytes before the data type.
    code, bits, lanes = struct.unpack("BBH", ctypes.string_at(address + 20, 4))
    name = DataTypeCode(code).name.lower()
    if name.startswith("float") and name != "float":
        name = f"{name[:6]}_{name[6:]}"
    elif name not in _USUAL_BITS:
        name = f"{name}{bits}"
    return dtype(f"{name}x{lanes}" if lanes != 1 else name)


class Shape(tuple[int, ...]):
    """Shape as a value of TVM-FFI."""

    __slots__ = ()


class TvmFunction:
    """Base class of compiled functions."""

    def __chandle__(self) -> int:
        return 0

    def __call__(self, *_: object) -> object:
        """Raise an error: compiled functions have a call of their own."""
        raise RuntimeError("Only functions compiled in this process can be called on the simulator.")


def register_error(kind: type[BaseException]) -> type[BaseException]:
    """Return the class as it is."""
    return kind


def make_kwargs_wrapper(  # noqa: PLR0913, PLR0917 - the package's signature
    target_func: Callable[..., Any],
    arg_names: Sequence[str],
    arg_defaults: tuple[object, ...] = (),
    kwonly_names: Sequence[str] | None = None,
    kwonly_defaults: Mapping[str, object] | None = None,
    map_dataclass_to_tuple: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Return a function with these arguments that calls ``target_func`` with all of them by position."""
    defaults = dict(zip(reversed(arg_names), reversed(arg_defaults), strict=False))
    defaults.update(kwonly_defaults or {})
    parts = [*arg_names, *(("*", *kwonly_names) if kwonly_names else ())]
    names = [*arg_names, *(kwonly_names or ())]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"Invalid argument name: {name!r} is not a valid Python identifier")
    listed = ", ".join(f"{part}=_defaults[{part!r}]" if part in defaults else part for part in parts)
    scope: dict[str, Any] = {"_defaults": defaults}
    exec(f"def wrapper({listed}):\n    return [{', '.join(names)}]", scope)  # noqa: S102 - identifiers only
    unpacked = set(map_dataclass_to_tuple or ())

    def call(*args: object, **kwargs: object) -> Any:
        values = zip(names, scope["wrapper"](*args, **kwargs), strict=True)
        return target_func(*(_as_tuple(value) if name in unpacked else value for name, value in values))

    return call


def _as_tuple(value: Any) -> Any:
    """Turn dataclasses into tuples of their fields, also inside tuples and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(_as_tuple(getattr(value, one.name)) for one in dataclasses.fields(value))
    if type(value) in {tuple, list}:
        return type(value)(map(_as_tuple, value))
    return value


def _module(name: str, **members: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(members)
    return made


def _modules() -> dict[str, ModuleType]:
    kwargs_wrapper = _module(f"{PACKAGE}.utils.kwargs_wrapper", make_kwargs_wrapper=make_kwargs_wrapper)
    types = _module(f"{PACKAGE}._dtype", DataTypeCode=DataTypeCode, dtype=dtype)
    tools = _module(f"{PACKAGE}.utils", kwargs_wrapper=kwargs_wrapper, __path__=[])
    members = {
        "dtype": dtype, "device": device, "Device": TvmDevice, "DLDeviceType": DLDeviceType, "Tensor": Tensor,
        "Shape": Shape, "Function": TvmFunction, "register_error": register_error, "from_dlpack": Tensor,
    }  # fmt: skip
    package = _module(PACKAGE, _dtype=types, utils=tools, __path__=[], **members)
    return {one.__name__: one for one in (package, types, tools, kwargs_wrapper)}


_MODULES = _modules()

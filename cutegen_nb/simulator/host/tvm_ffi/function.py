"""Calls of the host function ``__tvm_ffi_NAME`` that the DSL generates for a program compiled for TVM-FFI."""

from __future__ import annotations

import builtins
import ctypes
import functools
from collections.abc import Callable
from typing import Any, Protocol

from cutegen_nb.simulator.host.tvm_ffi.arguments import AnyValue, Arguments
from cutegen_nb.simulator.host.tvm_ffi.callbacks import RaisedError, Symbols

error_kinds: dict[str, Callable[[str], Exception]] = {}
"""Exceptions of the DSL's own for errors of host code, by the kind's name."""


class HostRunner(Protocol):
    """Parts of the simulation that calls of TVM-FFI functions need."""

    @property
    def tvm_ffi(self) -> Symbols:
        """C functions that host code calls, with the error that it reported."""

    def run(self, host_code: Callable[[], object]) -> object:
        """Run host code and then the kernels it launched."""

    def shown_as_global(self, value: object) -> object:
        """Return the object that DLPack import receives in place of ``value``."""


class HostFunction:
    """TVM-FFI function of a compiled program."""

    def __init__(self, caller: HostRunner, compiled: Any) -> None:
        self._caller = caller
        self._engine = compiled.engine
        self._load: Callable[[], object] = compiled._load_cuda_library
        self._is_loaded = not compiled.has_gpu_module
        # The engine gives the address of a wrapper that takes one array: pointers to arguments and result.
        address = compiled.engine.raw_lookup(f"__tvm_ffi_{compiled.function_name}")
        self._function: Callable[..., Any] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)

    def __call__(self, *values: object) -> None:
        """Check the arguments and run the program's launches.

        Raises:
            TypeError, ValueError: an argument is not of the type, shape, strides or alignment compiled for.
            CUDADialectError: a launch was refused.
            SimulatorFault: a kernel did what a GPU does not allow.
        """
        if not self._is_loaded:
            self._load()
            self._is_loaded = True
        arguments = Arguments(values, self._caller.shown_as_global)
        self._caller.run(functools.partial(self._run, arguments))

    def _run(self, arguments: Arguments) -> None:
        status, result = ctypes.c_int32(0), AnyValue()
        parts = (
            ctypes.c_void_p(None),
            ctypes.c_void_p(ctypes.addressof(arguments.array)),
            ctypes.c_int32(arguments.count),
            ctypes.c_void_p(ctypes.addressof(result)),
            status,
        )
        self._function((ctypes.c_void_p * len(parts))(*map(ctypes.addressof, parts)))
        if status.value != 0:
            raise self._exception(self._caller.tvm_ffi.take())

    def _exception(self, error: RaisedError) -> Exception:
        kind = error_kinds.get(error.kind, getattr(builtins, error.kind, RuntimeError))
        return kind(error.message)

"""Patches of the CuTe DSL's TVM-FFI path.

The DSL generates a host function ``__tvm_ffi_NAME`` that checks its arguments and launches. It is looked up
in the simulator's own execution engine and called with arguments laid out by
:mod:`~cutegen_nb.simulator.host.tvm_ffi.arguments`, with or without the package ``apache-tvm-ffi``.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from cutegen_nb.simulator.host import exported_modules
from cutegen_nb.simulator.host.tvm_ffi import stand_in
from cutegen_nb.simulator.host.tvm_ffi.callbacks import CUDA_ERROR
from cutegen_nb.simulator.host.tvm_ffi.function import HostFunction, HostRunner, error_kinds


def install(caller: HostRunner) -> None:
    """Have the DSL accept ``--enable-tvm-ffi`` in this process, and run such functions on the simulator.

    The DSL's modules for it are imported here, once for all forks of this process.
    """
    from cutlass.base_dsl import compiler
    from cutlass.cutlass_dsl import CuTeDSL

    _prepare(caller)

    def enable_tvm_ffi(self: Any) -> bool:
        return bool(self.options[compiler.EnableTVMFFI].value)

    # Read when it is needed: programs set the variable before they import the DSL, which is imported by now.
    settings = type(CuTeDSL._get_dsl().envar)
    settings.enable_tvm_ffi = property(_is_asked_for_by_environment, lambda *_: None)
    compiler.CompileOptions.enable_tvm_ffi = property(enable_tvm_ffi)
    for name in ("compile_and_cache", "_generate_jit_func_args_for_known_types"):
        setattr(CuTeDSL, name, _with_package(getattr(CuTeDSL, name)))


def _is_asked_for_by_environment(_: object) -> bool:
    return os.environ.get("CUTE_DSL_ENABLE_TVM_FFI", "").strip().lower() in {"1", "true", "yes", "on"}


def _with_package(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with stand_in.importable():
            return method(*args, **kwargs)

    return call


def _prepare(caller: HostRunner) -> None:
    with stand_in.importable():
        package = importlib.import_module(stand_in.PACKAGE)
        from cutlass.base_dsl import tvm_ffi_builder
        from cutlass.base_dsl.tvm_ffi_builder import call_provider, spec
        from cutlass.cute import _tvm_ffi_args_spec_converter  # noqa: F401 - to be imported with the package
        from cutlass.cutlass_dsl import tvm_ffi_provider as provider

        for module in (tvm_ffi_builder.tvm_ffi_builder, call_provider, spec):
            module.tvm_ffi = package  # they were imported where the package is missing
    error_kinds[CUDA_ERROR] = provider.CUDADialectError
    provider.TVMFFIJitCompiledFunctionBase._create_tvm_ffi_function = _creating(caller, provider)
    provider.TVMFFIJitCompiledFunction.__call__ = _call
    base = provider.TVMFFIJitCompiledFunctionBase
    base.export_to_c = exported_modules.exporting_for_tvm_ffi(base.export_to_c)


def _creating(caller: HostRunner, provider: Any) -> Callable[[Any], HostFunction | None]:
    def create(self: Any) -> HostFunction | None:
        if self.engine is None:
            return None
        function = HostFunction(caller, self)
        if isinstance(self, provider.TVMFFIJitCompiledFunctionWithKwargs):
            return function
        self.simulated_function = function
        return None  # a handle of the package's own function object would be moved into this one

    return create


def _call(self: Any, *args: Any) -> Any:
    """Call a compiled function with positional arguments; replaces ``TVMFFIJitCompiledFunction.__call__``."""
    if self.execution_args.has_pointer_address_arg_specs:
        args, _ = self.execution_args.convert_python_pointer_args_for_tvm_ffi(args, {})
    return self.simulated_function(*args)

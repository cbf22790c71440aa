"""Patches of the CuTe DSL's internals, which differ between releases; hence the version check.

The process is changed in five places:

- Every compilation produces line info, PTX and machine code; the latter two are read back.
- The execution engine is built without the DSL's CUDA runtime library and calls
  :mod:`~cutegen_nb.simulator.host.runtime` instead.
- A call of a compiled function, or of its ``capi_func``, goes through :meth:`ExecutionEngine.run`.
- CPU tensors enter as global memory.
- Source positions of traced operations are looked up once:
  :mod:`~cutegen_nb.simulator.host.source_positions`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host.tvm_ffi.callbacks import Symbols

PACKAGE = "nvidia-cutlass-dsl"
"""Name of the DSL's distribution on the package index."""
TESTED_VERSION = "4.8.1"
"""Release of the DSL that the tests run with."""
_KNOWN_SERIES = re.compile(r"4\.8\.[1-9]\d*")


class ExecutionEngine(Protocol):
    """Callbacks of the patched DSL; :class:`~cutegen_nb.simulator.host.simulation.Simulation` has them."""

    @property
    def tvm_ffi(self) -> Symbols:
        """C functions of TVM-FFI that host code calls."""

    def compiled(self, text: str) -> None:
        """Keep the PTX of a program that was just compiled."""

    def addresses(self, text: str, cubin: bytes) -> dict[str, int]:
        """Return addresses of the CUDA functions for host code with this PTX and cubin, by symbol name."""

    def run(self, host_code: Callable[[], object]) -> object:
        """Run host code and then the kernels it launched."""

    def shown_as_global(self, value: object) -> object:
        """Return the object that DLPack import receives in place of ``value``."""


def check_version() -> None:
    """Refuse a DSL whose internals are not the ones this module knows.

    Raises:
        ConfigurationError: the package is missing or of another series.
    """
    try:
        found = version(PACKAGE)
    except PackageNotFoundError as error:
        raise ConfigurationError(
            f"{PACKAGE} is not installed; run `pip install {PACKAGE}=={TESTED_VERSION}`."
        ) from error
    if _KNOWN_SERIES.fullmatch(found) is None:
        raise ConfigurationError(
            f"{PACKAGE} {found} is installed, and the simulator's bridge knows 4.8.1 and later 4.8 releases "
            f"(tested with {TESTED_VERSION}); run `pip install {PACKAGE}=={TESTED_VERSION}`."
        )


def install(engine: ExecutionEngine, architecture: str) -> None:
    """Change the DSL of this process so that compiled functions run on the simulator.

    Raises:
        ConfigurationError: the DSL reads another architecture from its environment, which it does once,
            at import, or its internals are not the known ones.
    """
    from cutlass.base_dsl import compiler, jit_executor
    from cutlass.cute import runtime
    from cutlass.cutlass_dsl import CuTeDSL, cuda_jit_executor

    from cutegen_nb.simulator.host import (
        benchmarks,
        exported_modules,
        source_positions,
        triton_stand_in,
    )
    from cutegen_nb.simulator.host.tvm_ffi import patch as tvm_ffi  # imports torch

    chosen = CuTeDSL._get_dsl().envar.arch
    if chosen != architecture:
        raise ConfigurationError(
            f"The DSL was imported for {chosen!r}, not {architecture!r}; set what prepare_environment() "
            "returns before anything imports cutlass."
        )
    artifacts = _Artifacts()
    try:
        _keep_ptx(compiler, jit_executor, artifacts, lambda text, _: engine.compiled(text))
        _build_engines_without_driver(compiler, artifacts, engine)
        _run_through(jit_executor.JitExecutor, engine)
        _run_entry_points(jit_executor.JitCompiledFunction, engine)
        _import_as_global(runtime._Tensor, engine)
        source_positions.install()
    except AttributeError as error:
        raise ConfigurationError(
            f"{PACKAGE} {version(PACKAGE)} lacks an internal part the bridge needs ({error}); "
            f"run `pip install {PACKAGE}=={TESTED_VERSION}`."
        ) from error
    tvm_ffi.install(engine)
    benchmarks.install()
    triton_stand_in.install()
    exported_modules.install(engine, artifacts.outputs, functools.partial(_engine_of, engine))
    # A cached property that asks the driver; candidates compile for themselves, so it is set on the class.
    cuda_jit_executor.CudaDialectJitCompiledFunction.num_devices = 1


def before_compiling(look: Callable[[Any], None]) -> None:
    """Call ``look`` with the MLIR module of every program of this process before it is compiled.

    Nothing else is changed. This patch and that of :func:`after_compiling` are used on a GPU as well.
    """
    from cutlass.base_dsl import compiler

    compile_module = compiler.Compiler.compile

    @functools.wraps(compile_module)
    def look_and_compile(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        look(module)
        return compile_module(self, module, *args, **kwargs)

    compiler.Compiler.compile = look_and_compile


def after_compiling(take: Callable[[str, bytes], None], wanted: Callable[[str], bool]) -> None:
    """Call ``take`` with PTX and machine code of programs of this process once they are compiled.

    ``wanted`` is asked for each program by the compiler's name of its launcher (``cutlass_run_Tensor…``).
    Lines double a compilation's time, so a program that is not wanted is compiled as it would be without us.
    The compiler writes both texts to a private folder.
    """
    from cutlass.base_dsl import compiler, jit_executor

    _keep_ptx(compiler, jit_executor, _Artifacts(), take, wanted)


def type_attribute(module: Any, kind: str, attribute: str) -> str:
    """Text of an attribute of a program's MLIR type ``kind``, given as text; empty where there is none."""
    from cutlass._mlir import ir

    try:
        return str(getattr(ir.Type.parse(kind, context=module.context), attribute))
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return ""


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _Artifacts:
    """PTX and machine code of compiled modules, read back from a private temporary folder."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._outputs: dict[int, tuple[object, str, bytes]] = {}
        self.expected = Path()
        """Path of the PTX file of the next module."""
        self.expected_cubin = Path()
        """Path of the cubin file of the next module."""

    def folder(self) -> Path:
        """Folder of this process inside the temporary folder; it exists while compiling.

        The name holds the process id, so a forked child does not share its parent's folder. The path stays
        the same within a process because the compile options, path included, are part of the JIT cache's key.
        """
        return Path(tempfile.gettempdir()) / f"cutegen-{self._token}-{os.getpid()}"

    def prepare(self) -> None:
        """Create the folder, remove old files, and remove folders of processes killed while compiling."""
        for left in self.folder().parent.glob(f"cutegen-{self._token}-*"):
            if not _is_running(int(left.name.rpartition("-")[2])):
                shutil.rmtree(left, ignore_errors=True)
        self.folder().mkdir(mode=0o700, exist_ok=True)
        self.expected.unlink(missing_ok=True)
        self.expected_cubin.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove this process's folder."""
        shutil.rmtree(self.folder(), ignore_errors=True)

    def remember(self, module: object) -> tuple[str, bytes]:
        """Read, keep and return PTX and cubin, if any, of the module just compiled."""
        text = self.expected.read_text()
        cubin = self.expected_cubin.read_bytes() if self.expected_cubin.is_file() else b""
        self._outputs[id(module)] = (module, text, cubin)  # the module is kept, so its id stays its own
        return text, cubin

    def outputs(self, module: object) -> tuple[str, bytes]:
        """PTX and machine code of a compiled module; empty for a module without kernels."""
        _, text, cubin = self._outputs.get(id(module), (None, "", b""))
        return text, cubin


def _keep_ptx(
    compiler: Any,
    jit_executor: Any,
    artifacts: _Artifacts,
    take: Callable[[str, bytes], None],
    wanted: Callable[[str], bool] = lambda _: True,
) -> None:
    """Make compilations write PTX with line info and a cubin to a private folder; read both back."""
    apply = compiler.CompileOptions.apply_envar_settings
    compile_module = compiler.Compiler.compile
    read_artifacts = jit_executor.JitFunctionArtifacts.__post_init__
    folders: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
    kept = (compiler.GenerateLineInfo, compiler.DumpDir, compiler.KeepPTX, compiler.KeepCUBIN)
    asked_first: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    @functools.wraps(apply)
    def apply_with_ptx(self: Any, envar: Any, function_name: str) -> None:
        options = self.options
        if not wanted(function_name):
            for name, value in zip(kept, asked_first.pop(self, ()), strict=False):
                options[name].value = value
            folders.pop(self, None)
            apply(self, envar, function_name)
            return
        asked_first.setdefault(self, [options[name].value for name in kept])
        options[compiler.GenerateLineInfo].value = True
        asked_folder = options[compiler.DumpDir].value
        if asked_folder == folders.get(
            self, ""
        ):  # cute.compile keeps one set of options for many compilations
            asked_folder = ""
            folders[self] = options[compiler.DumpDir].value = str(artifacts.folder())
        ptx, cubin = options[compiler.KeepPTX], options[compiler.KeepCUBIN]
        asked = [bool(keep.value and asked_folder) for keep in (ptx, cubin)]
        ptx.value = cubin.value = True
        apply(self, envar, function_name)
        # Not into the candidate's folder unless it asked, nor under a name that may exceed 255 bytes.
        private = str(artifacts.folder() / "module")
        architecture = options[compiler.GPUArch].value or envar.arch
        if not asked[0]:
            ptx.dump_path, ptx.full_ptx_path = private, f"{private}.{architecture}.ptx"
        if not asked[1]:
            cubin.dump_path, cubin.full_cubin_path = private, f"{private}.{architecture}.cubin"
        artifacts.expected, artifacts.expected_cubin = Path(ptx.full_ptx_path), Path(cubin.full_cubin_path)

    @functools.wraps(compile_module)
    def compile_and_read(self: Any, module: Any, pipeline: str, *args: Any, **kwargs: Any) -> Any:
        if "dump-ptx-path=" not in pipeline:
            return compile_module(self, module, pipeline, *args, **kwargs)
        artifacts.prepare()
        try:
            result = compile_module(self, module, pipeline, *args, **kwargs)
        except BaseException:
            artifacts.clear()
            raise
        if artifacts.expected.is_file():  # none for a program without kernels
            take(*artifacts.remember(result))
        return result

    @functools.wraps(read_artifacts)
    def read_and_clear(self: Any) -> None:
        read_artifacts(self)
        artifacts.clear()

    compiler.CompileOptions.apply_envar_settings = apply_with_ptx
    compiler.Compiler.compile = compile_and_read
    jit_executor.JitFunctionArtifacts.__post_init__ = read_and_clear


def _build_engines_without_driver(compiler: Any, artifacts: _Artifacts, engine: ExecutionEngine) -> None:
    """Link host code with the simulator's callbacks instead of the DSL's CUDA runtime library."""

    def jit(self: Any, module: Any, opt_level: int = 2, shared_libs: object = ()) -> Any:  # noqa: ARG001
        built = self.execution_engine.ExecutionEngine(module, opt_level=opt_level, shared_libs=())
        for name, address in engine.addresses(*artifacts.outputs(module)).items():
            built.raw_register_runtime(name, ctypes.c_void_p(address))
        return built

    compiler.Compiler.jit = functools.wraps(compiler.Compiler.jit)(jit)


def _engine_of(engine: ExecutionEngine, module: Any, text: str, cubin: bytes) -> Any:
    """Execution engine for a module that was compiled elsewhere, with its PTX and machine code."""
    from cutlass._mlir import execution_engine

    engine.compiled(text)
    built = execution_engine.ExecutionEngine(module, opt_level=2, shared_libs=())
    for name, address in engine.addresses(text, cubin).items():
        built.raw_register_runtime(name, ctypes.c_void_p(address))
    return built


def _run_through(executor: Any, engine: ExecutionEngine) -> None:
    """Route every call of a compiled function through ``engine.run``."""
    run = executor.run_compiled_program

    @functools.wraps(run)
    def run_on_simulator(self: Any, arguments: list[Any]) -> object:
        return engine.run(lambda: run(self, arguments))

    executor.run_compiled_program = run_on_simulator


class _EntryPoint:
    """C function of a compiled program, in place of the ctypes function that ``compiled.capi_func`` is."""

    def __init__(self, function: Any, engine: ExecutionEngine) -> None:
        object.__setattr__(self, "_as_parameter_", function)
        object.__setattr__(self, "_engine", engine)

    def __call__(self, *arguments: Any) -> object:
        """Run the host code and the kernels it launches."""
        return self._engine.run(lambda: self._as_parameter_(*arguments))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._as_parameter_, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._as_parameter_, name, value)  # ``restype``, which the DSL sets


def _run_entry_points(compiled_class: Any, engine: ExecutionEngine) -> None:
    """Route direct calls of ``compiled.capi_func`` through ``engine.run`` too."""
    initialise = compiled_class.__init__

    @functools.wraps(initialise)
    def initialise_with_entry_point(self: Any, *args: Any, **kwargs: Any) -> None:
        initialise(self, *args, **kwargs)
        if self.capi_func is not None:
            self.capi_func = _EntryPoint(self.capi_func, engine)

    compiled_class.__init__ = initialise_with_entry_point


def _import_as_global(tensor_class: Any, engine: ExecutionEngine) -> None:
    """Make DLPack import see CPU tensors as global memory."""
    from cutegen_nb.simulator.host.tvm_ffi.stand_in import importable

    initialise = tensor_class.__init__

    @functools.wraps(initialise)
    def initialise_as_global(self: Any, tensor: object, *args: Any, **kwargs: Any) -> None:
        with importable() if kwargs.get("enable_tvm_ffi") else nullcontext():
            initialise(self, engine.shown_as_global(tensor), *args, **kwargs)

    tensor_class.__init__ = initialise_as_global

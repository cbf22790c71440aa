"""Every touch of the CuTe DSL's internals.

They move between releases, so the version is checked first.  Four things are changed in the process:
line info, PTX and machine code are always produced, and the latter two read back; the execution engine is
built without the DSL's CUDA runtime library and finds :mod:`~cutegen_nb.simulator.bridge_host` instead; a
call of a compiled function goes through :meth:`Engine.run`; and CPU tensors enter as global memory.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from cutegen_nb.core.errors import ConfigurationError

PACKAGE = "nvidia-cutlass-dsl"
TESTED_VERSION = "4.8.1"
_KNOWN_SERIES = re.compile(r"4\.8\.[1-9]\d*")


class Engine(Protocol):
    """What the changed DSL calls."""

    def compiled(self, text: str) -> None:
        """A program was compiled to this PTX."""

    def addresses(self, text: str, cubin: bytes) -> dict[str, int]:
        """Answers to the outside calls of host code whose PTX and machine code are these."""

    def run(self, host_code: Callable[[], object]) -> object:
        """Run host code and then the kernels it launched."""

    def shown_as_global(self, value: object) -> object:
        """What DLPack import gets in place of ``value``."""


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


def install(engine: Engine, architecture: str) -> None:
    """Change the DSL of this process so that compiled functions run on the simulator.

    Raises:
        ConfigurationError: the DSL reads another architecture from its environment, which it does once,
            at import, or its internals are not the known ones.
    """
    from cutlass.base_dsl import compiler, jit_executor
    from cutlass.cute import runtime
    from cutlass.cutlass_dsl import CuTeDSL, cuda_jit_executor

    chosen = CuTeDSL._get_dsl().envar.arch
    if chosen != architecture:
        raise ConfigurationError(
            f"The DSL was imported for {chosen!r}, not {architecture!r}; set what prepare_environment() "
            "returns before anything imports cutlass."
        )
    artifacts = _Artifacts()
    try:
        _keep_ptx(compiler, jit_executor, artifacts, engine)
        _build_engines_without_driver(compiler, artifacts, engine)
        _run_through(jit_executor.JitExecutor, engine)
        _import_as_global(runtime._Tensor, engine)
    except AttributeError as error:
        raise ConfigurationError(
            f"{PACKAGE} {version(PACKAGE)} lacks an internal part the bridge needs ({error}); "
            f"run `pip install {PACKAGE}=={TESTED_VERSION}`."
        ) from error
    _refuse_tvm_ffi()
    # A cached property that asks the driver; candidates compile for themselves, so it is set on the class.
    cuda_jit_executor.CudaDialectJitCompiledFunction.num_devices = 1


def before_compiling(look: Callable[[Any], None]) -> None:
    """Let every program of this process be looked at, as an MLIR module, before it is compiled.

    Nothing else is changed: this is the one part of the bridge that is used on a GPU as well.
    """
    from cutlass.base_dsl import compiler

    compile_module = compiler.Compiler.compile

    @functools.wraps(compile_module)
    def look_and_compile(self: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        look(module)
        return compile_module(self, module, *args, **kwargs)

    compiler.Compiler.compile = look_and_compile


def type_attribute(module: Any, kind: str, attribute: str) -> str:
    """What the compiler says of a type, given by its text, of a program; empty where it says nothing."""
    from cutlass._mlir import ir

    try:
        return str(getattr(ir.Type.parse(kind, context=module.context), attribute))
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return ""


def _refuse_tvm_ffi() -> None:
    """Say in a sentence that calls through TVM-FFI, which load the real CUDA runtime, are not answered."""
    if importlib.util.find_spec("tvm_ffi") is None:
        return
    try:
        from cutlass.cutlass_dsl import tvm_ffi_provider
    except (ImportError, AttributeError):  # a folder of that name, or another version: the DSL says so itself
        return

    from cutegen_nb.simulator.bridge_host import unanswered  # heavy, and doctor reads versions here

    def refuse(_: object) -> None:
        raise unanswered("The program compiled a function with --enable-tvm-ffi")

    tvm_ffi_provider.TVMFFIJitCompiledFunctionBase._create_tvm_ffi_function = refuse


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _Artifacts:
    """Where the compiler writes PTX and machine code on their way to values, and what came of each module."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._outputs: dict[int, tuple[object, str, bytes]] = {}
        self.expected = Path()
        """Where the PTX of the next module will be."""
        self.expected_cubin = Path()
        """Where its machine code will be."""

    def folder(self) -> Path:
        """This process's own folder inside its temporary one; it exists while compiling.

        One per process id: a forked child does not share its template's.  The path stays the same
        within a process because the compile options, path included, are part of the JIT cache's key.
        """
        return Path(tempfile.gettempdir()) / f"cutegen-{self._token}-{os.getpid()}"

    def prepare(self) -> None:
        """Make room for what the compiler is about to write, and tidy up after siblings killed in theirs."""
        for left in self.folder().parent.glob(f"cutegen-{self._token}-*"):
            if not _is_running(int(left.name.rpartition("-")[2])):
                shutil.rmtree(left, ignore_errors=True)
        self.folder().mkdir(mode=0o700, exist_ok=True)
        self.expected.unlink(missing_ok=True)
        self.expected_cubin.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove what this process wrote."""
        shutil.rmtree(self.folder(), ignore_errors=True)

    def remember(self, module: object) -> str:
        """Read the PTX of the module just compiled, and its machine code where there is any."""
        text = self.expected.read_text()
        cubin = self.expected_cubin.read_bytes() if self.expected_cubin.is_file() else b""
        self._outputs[id(module)] = (module, text, cubin)  # the module is kept, so its id stays its own
        return text

    def outputs(self, module: object) -> tuple[str, bytes]:
        """PTX and machine code of a compiled module; empty for one without kernels."""
        _, text, cubin = self._outputs.get(id(module), (None, "", b""))
        return text, cubin


def _keep_ptx(compiler: Any, jit_executor: Any, artifacts: _Artifacts, engine: Engine) -> None:
    """Make every compilation write PTX with line info and machine code to a private place; read them back."""
    apply = compiler.CompileOptions.apply_envar_settings
    compile_module = compiler.Compiler.compile
    read_artifacts = jit_executor.JitFunctionArtifacts.__post_init__
    folders: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    @functools.wraps(apply)
    def apply_with_ptx(self: Any, envar: Any, function_name: str) -> None:
        options = self.options
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
            engine.compiled(artifacts.remember(result))
        return result

    @functools.wraps(read_artifacts)
    def read_and_clear(self: Any) -> None:
        read_artifacts(self)
        artifacts.clear()

    compiler.CompileOptions.apply_envar_settings = apply_with_ptx
    compiler.Compiler.compile = compile_and_read
    jit_executor.JitFunctionArtifacts.__post_init__ = read_and_clear


def _build_engines_without_driver(compiler: Any, artifacts: _Artifacts, engine: Engine) -> None:
    """Give host code our answers instead of the DSL's CUDA runtime library."""

    def jit(self: Any, module: Any, opt_level: int = 2, shared_libs: object = ()) -> Any:  # noqa: ARG001
        built = self.execution_engine.ExecutionEngine(module, opt_level=opt_level, shared_libs=())
        for name, address in engine.addresses(*artifacts.outputs(module)).items():
            built.raw_register_runtime(name, ctypes.c_void_p(address))
        return built

    compiler.Compiler.jit = functools.wraps(compiler.Compiler.jit)(jit)


def _run_through(executor: Any, engine: Engine) -> None:
    """Send every call of a compiled function through the engine."""
    run = executor.run_compiled_program

    @functools.wraps(run)
    def run_on_simulator(self: Any, arguments: list[Any]) -> object:
        return engine.run(lambda: run(self, arguments))

    executor.run_compiled_program = run_on_simulator


def _import_as_global(tensor_class: Any, engine: Engine) -> None:
    """Show CPU tensors to DLPack import as global memory."""
    initialise = tensor_class.__init__

    @functools.wraps(initialise)
    def initialise_as_global(self: Any, tensor: object, *args: Any, **kwargs: Any) -> None:
        initialise(self, engine.shown_as_global(tensor), *args, **kwargs)

    tensor_class.__init__ = initialise_as_global

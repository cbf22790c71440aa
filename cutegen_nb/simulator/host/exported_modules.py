"""Object files that ``export_to_c`` writes, and ``load_module``, which calls functions from them.

An object file holds machine code of the kernels, and the simulator runs PTX. So what the simulator needs is
appended to each file that is exported here: linkers ignore bytes behind an object's last section. A shared
library is answered from the object files beside it whose machine code it holds. Any other file, such as one
from a GPU, cannot be called, which is said in a sentence.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import secrets
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

from cutegen_nb.simulator.host.runtime import UnansweredCall, noted
from cutegen_nb.simulator.host.tvm_ffi.function import HostFunction, HostRunner

_MARK = b"\0cutegen-nb simulator\0"
_functions: dict[str, Any] = {}
"""Functions exported by this process without TVM-FFI, by a key that is stored in their files."""


class Builder(HostRunner, Protocol):
    """Parts of the simulation that build an execution engine."""

    def addresses(self, text: str, cubin: bytes) -> dict[str, int]:
        """Return addresses of the CUDA functions for host code with this PTX and cubin, by symbol name."""


def install(
    builder: Builder,
    outputs: Callable[[object], tuple[str, bytes]],
    build: Callable[[Any, str, bytes], Any],
) -> None:
    """Replace export and loading in the DSL of this process.

    Args:
        builder: runs loaded functions.
        outputs: gives PTX and machine code of a compiled module.
        build: gives an execution engine for a module with this PTX and machine code.
    """
    import cutlass.runtime
    from cutlass.base_dsl.jit_executor import JitCompiledFunction
    from cutlass.cute import runtime
    from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction as Compiled

    JitCompiledFunction.export_to_c = _exporting(JitCompiledFunction.export_to_c)
    Compiled.export_provider.mlirExecutionEngine = SimpleNamespace(dump_object_file_pic=_dump)

    def load_module(file_path: str, *, enable_tvm_ffi: bool = False) -> ExportedModule:
        return ExportedModule(builder, build, str(file_path), with_tvm_ffi=enable_tvm_ffi)

    cutlass.runtime.load_module = runtime.load_module = load_module
    _functions["outputs"] = outputs


def exporting_for_tvm_ffi(export: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``export_to_c`` of functions compiled for TVM-FFI."""

    @functools.wraps(export)
    def export_to_c(
        self: Any, object_file_path: Any, function_name: str | None = None, **settings: Any
    ) -> None:
        export(self, object_file_path, function_name, **settings)
        code = io.BytesIO()
        self.ir_module.operation.write_bytecode(code)
        text, cubin = _functions["outputs"](self.ir_module)
        _append(
            Path(object_file_path),
            {
                "name": function_name,
                "function": self.function_name,
                "has_kernels": self.has_gpu_module,
                "module": base64.b64encode(code.getvalue()).decode(),
                "ptx": text,
                "cubin": base64.b64encode(cubin).decode(),
            },
        )

    return export_to_c


def _exporting(export: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(export)
    def export_to_c(self: Any, file_path: Any, file_name: str, function_prefix: str = "") -> None:
        export(self, file_path, file_name, function_prefix)
        key = secrets.token_hex(8)
        _functions[key] = self
        _, cubin = _functions["outputs"](self.ir_module)
        members = {
            "name": function_prefix or file_name, "key": key, "cubin": base64.b64encode(cubin).decode(),
        }  # fmt: skip
        _append(Path(file_path) / f"{file_name}.o", members)

    return export_to_c


def _dump(module: Any, path: str, *_: object, **__: object) -> None:
    """Write an object file; the DSL's own way links the CUDA runtime, which is not here."""
    from cutlass._mlir._mlir_libs._cutlass_ir import _aot_support

    code = _aot_support.export_module_to_bytes(module, format="o", opt_level=3, enable_pic=True)
    Path(path).write_bytes(code)


def _append(path: Path, members: Mapping[str, object]) -> None:
    if path.suffix not in {".ll", ".bc"}:  # text and bitcode end where they end
        with path.open("ab") as file:
            file.write(_MARK + zlib.compress(json.dumps(members).encode()))


class ExportedModule:
    """Result of ``load_module``: functions of an object file, by the names they were exported under."""

    def __init__(self, builder: Builder, build: Callable[..., Any], path: str, *, with_tvm_ffi: bool) -> None:
        self._builder = builder
        self._build = build
        self._path = path
        self._with_tvm_ffi = with_tvm_ffi
        self._functions = _functions_of(Path(path))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        members = self._functions.get(name, {})
        if not members or self._with_tvm_ffi != ("module" in members):
            how = "with" if self._with_tvm_ffi else "without"
            raise AttributeError(f"{self._path} has no function {name!r} that was exported {how} TVM-FFI")
        found = self._loaded(members) if self._with_tvm_ffi else _functions.get(str(members["key"]))
        if found is None:
            raise _refusal(Path(self._path), "was exported by another process, without TVM-FFI")
        self.__dict__[name] = found
        return found

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def _loaded(self, members: dict[str, Any]) -> HostFunction:
        from cutlass._mlir import ir
        from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction as Compiled

        text, cubin = str(members["ptx"]), base64.b64decode(str(members["cubin"]))
        with ir.Context():
            module = ir.Module.parse(base64.b64decode(str(members["module"])))
            engine = self._build(module, text, cubin)
        compiled = SimpleNamespace(
            engine=engine, function_name=members["function"], has_gpu_module=members["has_kernels"],
            load_from_binary=False, num_devices=1,
        )  # fmt: skip
        compiled._get_cuda_init_and_load = functools.partial(Compiled._get_cuda_init_and_load, compiled)
        compiled._load_cuda_library = functools.partial(Compiled._load_cuda_library, compiled)
        return HostFunction(self._builder, compiled)


def _functions_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the contents that :func:`_append` wrote for each function of a file, by the functions' names."""
    content = path.read_bytes()
    own = _members(content)
    if own is not None:
        return {own["name"]: own}
    beside = (_members(one.read_bytes()) for one in sorted(path.parent.glob("*.o")))
    found = {
        one["name"]: one
        for one in beside
        if one is not None and base64.b64decode(one["cubin"]) in content and one["name"].encode() in content
    }
    if not found:
        raise _refusal(path, "holds no function that was exported on the simulator")
    return found


def _members(content: bytes) -> dict[str, Any] | None:
    _, mark, packed = content.rpartition(_MARK)
    if not mark:
        return None
    try:
        found: dict[str, Any] = json.loads(zlib.decompress(packed))
    except (zlib.error, ValueError):  # cut off, or followed by other bytes
        return None
    return found


def _refusal(path: Path, why: str) -> UnansweredCall:
    return noted(
        UnansweredCall(
            f"The program loaded {path.name}, which {why}. Export the function with `export_to_c` in this "
            "program (remove the file, if a cache keeps it), or load the file on a GPU."
        )
    )

"""C functions that host code compiled for TVM-FFI calls, as ctypes callbacks.

Host code reports an error by one of these calls and returns -1. The error is kept here until
:meth:`Symbols.take` hands it to the caller, who raises it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CUDA_ERROR = "CUDADialectError"
"""Kind of an error that a CUDA call returned, as the DSL registers it."""
_INVALID_CONFIGURATION = 9  # cudaErrorInvalidConfiguration
_INVALID_VALUE = 1  # cudaErrorInvalidValue
_ERRORS = {
    _INVALID_CONFIGURATION: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    _INVALID_VALUE: ("cudaErrorInvalidValue", "invalid argument"),
}

_INT = ctypes.c_int32
_POINTER = ctypes.c_void_p
_LAUNCH_ARGUMENTS = (_POINTER, *[_INT] * 7, ctypes.c_int64, *[_INT] * 10, _POINTER, _POINTER, *[_INT] * 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedError:
    """Error that host code reported."""

    kind: str
    """Name of the exception's class: ``ValueError``, ``CUDADialectError``."""
    message: str
    """Message of the exception."""


@dataclass(slots=True)
class Symbols:
    """Functions of TVM-FFI and of the DSL's runtime for it. One object serves all programs of a process."""

    _raised: RaisedError | None = None
    _callbacks: list[object] = field(default_factory=list)
    _addresses: dict[str, int] = field(default_factory=dict)

    def addresses(self) -> dict[str, int]:
        """Address of each function, by symbol name. They stay valid as long as this object."""
        if not self._addresses:
            self._addresses = {
                "TVMFFIErrorSetRaisedFromCStr": self._kept(self._set, None, _POINTER, _POINTER),
                "TVMFFIErrorSetRaisedFromCStrParts": self._kept(
                    self._set_parts, None, _POINTER, _POINTER, _INT
                ),
                "CuteDSLRT_TVMFFISetRaisedCudaError": self._kept(self._set_cuda, None, _POINTER, _INT),
                "CuteDSLRT_TVMFFISetRaisedCudaLaunchError": self._kept(
                    self._set_launch, None, *_LAUNCH_ARGUMENTS
                ),
                # The environment's stream is the default one: a launch has run when it returns.
                "TVMFFIEnvGetStream": self._kept(lambda *_: 0, _POINTER, _INT, _INT),
                # Programs are loaded before their first call.
                "cuda_dialect_init_library_once": self._kept(lambda *_: 0, _INT, *[_POINTER] * 4),
                # Called when the process ends, where Python runs no more: any C function without effect.
                "cuda_dialect_unload_library_once": _address(ctypes.CDLL(None).getpid),
            }
        return self._addresses

    def take(self) -> RaisedError:
        """Return and forget the error that host code reported."""
        found, self._raised = self._raised, None
        return found or RaisedError(kind="RuntimeError", message="The TVM-FFI function failed.")

    def _kept(self, call: Callable[..., Any], result: type | None, *arguments: type) -> int:
        callback = ctypes.CFUNCTYPE(result, *arguments)(call)
        self._callbacks.append(callback)
        return _address(callback)

    def _set(self, kind: int, message: int) -> None:
        self._raised = RaisedError(kind=_text(kind), message=_text(message))

    def _set_parts(self, kind: int, parts: int, count: int) -> None:
        addresses = (ctypes.c_uint64 * count).from_address(parts)
        self._raised = RaisedError(kind=_text(kind), message="".join(map(_text, addresses)))

    def _set_cuda(self, _: int, code: int) -> None:
        self._raised = RaisedError(kind=CUDA_ERROR, message=f"CUDA Error Code: {code}")

    def _set_launch(self, _: int, *values: int) -> None:
        """Keep the error of ``debug{launch-check}``, with the fields that the DSL's error reads."""
        grid, block, (threads, smem, device, most_threads) = values[:3], values[3:6], values[6:10]
        most_block, most_grid, (plain, opted) = values[10:13], values[13:16], values[16:18]
        violation, file, line, column, end = _text(values[18]), _text(values[19]), *values[20:]
        is_size = "exceeds_max_threads" in violation or "block_dim" in violation or "zero" in violation
        code = _INVALID_CONFIGURATION if is_size or "grid_dim" in violation else _INVALID_VALUE
        name, text = _ERRORS[code]
        fields = {
            "kind": "cuda_launch", "api": "cudaLaunchKernelExC", "error_name": name,
            "error_string": text,
            "grid": _listed(grid), "block": _listed(block), "block_threads": threads,
            "dynamic_smem_bytes": smem, "stream": "0x0", "device": device,
            "max_threads_per_block": most_threads, "max_block_dim": _listed(most_block),
            "max_grid_dim": _listed(most_grid), "max_shared_mem_per_block_bytes": plain,
            "max_shared_mem_per_block_optin_bytes": opted, "violation": violation,
            "source_file": file, "source_line": line, "source_col": column, "source_end_col": end,
        }  # fmt: skip
        said = "\n".join(f"{name}={value}" for name, value in fields.items())
        self._raised = RaisedError(kind=CUDA_ERROR, message=f"CUDA Error Code: {code}\n{said}")


def _listed(values: tuple[int, ...]) -> str:
    return ",".join(map(str, values))


def _text(address: int | None) -> str:
    return ctypes.string_at(address).decode(errors="replace") if address else ""


def _address(function: object) -> int:
    address = ctypes.cast(function, _POINTER).value  # type: ignore[arg-type]
    if address is None:
        raise ValueError(f"ctypes gave no address for {function!r}")
    return address

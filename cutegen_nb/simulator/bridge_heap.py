"""Memory that programs ask ``cuda.bindings`` for: allocated on the host, reachable by kernels, freed by them.

Copies and fills happen at the call, on the host; everything launched before has run by then.  What a GPU
answers with an error (an address that is in no allocation, one that was freed) is answered with that error.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver, runtime

from cutegen_nb.simulator.bridge_device import DeviceFacts
from cutegen_nb.simulator.bridge_storage import Storages

_DONE, _INVALID, _FULL = 0, 1, 2
"""Success, invalid value, out of memory: the same numbers in ``CUresult`` and ``cudaError_t``."""
_TO_HOST = (0, 2)
"""``cudaMemcpyKind``s whose target is host memory."""
_FROM_HOST = (0, 1)
"""``cudaMemcpyKind``s whose source is host memory."""


class Heap:
    """Allocations made through the bindings, each a torch tensor: kernels find it as they find those."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._held: dict[int, torch.Tensor] = {}

    def allocate(self, size_bytes: int) -> tuple[int, int]:
        """Error code and address."""
        with torch._C.DisableTorchFunction():
            try:
                made = torch.empty(size_bytes, dtype=torch.uint8)
            except RuntimeError:
                return _FULL, 0
            self._storages.register(made)
            address = made.data_ptr()
            self._held[address] = made
        return _DONE, address

    def free(self, address: int) -> int:
        """Error code; null is freed as nothing."""
        if address == 0:
            return _DONE
        return _INVALID if self._held.pop(address, None) is None else _DONE

    def copy(self, target: int, source: int, size_bytes: int, *, checked: tuple[int, ...]) -> int:
        """Error code; addresses ``checked`` must lie in memory that kernels can reach."""
        if size_bytes == 0:
            return _DONE
        if 0 in {target, source} or not all(self._storages.holds(one, size_bytes) for one in checked):
            return _INVALID
        ctypes.memmove(target, source, size_bytes)
        return _DONE

    def fill(self, address: int, value: int, width: int, count: int) -> int:
        """Error code; ``count`` elements of ``width`` bytes are set."""
        if address % width or (count and not self._storages.holds(address, width * count)):
            return _INVALID
        pattern = (int(value) % (1 << 8 * width)).to_bytes(width, "little")
        raw: Any = (ctypes.c_ubyte * (width * count)).from_address(address)
        np.frombuffer(raw, f"u{width}")[:] = np.frombuffer(pattern, f"u{width}")
        return _DONE


def driver_answers(heap: Heap, device: DeviceFacts) -> dict[str, Callable[..., Any]]:
    """Replacements for the driver's calls, by name; the asynchronous forms take a stream besides."""
    code = driver.CUresult

    def allocate(size: int, *_: object) -> tuple[Any, Any]:
        error, address = heap.allocate(int(size)) if int(size) else (_INVALID, 0)
        return code(error), driver.CUdeviceptr(address)

    def allocate_host(size: int, *_: object) -> tuple[Any, int]:
        error, address = heap.allocate(int(size)) if int(size) else (_INVALID, 0)
        return code(error), address

    def free(address: object, *_: object) -> tuple[Any]:
        return (code(heap.free(_address(address))),)

    def copy(*, from_host: bool, to_host: bool) -> Callable[..., tuple[Any]]:
        def run(target: object, source: object, size: int, *_: object) -> tuple[Any]:
            to, at = _address(target), _address(source)
            checked = (() if to_host else (to,)) + (() if from_host else (at,))
            return (code(heap.copy(to, at, int(size), checked=checked)),)

        return run

    def fill(width: int) -> Callable[..., tuple[Any]]:
        return lambda address, value, size, *_: (code(heap.fill(_address(address), value, width, int(size))),)

    calls: dict[str, Callable[..., Any]] = {
        "cuMemcpy": copy(from_host=True, to_host=True),
        "cuMemcpyHtoD": copy(from_host=True, to_host=False),
        "cuMemcpyDtoH": copy(from_host=False, to_host=True),
        "cuMemcpyDtoD": copy(from_host=False, to_host=False),
        "cuMemsetD8": fill(1),
        "cuMemsetD16": fill(2),
        "cuMemsetD32": fill(4),
        "cuMemAlloc": allocate,
        "cuMemFree": free,
    }
    return {
        **calls,
        **{f"{name}Async": call for name, call in calls.items()},
        **dict.fromkeys(("cuMemAllocManaged",), allocate),
        **dict.fromkeys(("cuMemAllocHost", "cuMemHostAlloc"), allocate_host),
        "cuMemFreeHost": free,
        "cuMemGetInfo": lambda: (code(_DONE), device.memory_bytes, device.memory_bytes),
    }


def runtime_answers(heap: Heap, device: DeviceFacts) -> dict[str, Callable[..., Any]]:
    """Replacements for the runtime's calls, by name."""
    code = runtime.cudaError_t

    def allocate(size: int, *_: object) -> tuple[Any, int]:
        error, address = heap.allocate(int(size)) if int(size) else (_DONE, 0)
        return code(error), address

    def free(address: object, *_: object) -> tuple[Any]:
        return (code(heap.free(_address(address))),)

    def copy(target: object, source: object, size: int, kind: Any, *_: object) -> tuple[Any]:
        to, at, way = _address(target), _address(source), int(kind)
        default = way == int(runtime.cudaMemcpyKind.cudaMemcpyDefault)
        checked = (() if default or way in _TO_HOST else (to,)) + (
            () if default or way in _FROM_HOST else (at,)
        )
        return (code(heap.copy(to, at, int(size), checked=checked)),)

    def fill(address: object, value: int, size: int, *_: object) -> tuple[Any]:
        return (code(heap.fill(_address(address), value, 1, int(size))),)

    return {
        **dict.fromkeys(
            ("cudaMalloc", "cudaMallocAsync", "cudaMallocManaged", "cudaMallocHost", "cudaHostAlloc"),
            allocate,
        ),
        **dict.fromkeys(("cudaFree", "cudaFreeAsync", "cudaFreeHost"), free),
        **dict.fromkeys(("cudaMemcpy", "cudaMemcpyAsync"), copy),
        **dict.fromkeys(("cudaMemset", "cudaMemsetAsync"), fill),
        "cudaMemGetInfo": lambda: (code(_DONE), device.memory_bytes, device.memory_bytes),
    }


def _address(value: Any) -> int:
    """Address in a number, a handle of the bindings, a NumPy array or another buffer."""
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    if isinstance(value, bytes | bytearray | memoryview | ctypes.Array):
        return int(np.frombuffer(memoryview(value), np.uint8).ctypes.data)
    return int(value or 0)

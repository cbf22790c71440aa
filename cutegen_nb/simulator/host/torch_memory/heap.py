"""Memory calls of ``cuda.bindings`` (allocate, free, memcpy, memset), carried out on host memory.

Copies and fills happen at the call, when every earlier launch has run, or at the replays of a graph. A GPU
returns an error for an address outside every allocation or in a freed one; the same error is returned here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver, runtime

from cutegen_nb.simulator.host.cuda_graphs.capture import StreamCapture
from cutegen_nb.simulator.host.torch_memory.storages import Storages
from cutegen_nb.simulator.state.device import DeviceFacts

_DONE, _INVALID, _FULL = 0, 1, 2
"""Error codes success, invalid value and out of memory, equal in ``CUresult`` and ``cudaError_t``."""
_TO_HOST = (0, 2)
"""Values of ``cudaMemcpyKind`` whose target is host memory: host to host, device to host."""
_FROM_HOST = (0, 1)
"""Values of ``cudaMemcpyKind`` whose source is host memory: host to host, host to device."""


class Heap:
    """Allocations made through the bindings. Each is a torch tensor, which kernels can reach as any other."""

    def __init__(self, storages: Storages, capture: StreamCapture) -> None:
        self._storages = storages
        self._capture = capture
        self._held: dict[int, torch.Tensor] = {}

    def allocate(self, size_bytes: int) -> tuple[int, int]:
        """Allocate bytes; return error code and address."""
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
        """Free an allocation; return an error code. Freeing a null pointer succeeds."""
        if address == 0:
            return _DONE
        return _INVALID if self._held.pop(address, None) is None else _DONE

    def copy(self, target: int, source: int, size_bytes: int, *, checked: tuple[int, ...]) -> int:
        """Copy bytes; return an error code. Addresses in ``checked`` must lie in memory kernels can reach."""
        if size_bytes == 0:
            return _DONE
        if 0 in {target, source} or not all(self._storages.holds(one, size_bytes) for one in checked):
            return _INVALID
        self._do(partial(ctypes.memmove, target, source, size_bytes))
        return _DONE

    def fill(self, address: int, value: int, width: int, count: int) -> int:
        """Set ``count`` elements of ``width`` bytes to ``value``; return an error code."""
        if address % width or (count and not self._storages.holds(address, width * count)):
            return _INVALID
        pattern = (int(value) % (1 << 8 * width)).to_bytes(width, "little")
        raw: Any = (ctypes.c_ubyte * (width * count)).from_address(address)
        target = np.frombuffer(raw, f"u{width}")
        self._do(partial(np.copyto, target, np.frombuffer(pattern, f"u{width}")))
        return _DONE

    def _do(self, work: Callable[[], object]) -> None:
        """Carry out a copy, or make it a step of the graph that is captured."""
        if self._capture.graph is None:
            work()
        else:
            self._capture.graph.steps.append(work)


def driver_answers(heap: Heap, device: DeviceFacts) -> dict[str, Callable[..., Any]]:
    """Return replacements for the driver's memory calls, by name; asynchronous forms also take a stream."""
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
    """Return replacements for the runtime's memory calls, by name."""
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
    """Address given as a number, a handle of the bindings, a NumPy array or another buffer."""
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    if isinstance(value, bytes | bytearray | memoryview | ctypes.Array):
        return int(np.frombuffer(memoryview(value), np.uint8).ctypes.data)
    return int(value or 0)

"""Replacements for ``cuda.bindings.driver`` and ``cuda.bindings.runtime``, which need no libcuda.

Device properties, occupancy, streams, events and memory are answered. Every other function raises a fault
that says that the simulator has no answer for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from cuda.bindings import driver, runtime

from cutegen_nb.simulator.host.cuda_graphs.capture import StreamCapture, binding_answers
from cutegen_nb.simulator.host.runtime import unanswered
from cutegen_nb.simulator.host.torch_memory import heap as bridge_heap
from cutegen_nb.simulator.host.torch_memory.storages import Storages
from cutegen_nb.simulator.host.torch_timing import UnknownTime
from cutegen_nb.simulator.state.device import (
    DEFAULT_SMEM_PER_BLOCK_BYTES,
    MAX_BLOCK_DIM,
    MAX_GRID_DIM,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    RESERVED_SMEM_PER_BLOCK_BYTES,
    WARP_THREADS,
    DeviceFacts,
)

_KEPT = frozenset({"cudaGetErrorName", "cudaGetErrorString"})
"""Functions left as they are: the bindings answer them from a table that needs no driver."""

_EVENT_HANDLES = itertools.count(1)


def install(device: DeviceFacts, storages: Storages, capture: StreamCapture) -> None:
    """Replace every function of both modules in this process; their allocations go into ``storages``."""
    heap = bridge_heap.Heap(storages, capture)
    graphs = binding_answers(capture, driver.CUresult.CUDA_SUCCESS, driver, "cu")
    _replace(driver, {**_driver_answers(device), **bridge_heap.driver_answers(heap, device), **graphs})
    graphs = binding_answers(capture, runtime.cudaError_t.cudaSuccess, runtime, "cuda")
    _replace(runtime, {**_runtime_answers(device), **bridge_heap.runtime_answers(heap, device), **graphs})


def _replace(module: ModuleType, answers: dict[str, Callable[..., Any]]) -> None:
    for name in dir(module):
        value = getattr(module, name)
        if not name.startswith("cu") or isinstance(value, type) or not callable(value) or name in _KEPT:
            continue
        setattr(module, name, answers.get(name) or _refusal(name))


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> None:
        raise unanswered(f"The program called {name}")

    return refuse


def _driver_answers(device: DeviceFacts) -> dict[str, Callable[..., Any]]:
    done = driver.CUresult.CUDA_SUCCESS
    succeed = _always(done)
    context = _always(done, driver.CUcontext(1))
    stream = _always(done, driver.CUstream(0))

    def attribute(number: object, _device: object = 0) -> tuple[object, int]:
        value = device.attribute(int(number))  # type: ignore[call-overload]
        return (driver.CUresult.CUDA_ERROR_INVALID_VALUE, 0) if value is None else (done, value)

    def resident(_function: object, threads: int, smem_bytes: int, *_: object) -> tuple[object, int]:
        return done, device.resident_blocks(int(threads), int(smem_bytes))

    def clusters(_function: object, config: Any) -> tuple[object, int]:
        size = next((max(item.value.clusterDim.x, 1) for item in config.attrs or ()), 1)
        return done, device.sm_count // size

    return {
        **dict.fromkeys(_SUCCEEDING_DRIVER_CALLS, succeed),
        **dict.fromkeys(_CONTEXT_CALLS, context),
        **dict.fromkeys(("cuStreamCreate", "cuStreamCreateWithPriority"), stream),
        "cuDriverGetVersion": _always(done, driver.CUDA_VERSION),
        "cuDeviceGetCount": _always(done, 1),
        "cuDeviceGet": _always(done, driver.CUdevice(0)),
        "cuCtxGetDevice": _always(done, driver.CUdevice(0)),
        "cuDeviceGetName": _always(done, device.name.encode()),
        "cuDeviceTotalMem": _always(done, device.memory_bytes),
        "cuDeviceGetAttribute": attribute,
        "cuEventCreate": lambda _flags=0: (done, driver.CUevent(next(_EVENT_HANDLES))),
        "cuEventElapsedTime": _always(done, UnknownTime()),
        "cuGetErrorName": lambda code: (done, driver.CUresult(code).name.encode()),
        "cuGetErrorString": lambda code: (done, driver.CUresult(code).name.encode()),
        "cuLibraryLoadData": _always(done, driver.CUlibrary(1)),
        "cuLibraryEnumerateKernels": _always(done, [driver.CUkernel(1)]),
        "cuKernelGetFunction": _always(done, driver.CUfunction(1)),
        "cuOccupancyAvailableDynamicSMemPerBlock": _always(
            done, device.smem_per_block_optin_bytes - RESERVED_SMEM_PER_BLOCK_BYTES
        ),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor": resident,
        "cuOccupancyMaxActiveClusters": clusters,
    }


def _runtime_answers(device: DeviceFacts) -> dict[str, Callable[..., Any]]:
    done = runtime.cudaError_t.cudaSuccess
    succeed = _always(done)

    def attribute(number: object, _device: object = 0) -> tuple[object, int]:
        value = device.attribute(int(number))  # type: ignore[call-overload]
        return (runtime.cudaError_t.cudaErrorInvalidValue, 0) if value is None else (done, value)

    return {
        **dict.fromkeys(_SUCCEEDING_RUNTIME_CALLS, succeed),
        "cudaGetDeviceCount": _always(done, 1),
        "cudaGetDevice": _always(done, 0),
        "cudaDriverGetVersion": _always(done, driver.CUDA_VERSION),
        "cudaRuntimeGetVersion": _always(done, driver.CUDA_VERSION),
        "cudaDeviceGetAttribute": attribute,
        "cudaStreamCreate": lambda: (done, runtime.cudaStream_t(0)),
        "cudaStreamCreateWithFlags": lambda _flags=0: (done, runtime.cudaStream_t(0)),
        "cudaEventCreate": lambda: (done, runtime.cudaEvent_t(next(_EVENT_HANDLES))),
        "cudaEventCreateWithFlags": lambda _flags=0: (done, runtime.cudaEvent_t(next(_EVENT_HANDLES))),
        "cudaEventElapsedTime": _always(done, UnknownTime()),
        "cudaGetDeviceProperties": _always(done, _properties(device)),
    }


def _properties(device: DeviceFacts) -> object:
    """Return a ``cudaDeviceProp`` with the known sizes; clock rates and other speeds stay 0."""
    found = runtime.cudaDeviceProp()
    name = device.name.encode()
    found.name = name + bytes(256 - len(name))
    found.major, found.minor = device.capability
    found.totalGlobalMem = device.memory_bytes
    found.multiProcessorCount = device.sm_count
    found.l2CacheSize = device.l2_bytes
    found.warpSize = WARP_THREADS
    found.maxThreadsPerBlock = MAX_THREADS_PER_BLOCK
    found.maxThreadsPerMultiProcessor = device.threads_per_sm
    found.maxBlocksPerMultiProcessor = device.blocks_per_sm
    found.maxThreadsDim, found.maxGridSize = list(MAX_BLOCK_DIM), list(MAX_GRID_DIM)
    found.regsPerBlock = found.regsPerMultiprocessor = REGISTERS_PER_SM
    found.sharedMemPerBlock = DEFAULT_SMEM_PER_BLOCK_BYTES
    found.sharedMemPerBlockOptin = device.smem_per_block_optin_bytes
    found.sharedMemPerMultiprocessor = device.smem_per_sm_bytes
    found.reservedSharedMemPerBlock = RESERVED_SMEM_PER_BLOCK_BYTES
    found.unifiedAddressing = found.concurrentKernels = found.cooperativeLaunch = 1
    return found


def _always(*answer: object) -> Callable[..., tuple[object, ...]]:
    return lambda *_, **__: answer


_CONTEXT_CALLS = ("cuCtxGetCurrent", "cuCtxCreate", "cuCtxPopCurrent", "cuDevicePrimaryCtxRetain")

_SUCCEEDING_DRIVER_CALLS = (
    "cuInit",
    "cuCtxSetCurrent",
    "cuCtxPushCurrent",
    "cuCtxDestroy",
    "cuCtxSynchronize",
    "cuDevicePrimaryCtxRelease",
    "cuStreamDestroy",
    "cuStreamSynchronize",
    "cuStreamQuery",
    "cuStreamWaitEvent",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuEventDestroy",
    "cuFuncSetAttribute",
    "cuLibraryUnload",
)

_SUCCEEDING_RUNTIME_CALLS = (
    "cudaSetDevice",
    "cudaInitDevice",
    "cudaDeviceSynchronize",
    "cudaGetLastError",
    "cudaPeekAtLastError",
    "cudaStreamSynchronize",
    "cudaStreamDestroy",
    "cudaStreamQuery",
    "cudaStreamWaitEvent",
    "cudaEventRecord",
    "cudaEventRecordWithFlags",
    "cudaEventSynchronize",
    "cudaEventQuery",
    "cudaEventDestroy",
    "cudaLibraryUnload",
)

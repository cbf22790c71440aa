"""``torch.cuda`` as programs find it on the simulator."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import torch

from cutegen_nb.simulator.bridge_device import (
    DEFAULT_SMEM_PER_BLOCK_BYTES,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    WARP_THREADS,
    DeviceFacts,
)
from cutegen_nb.simulator.bridge_host import unanswered
from cutegen_nb.simulator.bridge_time import UnknownTime

_EVENT_HANDLES = itertools.count(1 << 20)


class Stream:
    """A stream. Kernels run in the order they are launched, at the launch, so there is one."""

    cuda_stream = 0
    """The default stream's handle."""
    stream_id = 0
    """torch's own number of it."""
    device_index = 0
    """Device of the stream."""

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)
        self._as_parameter_ = ctypes.c_void_p(0)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol by which libraries pass streams: version and handle."""
        return (0, 0)

    def synchronize(self) -> None:
        """Everything launched has run."""

    def wait_stream(self, stream: Stream) -> None:
        """Everything launched has run."""

    def wait_event(self, event: Event) -> None:
        """Everything launched has run."""

    def query(self) -> bool:
        """Everything launched has run."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """An event of this moment."""
        return event or Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return 0


class Event:
    """An event. It has no time: :meth:`elapsed_time` is unknown, whatever lies between."""

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)
        self.cuda_event = next(_EVENT_HANDLES)
        """Its handle."""

    def record(self, stream: Stream | None = None) -> None:
        """Everything launched has run."""

    def wait(self, stream: Stream | None = None) -> None:
        """Everything launched has run."""

    def synchronize(self) -> None:
        """Everything launched has run."""

    def query(self) -> bool:
        """Everything launched has run."""
        return True

    def elapsed_time(self, end_event: Event) -> float:  # noqa: ARG002 - torch's signature
        """Nothing: the simulator has no clock, and nothing may be called a time."""
        return UnknownTime()


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """What ``torch.cuda.get_device_properties`` returns, with torch's field names."""

    name: str
    """Name that says this is no GPU."""
    major: int
    """Compute capability, major."""
    minor: int
    """Compute capability, minor."""
    total_memory: int
    """Bytes of global memory."""
    multi_processor_count: int
    """Streaming multiprocessors."""
    shared_memory_per_block: int
    """Bytes without opting in."""
    shared_memory_per_block_optin: int
    """Bytes with opting in."""
    shared_memory_per_multiprocessor: int
    """Bytes of an SM."""
    regs_per_multiprocessor: int
    """32-bit registers of an SM."""
    max_threads_per_multi_processor: int
    """Resident threads of an SM."""
    max_threads_per_block: int
    """Threads of a CTA."""
    warp_size: int
    """Threads of a warp."""
    L2_cache_size: int
    """Bytes of L2."""
    is_integrated: int = 0
    """A device of its own."""
    is_multi_gpu_board: int = 0
    """One device on its board."""


def _properties(device: DeviceFacts) -> Properties:
    return Properties(
        name=device.name,
        major=device.capability[0],
        minor=device.capability[1],
        total_memory=device.memory_bytes,
        multi_processor_count=device.sm_count,
        shared_memory_per_block=DEFAULT_SMEM_PER_BLOCK_BYTES,
        shared_memory_per_block_optin=device.smem_per_block_optin_bytes,
        shared_memory_per_multiprocessor=device.smem_per_sm_bytes,
        regs_per_multiprocessor=REGISTERS_PER_SM,
        max_threads_per_multi_processor=device.threads_per_sm,
        max_threads_per_block=MAX_THREADS_PER_BLOCK,
        warp_size=WARP_THREADS,
        L2_cache_size=device.l2_bytes,
    )


def cuda_module_answers(device: DeviceFacts) -> dict[str, Any]:
    """Replacements for attributes of ``torch.cuda``, by name."""
    return {
        # A function of its own for each name: torch.compile keeps rules by function and refuses doubles.
        **{name: _always(None) for name in _DOING_NOTHING},
        **{name: _always(0) for name in _ZERO},
        **{name: _always(value=True) for name in _TRUE},
        **{name: _making(nullcontext) for name in _CONTEXTS},
        **{name: _making(Stream) for name in _STREAMS},
        **{name: _refusal(name) for name in _REFUSED},
        **{name: getattr(torch, name) for name in _TENSOR_TYPES},
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "device_count": _always(1),
        "get_device_name": _always(device.name),
        "get_device_capability": _always(device.capability),
        "get_device_properties": _always(_properties(device)),
        "get_arch_list": _always([device.architecture]),
        "is_current_stream_capturing": _always(value=False),
        "can_device_access_peer": _always(value=False),
        "mem_get_info": _always((device.memory_bytes, device.memory_bytes)),
        "memory_stats": lambda *_, **__: {},
        "memory_summary": _always(""),
        "manual_seed": _seed,
        "manual_seed_all": _seed_all,
        "initial_seed": torch.default_generator.initial_seed,
        "seed": torch.default_generator.seed,
        "seed_all": torch.default_generator.seed,
        "get_rng_state": lambda *_, **__: torch.default_generator.get_state(),
        "get_rng_state_all": lambda: [torch.default_generator.get_state()],
        "set_rng_state": lambda state, *_, **__: torch.default_generator.set_state(state),
        "set_rng_state_all": lambda states: torch.default_generator.set_state(states[0]),
        "nvtx": _Annotations(),
    }


class _Annotations:
    """``torch.cuda.nvtx``: marks that no profiler reads."""

    range_push = range_pop = range_start = range_end = mark = staticmethod(lambda *_, **__: 0)
    range = staticmethod(lambda *_, **__: nullcontext())


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


def _seed_all(seed: int) -> None:
    _seed(seed)


def _always(value: object) -> Callable[..., Any]:
    return lambda *_, **__: value


def _making(kind: Callable[[], Any]) -> Callable[..., Any]:
    return lambda *_, **__: kind()


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_: object, **__: object) -> None:
        raise unanswered(f"The program called torch.cuda.{name}")

    return refuse


_DOING_NOTHING = (
    "init",
    "synchronize",
    "set_device",
    "set_stream",
    "empty_cache",
    "ipc_collect",
    "reset_peak_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
)
_ZERO = (
    "current_device",
    "get_sync_debug_mode",
    "memory_allocated",
    "max_memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "memory_cached",
    "max_memory_cached",
)
_TRUE = ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported")
_CONTEXTS = ("device", "device_of", "stream", "StreamContext")
_STREAMS = ("current_stream", "default_stream", "get_stream_from_external")
_REFUSED = (
    "CUDAGraph",
    "graph",
    "make_graphed_callables",
    "graph_pool_handle",
    "caching_allocator_alloc",
    "cudart",
)
_TENSOR_TYPES = (
    "FloatTensor",
    "HalfTensor",
    "BFloat16Tensor",
    "DoubleTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "CharTensor",
    "ByteTensor",
    "BoolTensor",
)

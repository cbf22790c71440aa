"""Replacements for ``torch.cuda``: streams, events, device properties, memory queries, random state."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Self

import torch

from cutegen_nb.simulator.host.runtime import unanswered
from cutegen_nb.simulator.host.torch_timing import UnknownTime
from cutegen_nb.simulator.state.device import (
    DEFAULT_SMEM_PER_BLOCK_BYTES,
    MAX_THREADS_PER_BLOCK,
    REGISTERS_PER_SM,
    WARP_THREADS,
    DeviceFacts,
)

_EVENT_HANDLES = itertools.count(1 << 20)


class Stream:
    """Stand-in for ``torch.cuda.Stream``. A kernel runs at its launch, so all streams are the default one."""

    cuda_stream = 0
    """Handle of the default stream."""
    stream_id = 0
    """Identifier that torch gives the default stream."""
    device_index = 0
    """Index of the stream's device."""

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)
        self._as_parameter_ = ctypes.c_void_p(0)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return protocol version and handle, the pair by which libraries pass streams."""
        return (0, 0)

    def synchronize(self) -> None:
        """Do nothing: every launch has already run."""

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: every launch has already run."""

    def wait_event(self, event: Event) -> None:
        """Do nothing: every launch has already run."""

    def query(self) -> bool:
        """Return True: every launch has already run."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Return ``event``, or a new event."""
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
    """Stand-in for ``torch.cuda.Event``. Events carry no time; see :meth:`elapsed_time`."""

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)
        self.cuda_event = next(_EVENT_HANDLES)
        """Handle of the event."""

    def record(self, stream: Stream | None = None) -> None:
        """Do nothing: every launch has already run."""

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: every launch has already run."""

    def synchronize(self) -> None:
        """Do nothing: every launch has already run."""

    def query(self) -> bool:
        """Return True: every launch has already run."""
        return True

    def elapsed_time(self, end_event: Event) -> float:  # noqa: ARG002 - torch's signature
        """Return an :class:`UnknownTime`, 999999: the simulator has no clock."""
        return UnknownTime()


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Result of ``torch.cuda.get_device_properties``, with torch's field names."""

    name: str
    """Device name; it says that this is the simulator."""
    major: int
    """Major number of the compute capability."""
    minor: int
    """Minor number of the compute capability."""
    total_memory: int
    """Bytes of global memory."""
    multi_processor_count: int
    """Number of streaming multiprocessors."""
    shared_memory_per_block: int
    """Most bytes of shared memory of a CTA without opting in to more."""
    shared_memory_per_block_optin: int
    """Most bytes of shared memory of a CTA after opting in."""
    shared_memory_per_multiprocessor: int
    """Bytes of shared memory of an SM."""
    regs_per_multiprocessor: int
    """32-bit registers of an SM."""
    max_threads_per_multi_processor: int
    """Most resident threads of an SM."""
    max_threads_per_block: int
    """Most threads of a CTA."""
    warp_size: int
    """Threads of a warp."""
    L2_cache_size: int
    """Bytes of the L2 cache."""
    is_integrated: int = 0
    """0: a discrete GPU."""
    is_multi_gpu_board: int = 0
    """0: a board with one GPU."""


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
    """Return replacements for attributes of ``torch.cuda``, by name."""
    return {
        # One function object per name: torch.compile keeps rules by function and refuses duplicates.
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
    """Stand-in for ``torch.cuda.nvtx``: every annotation does nothing."""

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

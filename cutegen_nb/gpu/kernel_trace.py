"""Which kernels a call really launched, how long they ran and what was copied, as the CUDA profiler saw it.

Two equal calls are traced, each followed by a kernel of PyTorch's that only waits: it parts them, and tells
"nothing was launched" from "nothing is recorded on this machine". A candidate may wait in the same way, as
often as it likes: how long our two wait is drawn for each trace.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.gpu.kernel_names import is_a_librarys

_NO_COMPUTING = ("memcpy", "memset", "fillfunctor", "copy_kernel", "catarray", "spin_kernel")
"""Parts of the names of a library's kernels that allocate, fill, move or join: a candidate may use those."""
_MARK = "spin_kernel"
"""Part of the name of the kernel behind ``torch.cuda._sleep``."""
_MARK_CYCLES = 50_000
"""Least that a mark waits; up to three times as long is drawn, 25 to 75 µs on an H200."""
_MS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that the device did."""

    name: str
    """As the profiler gives it."""
    start_ns: int
    """On the profiler's clock."""
    end_ns: int
    """On the same."""
    size_bytes: int
    """What a copy moved; 0 for anything else and where the profiler does not say."""
    stream: int
    """As the profiler counts streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTrace:
    """One call on every stream."""

    names: tuple[str, ...]
    """Kernels that are not a library's, in order."""
    span_ms: float
    """From the start of the first kernel of the call to the end of its last, whatever its stream."""
    own_ms: float
    """Sum of the durations of those kernels."""
    library: tuple[str, ...]
    """Kernels of PyTorch and of libraries in the same call that compute something."""
    library_ms: float
    """Sum of their durations."""
    elsewhere: tuple[str, ...] = ()
    """Those of `names` that ran on another stream than the one that a clock's events are on."""
    down_bytes: int = 0
    """Copied from the device to the host."""
    up_bytes: int = 0
    """Copied from the host to the device."""
    busy_ms: float = 0.0
    """Time in which the device did anything for the call: kernels, a library's too, copies, fills."""


def warm_up() -> None:
    """Have the profiler start once, which takes a second in a new process. A CUDA context has to be there."""
    with _profiler():
        torch.cuda._sleep(_MARK_CYCLES)  # noqa: SLF001 - PyTorch offers no other spinning kernel
        torch.cuda.synchronize()


def trace_calls(call: Callable[[], object]) -> tuple[KernelTrace, KernelTrace] | None:
    """The kernels of `call` and of a second, equal one; None where the profiler records nothing."""
    cycles = _MARK_CYCLES + secrets.randbelow(2 * _MARK_CYCLES)
    stream = torch.cuda.current_stream()
    torch.cuda.synchronize()  # what is still under way is not the call's
    with _profiler() as profile:
        for _ in range(2):
            call()
            torch.cuda.set_stream(stream)
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)  # noqa: SLF001 - as in `warm_up`
            torch.cuda.synchronize()
    parts = parted(_events(profile))
    if parts is None:
        return None
    first, second, stream = parts
    return trace_of(first, stream), trace_of(second, stream)


def parted(events: Sequence[Event]) -> tuple[list[Event], list[Event], int] | None:
    """The events of the first call and of the second, and the stream of the marks after each.

    None where there are no marks. The last wait is ours; of the others the one that took as long as it.
    """
    ordered = sorted(events, key=lambda event: event.start_ns)
    *waits, last = [place for place, event in enumerate(ordered) if _MARK in event.name] or [-1]
    if not waits:
        return None
    long = _took_ns(ordered[last])
    middle = min(waits, key=lambda place: abs(_took_ns(ordered[place]) - long))
    return ordered[:middle], ordered[middle + 1 : last], ordered[last].stream


def _took_ns(event: Event) -> int:
    return event.end_ns - event.start_ns


def trace_of(events: Sequence[Event], stream: int) -> KernelTrace:
    """What one call's events come to, the clock being on `stream`."""
    own = [event for event in events if not is_a_librarys(event.name)]
    library = [
        event for event in events if is_a_librarys(event.name) and not _named(event.name, _NO_COMPUTING)
    ]
    first = min((event.start_ns for event in own), default=0)
    last = max((event.end_ns for event in own), default=0)
    return KernelTrace(
        names=tuple(event.name for event in own),
        span_ms=(last - first) * _MS,
        own_ms=_total_ms(own),
        library=tuple(event.name for event in library),
        library_ms=_total_ms(library),
        elsewhere=tuple(event.name for event in own if event.stream != stream),
        down_bytes=sum(event.size_bytes for event in events if "DtoH" in event.name),
        up_bytes=sum(event.size_bytes for event in events if "HtoD" in event.name),
        busy_ms=_busy_ms(events),
    )


def _busy_ms(events: Sequence[Event]) -> float:
    """Length of the union of their times."""
    busy, until = 0, 0
    for event in sorted(events, key=lambda item: item.start_ns):
        busy += max(0, event.end_ns - max(event.start_ns, until))
        until = max(until, event.end_ns)
    return busy * _MS


def _profiler() -> Any:
    return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True)


def _events(profile: Any) -> list[Event]:
    """The device's events in order, past PyTorch's own summary, which leaves the sizes of copies out."""
    found = sorted(
        (
            (raw.start_ns(), raw.duration_ns(), raw.name(), int(raw.device_resource_id()))
            for raw in profile.profiler.kineto_results.events()
            if raw.device_type() == torch.autograd.DeviceType.CUDA
        ),
    )
    sizes = iter(_sizes(profile) if any(_is_copy(name) for _, _, name, _ in found) else ())
    return [
        Event(
            name=name,
            start_ns=start,
            end_ns=start + length,
            size_bytes=next(sizes, 0) if _is_copy(name) else 0,
            stream=stream,
        )
        for start, length, name, stream in found
    ]


def _is_copy(name: str) -> bool:
    return name.startswith("Memcpy")


def _sizes(profile: Any) -> list[int]:
    """Bytes of each copy in order of time, as only the trace that is written to a file has them."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.profiler.kineto_results.save(file.name)
        written = json.loads(Path(file.name).read_text(encoding="utf-8"))
    return sizes_of(written["traceEvents"])


def sizes_of(written: Sequence[dict[str, Any]]) -> list[int]:
    """Bytes of each copy among the events of a written trace, in order of time."""
    copies = [item for item in written if item.get("ph") == "X" and item.get("cat") == "gpu_memcpy"]
    return [
        int(item.get("args", {}).get("bytes", 0))
        for item in sorted(copies, key=lambda item: float(item["ts"]))
    ]


def _named(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


def _total_ms(events: Sequence[Event]) -> float:
    return sum(_took_ns(event) for event in events) * _MS

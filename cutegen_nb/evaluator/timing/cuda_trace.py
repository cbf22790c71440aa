"""Trace of two equal calls by the CUDA profiler: kernels launched, their durations, bytes copied.

Each call is followed by a marker, a kernel of PyTorch's that only spins. The markers separate the calls, and
tell "nothing was launched" from "the profiler records nothing on this machine". A candidate may launch the
same kernel, so the markers' length is drawn at random for each trace.
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

from cutegen_nb.core.evaluation import WorkShare
from cutegen_nb.core.library import Library, family_of
from cutegen_nb.evaluator.timing.kernel_names import is_library_kernel
from cutegen_nb.evaluator.trial.work_share import shares

_MOVING = ("memcpy", "copy_kernel", "catarray")
"""Parts of the names of a library's kernels that move values, in lower case."""
_NON_COMPUTE_NAMES = (*_MOVING, "memset", "fillfunctor", "spin_kernel")
"""Parts of the names of a library's kernels that move, join, fill or spin, which a candidate may use."""
_MARKER_KERNEL = "spin_kernel"
"""Part of the name of the marker kernel, the one behind ``torch.cuda._sleep``."""
_MARK_CYCLES = 50_000
"""Least length of a marker in cycles; up to three times as many are drawn, 25 to 75 µs on an H200."""
_MS = 1e-6
"""Milliseconds in a nanosecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEvent:
    """One kernel, copy or fill on the device."""

    name: str
    """Name of the kernel or kind of copy, as the profiler gives it."""
    start_ns: int
    """Start on the profiler's clock."""
    end_ns: int
    """End on the same clock."""
    size_bytes: int
    """Bytes copied; 0 for anything but a copy, and where the profiler gives no size."""
    stream: int
    """Number of the stream, as the profiler counts them."""
    allowed: bool = False
    """True if an operator of PyTorch launched it that the problem's policy allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTrace:
    """Device activity of one call, on every stream."""

    names: tuple[str, ...]
    """Names of the kernels that are not a library's, in order of their start."""
    span_ms: float
    """From the start of the first of those kernels to the end of the last, whatever its stream."""
    own_ms: float
    """Sum of the durations of those kernels."""
    library: tuple[str, ...]
    """Names of the kernels of PyTorch and of libraries in the same call that compute something."""
    library_ms: float
    """Sum of their durations."""
    elsewhere: tuple[str, ...] = ()
    """Those of `names` that ran on another stream than the CUDA events of a timed call."""
    down_bytes: int = 0
    """Copied from the device to the host."""
    up_bytes: int = 0
    """Copied from the host to the device."""
    moving_ms: float = 0.0
    """Sum of the durations of a library's kernels and copies on the device that only move values."""
    copying_ms: float = 0.0
    """Sum of the durations of copies between the device and the host."""
    allowed_ms: float = 0.0
    """Sum of the durations of the kernels that the problem's policy leaves to PyTorch; in no other sum but
    `busy_ms`."""
    busy_ms: float = 0.0
    """Union of all times in which the device worked for the call: kernels, a library's too, copies, fills."""


def warm_up() -> None:
    """Start the profiler once, which takes a second in a new process. Needs a CUDA context."""
    with _profiler():
        torch.cuda._sleep(_MARK_CYCLES)  # noqa: SLF001 - PyTorch offers no other spinning kernel
        torch.cuda.synchronize()


def trace_calls(call: Callable[[], object], library: Library = ()) -> tuple[KernelTrace, KernelTrace] | None:
    """Trace `call` and a second, equal one; None where the profiler records nothing.

    `library` is the policy of the problem: kernels of its operators are counted apart.
    """
    cycles = _MARK_CYCLES + secrets.randbelow(2 * _MARK_CYCLES)
    stream = torch.cuda.current_stream()
    torch.cuda.synchronize()  # earlier work is not the call's
    with _profiler(operators=bool(library)) as profile:
        for _ in range(2):
            call()
            torch.cuda.set_stream(stream)  # the call may have left another one as current
            torch.cuda.synchronize()
            torch.cuda._sleep(cycles)  # noqa: SLF001 - as in `warm_up`
            torch.cuda.synchronize()
    parts = split_by_markers(_events(profile, library))
    if parts is None:
        return None
    first, second, stream = parts
    return trace_of(first, stream), trace_of(second, stream)


def split_by_markers(events: Sequence[TraceEvent]) -> tuple[list[TraceEvent], list[TraceEvent], int] | None:
    """Split events into those of the first and the second call; also return the stream of the markers.

    None where there are fewer than two markers. The last spinning kernel is the second marker. The first
    marker is the one of the others whose duration is closest to it.
    """
    ordered = sorted(events, key=lambda event: event.start_ns)
    # Without any marker the list is [-1], and `waits` is empty.
    *waits, last = [place for place, event in enumerate(ordered) if _MARKER_KERNEL in event.name] or [-1]
    if not waits:
        return None
    long = _took_ns(ordered[last])
    middle = min(waits, key=lambda place: abs(_took_ns(ordered[place]) - long))
    return ordered[:middle], ordered[middle + 1 : last], ordered[last].stream


def _took_ns(event: TraceEvent) -> int:
    return event.end_ns - event.start_ns


def trace_of(events: Sequence[TraceEvent], stream: int) -> KernelTrace:
    """Sum up the events of one call; `stream` is that of the CUDA events of a timed call."""
    own = [event for event in events if not event.allowed and not is_library_kernel(event.name)]
    library = [
        event
        for event in events
        if not event.allowed and is_library_kernel(event.name) and not _named(event.name, _NON_COMPUTE_NAMES)
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
        moving_ms=_total_ms([event for event in events if not event.allowed and _moves(event)]),
        copying_ms=_total_ms([event for event in events if _with_host(event)]),
        allowed_ms=_total_ms([event for event in events if event.allowed]),
        busy_ms=_busy_ms(events),
    )


def _moves(event: TraceEvent) -> bool:
    return is_library_kernel(event.name) and _named(event.name, _MOVING) and not _with_host(event)


def _with_host(event: TraceEvent) -> bool:
    return "DtoH" in event.name or "HtoD" in event.name


def _busy_ms(events: Sequence[TraceEvent]) -> float:
    """Length of the union of the events' times, in ms."""
    busy, until = 0, 0
    for event in sorted(events, key=lambda item: item.start_ns):
        # Count only the part of the event after everything counted so far: concurrent work counts once.
        busy += max(0, event.end_ns - max(event.start_ns, until))
        until = max(until, event.end_ns)
    return busy * _MS


def _profiler(*, operators: bool = False) -> Any:
    activities = [torch.profiler.ProfilerActivity.CUDA]
    # Operators are recorded only where a policy needs them: it lengthens the host's part of a call.
    activities += [torch.profiler.ProfilerActivity.CPU] if operators else []
    return torch.profiler.profile(activities=activities, acc_events=True)


def _events(profile: Any, library: Library) -> list[TraceEvent]:
    """Device events in order of their start, from the profiler's raw results, with the sizes of copies."""
    recorded = list(profile.profiler.kineto_results.events())
    allowed = allowed_operators(recorded, library)
    found = sorted(
        (
            raw.start_ns(),
            raw.duration_ns(),
            raw.name(),
            int(raw.device_resource_id()),
            raw.linked_correlation_id() in allowed,
        )
        for raw in recorded
        if raw.device_type() == torch.autograd.DeviceType.CUDA
    )
    sizes = iter(_sizes(profile) if any(_is_copy(name) for _, _, name, *_ in found) else ())
    return [
        TraceEvent(
            name=name,
            start_ns=start,
            end_ns=start + length,
            size_bytes=next(sizes, 0) if _is_copy(name) else 0,
            stream=stream,
            allowed=allowed_operator,
        )
        for start, length, name, stream, allowed_operator in found
    ]


def allowed_operators(recorded: Sequence[Any], library: Library) -> frozenset[int]:
    """Correlation ids of the host's operators that a policy allows, or that such an operator called.

    A kernel's linked correlation id names the innermost operator that launched it: a convolution's bias is
    added by another operator within it. Names that a candidate gave to a range of its own do not count.
    """
    if not library:
        return frozenset()
    host = [
        (raw.start_thread_id(), raw.start_ns(), raw.start_ns() + raw.duration_ns(), raw)
        for raw in recorded
        if raw.device_type() == torch.autograd.DeviceType.CPU
        and raw.name().startswith("aten::")
        and not raw.is_user_annotation()
    ]
    spans = [
        (thread, start, end)
        for thread, start, end, raw in host
        if family_of(raw.name().removeprefix("aten::")) in library
    ]
    return frozenset(
        raw.correlation_id()
        for thread, start, _, raw in host
        if any(own == thread and begins <= start <= ends for own, begins, ends in spans)
    )


def _is_copy(name: str) -> bool:
    return name.startswith("Memcpy")


def _sizes(profile: Any) -> list[int]:
    """Bytes of each copy in order of time; only the trace written to a file has them."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.profiler.kineto_results.save(file.name)
        written = json.loads(Path(file.name).read_text(encoding="utf-8"))
    return sizes_of(written["traceEvents"])


def sizes_of(written: Sequence[dict[str, Any]]) -> list[int]:
    """Bytes of each copy among the events of a written trace, in order of time."""
    # Chrome's trace event format: ph "X" is an event with a duration, ts its start in microseconds.
    copies = [item for item in written if item.get("ph") == "X" and item.get("cat") == "gpu_memcpy"]
    return [
        int(item.get("args", {}).get("bytes", 0))
        for item in sorted(copies, key=lambda item: float(item["ts"]))
    ]


def _named(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


def _total_ms(events: Sequence[TraceEvent]) -> float:
    return sum(_took_ns(event) for event in events) * _MS


def work_share(trace: KernelTrace) -> WorkShare | None:
    """Shares of the device's time for one call: candidate, library, host copies. None where it was idle."""
    library_ms = trace.library_ms + trace.allowed_ms + trace.moving_ms
    return shares(trace.own_ms, library_ms, trace.copying_ms)

"""How a latency was measured, in words: what a person and an author have to know to read it."""

from __future__ import annotations

from cutegen_nb.analysis.quantity import duration
from cutegen_nb.core.evaluation import Timing


def method_words(timing: Timing) -> str:
    """The method: what one latency is the time of."""
    if timing.method == "graph":
        return "replays of a CUDA graph, the flushes of the L2 taken off"
    if timing.host_included:
        return "a pair of events around each call, which holds host time: the call waits for the device"
    return "a pair of events around each call, queued before the device came to it"


def method_note(timing: Timing) -> str:
    """Why a short kernel was not timed by a graph; empty where there is nothing to say."""
    if not timing.not_by_graph:
        return ""
    return f"no CUDA graph, although it is under 10 µs: {timing.not_by_graph}"


def host_words(timing: Timing) -> str:
    """The host's own figure, which is in no latency; empty where it was not taken."""
    if timing.host_ms is None:
        return ""
    host = f"the host queues a call in {duration(timing.host_ms / 1e3)}"
    return f"{host}, which is in the latency" if timing.host_included else f"{host}, which is in no latency"


def is_host_bound(timing: Timing) -> bool:
    """Whether calls in a row would wait for the host: queueing one takes longer than running it."""
    return timing.host_ms is not None and timing.host_ms > timing.median_ms

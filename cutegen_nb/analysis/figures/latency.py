"""Text for the method of a latency measurement and for host overhead."""

from __future__ import annotations

from statistics import quantiles

from cutegen_nb.analysis.figures.quantity import duration
from cutegen_nb.core.timing import Timing


def method_words(timing: Timing) -> str:
    """Describe the method of measurement: events around each call, or replays of a CUDA graph."""
    if timing.method == "graph":
        return "replays of a CUDA graph, the flushes of the L2 taken off"
    if timing.host_included:
        return "a pair of events around each call, which holds host time: the call waits for the device"
    return "a pair of events around each call, queued before the device came to it"


def method_note(timing: Timing) -> str:
    """Return the reason why a kernel under 10 µs was not timed by a CUDA graph; empty where none is given."""
    if not timing.not_by_graph:
        return ""
    return f"no CUDA graph, although it is under 10 µs: {timing.not_by_graph}"


def host_words(timing: Timing) -> str:
    """Describe the host's time to queue a call, and whether the latency includes it.

    Empty if not measured.
    """
    if timing.host_ms is None:
        return ""
    host = f"the host queues a call in {duration(timing.host_ms / 1e3)}"
    return f"{host}, which is in the latency" if timing.host_included else f"{host}, which is in no latency"


def is_host_bound(timing: Timing) -> bool:
    """Return whether calls in a row would wait for the host: queueing a call takes longer than running it."""
    return timing.host_ms is not None and timing.host_ms > timing.median_ms


def spread(timing: Timing) -> str:
    """Format the 10th to the 90th percentile of the samples; a dash for fewer than ten samples."""
    if len(timing.samples_ms) < 10:  # noqa: PLR2004 - deciles of fewer than ten samples are made up
        return "–"
    deciles = quantiles(timing.samples_ms, n=10)
    return f"{duration(deciles[0] / 1e3)} to {duration(deciles[-1] / 1e3)}"

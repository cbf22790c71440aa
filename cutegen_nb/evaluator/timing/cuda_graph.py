"""Latency of kernels under 10 µs by CUDA graphs: replays of a graph that holds many calls.

At that length the cost of the events themselves counts. One graph holds an L2 flush and a call, several times
over; a second one holds the flushes alone. The difference of their times, divided by the number of calls, is
the latency of one call, with neither host nor flush in it.

The outputs of all calls in a replay are checked (`timed_outputs`). A kernel may count its launches and do
less from some launch on. A candidate can detect the capture and launch another kernel there.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.evaluator.observe.memory_contents import put
from cutegen_nb.evaluator.timing.baselines import Call
from cutegen_nb.evaluator.timing.statistics import CANDIDATE, Samples
from cutegen_nb.evaluator.timing.timed_outputs import LEAST_EXAMINED, TimedOutputs
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault

SHORT_MS = 0.010
"""Latency in ms below which graphs are used: an event's own cost is a microsecond or two."""
_CALLS = 20
"""Calls in a graph."""
_TURNS_A_BLOCK = 5
"""Replays of each graph in a block of samples."""
_BLOCKS = 8
"""Blocks of samples, after one that warms up."""
_FLUSH_ONLY = "flush"
"""Name of the graph that holds the flushes alone."""
_LEAST_MS = 1e-6
"""Least difference of two replays in ms; it keeps every sample above 0."""


class NotCapturedError(Exception):
    """Raised when a call cannot be captured in a graph; the message names the call and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Graph with the calls that it captured."""

    graph: torch.cuda.CUDAGraph
    """The graph."""
    made: tuple[Any, ...]
    """Value returned by each captured call: memory that a replay writes to."""


def sample(
    calls: dict[str, Call],
    pool: Sequence[list[Any]],
    flush: Callable[[], object],
    outputs: TimedOutputs,
) -> Samples:
    """Sample latencies in ms, as :meth:`bench.Bench.sample` does. Raises NotCapturedError.

    A call that launches on another stream than the current one is not captured, and its graph holds nothing.
    Its outputs, poisoned before a replay, show that.
    """
    graphs = {_FLUSH_ONLY: _Held(graph=_captured(lambda _: None, flush, "the flush"), made=())}
    for name, call in calls.items():
        graphs[name] = _capture_and_check(name, call, pool, flush)
    order, names = random.SystemRandom(), list(graphs)
    examined = frozenset(order.sample(range(1, _BLOCKS + 1), LEAST_EXAMINED))
    samples: Samples = {}
    for block in range(_BLOCKS + 1):
        if block <= 1:  # the first warms up
            samples = {name: [] for name in calls}
        for blocks in samples.values():
            blocks.append([])
        for _ in range(_TURNS_A_BLOCK):
            times = {}
            for name in order.sample(names, len(names)):
                times[name] = _replayed(graphs[name].graph)
                if name == CANDIDATE:
                    _note(graphs[name], len(pool), outputs)
            for name in calls:
                # Replays of one turn share clocks and temperature: their difference is the calls alone.
                samples[name][-1].append(max(times[name] - times[_FLUSH_ONLY], _LEAST_MS) / _CALLS)
        if block in examined:
            _examine(graphs[CANDIDATE], order.randrange(_CALLS), len(pool), outputs)
    return samples


def _note(held: _Held, entries: int, outputs: TimedOutputs) -> None:
    for number, returned in enumerate(held.made):
        outputs.note(number % entries, returned)


def _examine(held: _Held, number: int, entries: int, outputs: TimedOutputs) -> None:
    """Compare the output of call `number` in a replay on changed contents."""

    def replay(again: Callable[[], None]) -> Any:
        again()
        _replayed(held.graph)
        return held.made[number]

    outputs.examine(number % entries, replay)


def _capture_and_check(
    called: str, call: Call, pool: Sequence[list[Any]], flush: Callable[[], object]
) -> _Held:
    """Capture the calls of one name, and compare a replay with an ordinary call. Raises NotCapturedError."""
    made: list[Any] = []
    name = called or "the candidate"
    graph = _captured(lambda number: made.append(call(*pool[number % len(pool)])), flush, name)
    if called == CANDIDATE and _in_one_place(made):
        message = f"{name} returns the same memory at every call, so that a replay shows the last result only"
        raise NotCapturedError(message)
    last = _CALLS - 1
    wanted = [item.clone() for item in _tensors(call(*pool[last % len(pool)]))]
    outputs = _tensors(made[last])
    before = [item.clone() for item in outputs]
    # Poison the outputs, so that an empty graph leaves wrong values.
    for item in outputs:
        item.zero_() if not item.is_floating_point() else item.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    right = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(outputs, wanted, strict=True))
    for item, old in zip(outputs, before, strict=True):
        with contextlib.suppress(RuntimeError):  # overlapping windows
            put(old, item)  # a reference may return an input or a parameter, which would stay NaN
    if not right:
        message = f"{name} launches on its own or on the default stream, which a CUDA graph cannot capture"
        raise NotCapturedError(message)
    return _Held(graph=graph, made=tuple(made))


def _in_one_place(made: Sequence[Any]) -> bool:
    """Return whether two of several calls returned the same memory."""
    begins = [item.data_ptr() for returned in made for item in _tensors(returned) if item.numel()]
    return len(set(begins)) < len(begins)


def _tensors(returned: Any) -> list[torch.Tensor]:
    return [item for item in tree_leaves(returned) if isinstance(item, torch.Tensor)]


def _captured(call: Callable[[int], object], flush: Callable[[], object], name: str) -> torch.cuda.CUDAGraph:
    """Capture `_CALLS` flushes and calls. ``torch.cuda.graph`` would first empty every cache."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream):
            # "relaxed" lets a call allocate memory, which CUDA otherwise forbids during a capture.
            graph.capture_begin(capture_error_mode="relaxed")
            try:
                for number in range(_CALLS):
                    flush()
                    call(number)
            finally:
                graph.capture_end()
    except (RuntimeError, CandidateFault) as error:
        torch.cuda.synchronize()
        first = str(error).partition("\n")[0][:160]
        message = f"{name} cannot be captured: {first}"
        raise NotCapturedError(message) from error
    return graph


def _replayed(graph: torch.cuda.CUDAGraph) -> float:
    """Time one replay in milliseconds."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))

"""Latency of kernels so short that an event's own cost counts: replays of a CUDA graph of many calls.

A graph holds the flush of the L2 and a call, several times over; a second one holds the flushes alone. The
difference, divided by the number of calls, is one call's latency with neither the host nor the flush in it.

What a replay leaves in the outputs of all its calls is looked at as `timed_outputs` says: a kernel may count
its launches and do less from some on, and a capture, of which a candidate knows, may hold another kernel.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.gpu.baselines import Call
from cutegen_nb.gpu.contents import put
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.ratios import CANDIDATE, Samples
from cutegen_nb.gpu.timed_outputs import LEAST_EXAMINED, TimedOutputs

SHORT_MS = 0.010
"""Below this time on the device an event's own cost of a microsecond or two is a good part of it."""
_CALLS = 20
_TURNS_A_BLOCK = 5
_BLOCKS = 8
_ALONE = "flush"
_LEAST_MS = 1e-6


class NotCapturedError(Exception):
    """A call cannot be held in a graph; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Calls in a graph."""

    graph: torch.cuda.CUDAGraph
    """Replays them."""
    made: tuple[Any, ...]
    """What each of them gave: the memory that a replay writes to."""


def sample(
    calls: dict[str, Call],
    pool: Sequence[list[Any]],
    flush: Callable[[], object],
    outputs: TimedOutputs,
) -> Samples:
    """Samples in ms as of :meth:`sampling.Bench.sample`. Raises NotCapturedError.

    A call that launches on another stream than the current one is not part of the capture: its graph would
    hold nothing, which shows by its outputs, poisoned before a replay.
    """
    graphs = {_ALONE: _Held(graph=_captured(lambda _: None, flush, "the flush"), made=())}
    for name, call in calls.items():
        graphs[name] = _checked(name, call, pool, flush)
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
                samples[name][-1].append(max(times[name] - times[_ALONE], _LEAST_MS) / _CALLS)
        if block in examined:
            _examine(graphs[CANDIDATE], order.randrange(_CALLS), len(pool), outputs)
    return samples


def _note(held: _Held, entries: int, outputs: TimedOutputs) -> None:
    for number, returned in enumerate(held.made):
        outputs.note(number % entries, returned)


def _examine(held: _Held, number: int, entries: int, outputs: TimedOutputs) -> None:
    """Compare what call `number` gives in a replay on changed contents."""

    def replay(again: Callable[[], None]) -> Any:
        again()
        _replayed(held.graph)
        return held.made[number]

    outputs.examine(number % entries, replay)


def _checked(called: str, call: Call, pool: Sequence[list[Any]], flush: Callable[[], object]) -> _Held:
    made: list[Any] = []
    name = called or "the candidate"
    graph = _captured(lambda number: made.append(call(*pool[number % len(pool)])), flush, name)
    if called == CANDIDATE and _in_one_place(made):
        message = f"{name} gives the same memory at each call, of which a replay of many shows the last alone"
        raise NotCapturedError(message)
    last = _CALLS - 1
    wanted = [item.clone() for item in _tensors(call(*pool[last % len(pool)]))]
    outputs = _tensors(made[last])
    before = [item.clone() for item in outputs]
    for item in outputs:
        item.zero_() if not item.is_floating_point() else item.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    right = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(outputs, wanted, strict=True))
    for item, old in zip(outputs, before, strict=True):
        with contextlib.suppress(RuntimeError):  # overlapping windows
            put(old, item)  # a reference may return an input or a parameter, which would stay NaN
    if not right:
        message = f"{name} launches on a stream of its own, or on the default one, which no graph can hold"
        raise NotCapturedError(message)
    return _Held(graph=graph, made=tuple(made))


def _in_one_place(made: Sequence[Any]) -> bool:
    """Whether two of several calls gave the same memory."""
    begins = [item.data_ptr() for returned in made for item in _tensors(returned) if item.numel()]
    return len(set(begins)) < len(begins)


def _tensors(returned: Any) -> list[torch.Tensor]:
    return [item for item in tree_leaves(returned) if isinstance(item, torch.Tensor)]


def _captured(call: Callable[[int], object], flush: Callable[[], object], name: str) -> torch.cuda.CUDAGraph:
    """A graph of so many flushes and calls. ``torch.cuda.graph`` would first empty every cache."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    torch.cuda.synchronize()
    try:
        with torch.cuda.stream(stream):
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
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))

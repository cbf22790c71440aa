"""Latency of kernels so short that events cannot resolve them: replays of a CUDA graph of many calls.

A graph holds the flush of the L2 and a call, several times over; a second one holds the flushes alone. The
difference, divided by the number of calls, is one call's latency with neither the host nor the flush in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.gpu.baselines import Call
from cutegen_nb.gpu.sampling import Samples

SHORT_MS = 0.010
"""Below this median an event's resolution of about half a microsecond is several per cent."""
_CALLS = 10
_TURNS_A_BLOCK = 5
_BLOCKS = 8


def sample(calls: dict[str, Call], given: Sequence[Any], flush: Callable[[], object]) -> Samples | None:
    """Samples in ms as of :func:`sampling.sample`; None when one of the calls cannot be captured.

    A call that launches on a stream of its own is not part of the capture: its graph would hold nothing,
    which shows by its outputs, poisoned before a replay.
    """
    alone = _captured(lambda: None, flush)
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    for name, call in calls.items():
        graph = _checked(call, given, flush)
        if graph is None or alone is None:
            return None
        graphs[name] = graph
    assert alone is not None
    samples: Samples = {name: [] for name in graphs}
    for block in range(_BLOCKS + 1):
        for blocks in samples.values():
            blocks.append([])
        for _ in range(_TURNS_A_BLOCK):
            empty = _replayed(alone)
            for name, graph in graphs.items():
                samples[name][-1].append(max(_replayed(graph) - empty, 1e-6) / _CALLS)
        if block == 0:  # warming up
            samples = {name: [] for name in graphs}
    return samples


def _checked(call: Call, given: Sequence[Any], flush: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
    made: list[Any] = []
    graph = _captured(lambda: made.append(call(*given)), flush)
    if graph is None:
        return None
    wanted = [item.clone() for item in tree_leaves(call(*given)) if isinstance(item, torch.Tensor)]
    outputs = [item for item in tree_leaves(made[-1]) if isinstance(item, torch.Tensor)]
    for item in outputs:
        item.zero_() if not item.is_floating_point() else item.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    same = all(torch.allclose(a, b, equal_nan=True) for a, b in zip(outputs, wanted, strict=True))
    return graph if same else None


def _captured(call: Callable[[], object], flush: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(_CALLS):
                flush()
                call()
    except RuntimeError:  # what was launched on another stream, or synchronised, ends the capture
        torch.cuda.synchronize()
        return None
    return graph


def _replayed(graph: torch.cuda.CUDAGraph) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def median_ms(samples: Samples, name: str) -> float:
    """Median over all blocks."""
    return statistics.median(value for block in samples[name] for value in block)

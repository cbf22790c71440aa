"""``barrier.cluster``: arrivals and waits of the threads of a cluster (PTX ISA, ``barrier.cluster``).

A thread's n-th wait ends when every thread of the cluster that has not exited has arrived n times.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.machine.program import Segment
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.faults import Deadlock, place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch, Mask

_KEY = "the cluster's barrier"
"""Synchronisation key of the barrier in the race checker."""


def is_cluster(instruction: Instruction | None) -> bool:
    """Return whether an instruction is ``barrier.cluster``."""
    return instruction is not None and "cluster" in instruction.modifiers


def passed(segment: Segment, lanes: Batch, mask: Mask | None) -> None:
    """Carry out an arrival, or a wait that is over.

    Raises:
        Deadlock: all threads of the batch wait, and some have not arrived.
    """
    assert segment.end is not None
    arrived, waited = _counts(lanes)
    active = np.ones((1, 1), np.bool_) if mask is None else mask.array
    if "arrive" in segment.end.modifiers:
        arrived += active
        lanes.released(mask, _KEY)
        return
    if mask is None and not _complete(lanes, np.ones(1, np.bool_)).all():
        raise deadlock(lanes, segment.end)
    waited += active
    if mask is None and lanes.watch is not None:
        lanes.watch.met(None)
    else:
        lanes.acquired(mask, _KEY)


def released(lanes: Batch, live: Array) -> Array:
    """Threads whose next wait is over, bool (ctas, threads); ``live`` are those that have not exited."""
    return _complete(lanes, live)


def _counts(lanes: Batch) -> tuple[Array, Array]:
    if lanes.cluster_arrivals is None or lanes.cluster_waits is None:
        lanes.cluster_arrivals = np.zeros((lanes.ctas, lanes.threads), np.int64)
        lanes.cluster_waits = np.zeros_like(lanes.cluster_arrivals)
    return lanes.cluster_arrivals, lanes.cluster_waits


def _complete(lanes: Batch, live: Array) -> Array:
    arrived, waited = _counts(lanes)
    # Exited threads are not waited for.
    each = np.where(live, arrived, np.iinfo(np.int64).max).min(axis=1).reshape(-1, lanes.cluster_ctas)
    least = np.repeat(each.min(axis=1), lanes.cluster_ctas)
    return np.asarray(least[:, None] > waited)


def deadlock(lanes: Batch, instruction: Instruction) -> Deadlock:
    """Fault of threads that wait for a cluster of which some never arrive."""
    arrived, waited = _counts(lanes)
    lacking = np.argwhere(arrived <= waited)
    cta, thread = (int(one) for one in lacking[0]) if len(lacking) else (0, 0)
    index, block = lanes.place_of(cta * lanes.threads + thread)
    return Deadlock(
        f"Deadlock: threads wait at {instruction.name} {place(instruction)} for all threads of their "
        f"cluster, and thread {index} of CTA {block} has not arrived. Let every thread of the cluster arrive "
        "(barrier.cluster.arrive) before it waits.",
        instruction, thread=index, cta=block,
    )  # fmt: skip

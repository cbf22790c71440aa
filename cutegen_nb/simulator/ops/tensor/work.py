"""Work of ``tcgen05`` that goes on beside the threads: products and copies into tensor memory.

They are carried out when a thread waits at an mbarrier that a later ``tcgen05.commit`` of the same thread
signals, or at the kernel's end: as late as a GPU may. So a stage of shared memory that is given away too
early shows in values, and so does tensor memory that is read too early (PTX ISA, "Memory Consistency Model
for 5th generation of TensorCore operations").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cutegen_nb.simulator.numbers.values import S64, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation
from cutegen_nb.simulator.ops.sync.mbarrier_objects import AsyncArrival, arrive_at, mbarriers_of, place_of
from cutegen_nb.simulator.ops.tensor.places import memory_of
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import AddressOperand, listed
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.clusters import multicast


class Work(Protocol):
    """One instruction's products or copies, a row for each thread that issued one."""

    threads: Array
    """Thread of each row, as an index into the flattened batch."""

    def carry_out(self, lanes: Batch, rows: Array) -> None:
        """Carry out some rows."""

    def region(self, lanes: Batch, rows: Array) -> list[tuple[Array, Array, Array]]:
        """Cells that some rows write, as indices of ``TensorMemory.under_way``."""


@dataclass(slots=True)
class Issued:
    """Work with the rows that are not complete."""

    number: int
    """Number in the order of issue."""
    work: Work
    waiting: Array
    """True for rows that are not complete, bool of shape (rows,)."""


def issue(lanes: Batch, work: Work) -> None:
    """Note work that an instruction begins."""
    lanes.tensor_issued += 1
    lanes.tensor_work.append(Issued(lanes.tensor_issued, work, np.ones(len(work.threads), np.bool_)))
    _mark(lanes, work, np.arange(len(work.threads)), 1)


def _mark(lanes: Batch, work: Work, rows: Array, step: int) -> None:
    under_way = memory_of(lanes).under_way
    for index in work.region(lanes, rows):
        np.add.at(under_way, index, step)


def complete(lanes: Batch, threads: Array | None, until: int) -> None:
    """Carry out the work of some threads (None for all) in the order of its issue, up to a number."""
    kept: list[Issued] = []
    for one in lanes.tensor_work:
        if one.number <= until:
            due = one.waiting if threads is None else one.waiting & np.isin(one.work.threads, threads)
            rows = np.flatnonzero(due)
            if len(rows):
                one.work.carry_out(lanes, rows)
                _mark(lanes, one.work, rows, -1)
                one.waiting = one.waiting & ~due
        if one.waiting.any():
            kept.append(one)
    lanes.tensor_work = kept


def finish(lanes: Batch) -> None:
    """Carry out all work that is left."""
    if lanes.tensor_work:
        complete(lanes, None, lanes.tensor_issued)


def lower_commit(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.commit``: an arrival at an mbarrier when the thread's work is complete."""
    known = modifiers.flag("mbarrier::arrive::one")
    space = modifiers.one("shared::cluster", "shared::cta")
    several = modifiers.flag("multicast::cluster")
    modifiers.one("b64")
    modifiers.done()
    if not known:
        raise unsupported(instruction)
    at = place_of(instruction, lowering, instruction.operands[0], space)
    mask_slot = lowering.source(instruction, instruction.operands[1], "u16") if several else -1

    def run(lanes: Batch, mask: Mask | None) -> None:
        last = lanes.tensor_issued
        for address, threads, ctas in at.targets(lanes, mask):
            owners = threads // lanes.threads
            sources, goals = np.arange(len(threads)), ctas
            if several:
                masks = listed(lanes, mask, AddressOperand(lanes.registers[mask_slot], 0)).addresses
                everyone = np.arange(lanes.lane_count) if mask is None else mask.index
                chosen = masks[np.searchsorted(everyone, threads)]
                sources, goals = multicast(chosen, owners, lanes.cluster_ctas)
            # Issuers at one distance from their goals have goals of their own.
            for distance in np.unique(goals - owners[sources]):
                some = goals - owners[sources] == distance
                _expect(lanes, instruction, address, threads[sources[some]], goals[some], last)

    return run


def _expect(  # noqa: PLR0913, PLR0917 - an arrival has this many parts
    lanes: Batch, instruction: Instruction, address: int, threads: Array, ctas: Array, last: int
) -> None:
    """Register one arrival in each of some CTAs, by the threads that committed."""
    at = (ctas, threads % lanes.threads)
    active = np.zeros((lanes.ctas, lanes.threads), np.bool_)
    active[at] = True

    def carry_out(due: Array) -> None:
        now = np.broadcast_to(due, active.shape)[at]
        complete(lanes, threads[now], last)
        counts = np.zeros(active.shape, S64)
        counts[ctas[now], threads[now] % lanes.threads] = 1
        arrive_at(lanes, instruction, address, counts)

    known = mbarriers_of(lanes)
    known.arrivals.append(AsyncArrival(address=address, lanes=active, complete=carry_out))
    known.changed()  # a thread that waits may now find its phase complete

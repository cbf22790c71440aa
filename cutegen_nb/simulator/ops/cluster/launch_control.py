"""``clusterlaunchcontrol``: a running cluster takes the work of one that has not started.

The response has the ``ctaid`` of the cluster's first CTA and a mark that it was cancelled; PTX leaves its
16 bytes opaque. Clusters of later batches have not started (:mod:`~cutegen_nb.simulator.machine.machine`).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import S64, U32, U64, Array, Value
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items, opcode
from cutegen_nb.simulator.ops.sync.mbarrier_objects import (
    AsyncArrival,
    MbarrierOperand,
    complete_bytes,
    mask_of,
    mbarriers_of,
    place_of,
)
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import AddressOperand, ListedAddresses, listed, raise_misaligned
from cutegen_nb.simulator.state.batch import Batch, Mask, coordinates
from cutegen_nb.simulator.state.clusters import offsets_of

_BYTES = 16
_CANCELLED = 1
"""Value of the response's last word if a cluster was cancelled, 0 if none was left."""
_DIMENSIONS = ("x", "y", "z")


@opcode("clusterlaunchcontrol", forms="try_cancel (multicast), query_cancel (is_canceled, get_first_ctaid)")
def _control(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    if modifiers.flag("query_cancel"):
        return _query(instruction, lowering, modifiers)
    known = modifiers.flag("try_cancel") and modifiers.flag("async")
    known = modifiers.flag("mbarrier::complete_tx::bytes") and known
    space = modifiers.one("shared::cta")
    several = modifiers.flag("multicast::cluster::all")
    modifiers.one("b128")
    modifiers.done()
    if not known:
        raise unsupported(instruction)
    target, barrier = (place_of(instruction, lowering, one, space) for one in instruction.operands)
    return lambda lanes, mask: _request(lanes, mask, target, barrier, several=several)


def _request(
    lanes: Batch, mask: Mask | None, target: MbarrierOperand, barrier: MbarrierOperand, *, several: bool
) -> None:
    """Take a cluster for each active thread, and send the response to its CTA, or to all of its cluster."""
    threads = np.arange(lanes.lane_count) if mask is None else mask.index
    places, gates = (
        offsets_of(listed(lanes, mask, AddressOperand(lanes.registers[one.slot], one.offset)).addresses)
        for one in (target, barrier)
    )
    if (places & (_BYTES - 1)).any():
        request = ListedAddresses(places, threads)
        raise_misaligned(lanes, request, _BYTES, target.instruction, "in shared memory")
    for thread, offset, gate in zip(threads.tolist(), places.tolist(), gates.tolist(), strict=True):
        response = _response(lanes)
        own = thread // lanes.threads
        first = own // lanes.cluster_ctas * lanes.cluster_ctas
        rows = np.arange(first, first + lanes.cluster_ctas) if several else np.array([own])
        _send(lanes, target.instruction, rows, (thread, offset, gate), response)


def _response(lanes: Batch) -> Array:
    """Response to one request: the coordinates of the cancelled cluster's first CTA, and a mark."""
    number = lanes.take_cluster() if lanes.take_cluster is not None else None
    if number is None:
        return np.zeros(4, U32)
    return np.array([*coordinates(number, lanes.grid), _CANCELLED], U32)


def _send(
    lanes: Batch, instruction: Instruction, rows: Array, where: tuple[int, int, int], response: Array
) -> None:
    """Let a response arrive in some CTAs when their threads wait at the mbarrier."""
    thread, offset, gate = where
    active = np.zeros((lanes.ctas, lanes.threads), np.bool_)
    active[rows, thread % lanes.threads] = True

    def complete(due: Array) -> None:
        now = rows[np.broadcast_to(due, active.shape)[rows, thread % lanes.threads]]
        lanes.shared.view(U32)[now[:, None], offset // 4 + np.arange(4)] = response
        if lanes.watch is not None:
            there = ListedAddresses(np.full(len(now), offset), now * lanes.threads)
            access = SharedAccess(instruction, there, _BYTES, 1, "writes")
            lanes.watch.written_from_afar(lanes, access)
        landed = np.bincount(now, minlength=lanes.ctas).astype(S64) * _BYTES
        complete_bytes(lanes, instruction, gate, landed)
        lanes.released(mask_of(lanes, due), ("mbarrier", gate))

    known = mbarriers_of(lanes)
    known.arrivals.append(AsyncArrival(address=gate, lanes=active, complete=complete))
    known.changed()


def _query(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``query_cancel``; its 128-bit register comes as two halves."""
    asks = modifiers.flag("is_canceled")
    dimension = modifiers.one(*(f"get_first_ctaid::{one}" for one in _DIMENSIONS))
    whole = modifiers.flag("get_first_ctaid") and modifiers.flag("v4")
    modifiers.one("pred", "b32")
    modifiers.one("b128")
    modifiers.done()
    target, response = instruction.operands
    halves = items(response)
    if not (asks or dimension or whole) or len(halves) != 2:  # noqa: PLR2004 - low and high half
        raise unsupported(instruction)
    low, high = (lowering.source(instruction, one, "b64") for one in halves)

    def word(registers: list[Value], number: int) -> Value:
        half = registers[high if number > 1 else low].view(U64)
        return (half >> U64.type(32 * (number % 2))).astype(U32)

    if asks:
        return lowering.assign(instruction, lambda registers: word(registers, 3) == _CANCELLED)
    if dimension:
        number = _DIMENSIONS.index(dimension[-1])
        return lowering.assign(instruction, lambda registers: word(registers, number))
    puts = [lowering.writer(instruction, one) for one in items(target)[:3]]

    def run(lanes: Batch, mask: Mask | None) -> None:
        for number, put in enumerate(puts):
            put(lanes, mask, word(lanes.registers, number))

    return run

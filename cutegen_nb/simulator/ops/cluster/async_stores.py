"""``st.async`` and ``red.async``: stores to a CTA of the cluster that complete at an mbarrier beside them.

Values arrive when a thread of that CTA waits at the mbarrier, never before (PTX ISA, ``st.async``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import S64, Array
from cutegen_nb.simulator.ops.cluster.memory import places
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items, opcode
from cutegen_nb.simulator.ops.memory.atomics import AtomicFunction, apply, function_of, lower_reduction
from cutegen_nb.simulator.ops.memory.load_store import HINTS, address_of, lower_store, narrowing
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ops.sync.mbarrier_objects import (
    AsyncArrival,
    complete_bytes,
    mask_of,
    mbarriers_of,
    place_of,
)
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.state.addressing import AddressOperand, ListedAddresses, listed
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

_COMPLETES = "mbarrier::complete_tx::bytes"
_OPERATIONS = ("inc", "dec", "min", "max", "add", "and", "or", "xor")


@opcode(
    "st",
    forms="param, global, shared, local, generic; v1–v8 of 8–64 bits; cache hints; async to the cluster, "
    "v1–v4 of 32 and 64 bits",
)
def _store(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[:1] == ("async",):
        return _asynchronous(instruction, lowering)
    return lower_store(instruction, lowering)


@opcode("red", forms="as atom, without a result; async to the cluster")
def _reduction(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[:1] == ("async",):
        return _asynchronous(instruction, lowering)
    return lower_reduction(instruction, lowering)


def _asynchronous(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.skip("async", *HINTS)
    known = modifiers.flag("shared::cluster") and modifiers.flag(_COMPLETES)
    operation = modifiers.one(*_OPERATIONS)
    count = int(modifiers.one("v2", "v4", default="v1")[1])
    modifiers.done()
    target, given, barrier = instruction.operands
    sources = items(given)
    if not known or bool(operation) != (instruction.opcode == "red") or len(sources) != count:
        raise unsupported(instruction)
    slot, offset, _ = address_of(instruction, lowering, target)
    gate = place_of(instruction, lowering, barrier, "shared::cluster")
    slots = [lowering.source(instruction, one, kind) for one in sources]
    cuts = [narrowing(lowering, one, kind) for one in sources]
    form = SharedAccessForm(
        instruction=instruction, tally=lowering.tally, width=TYPE_BYTES[kind], count=count, stores=True
    )
    function = function_of(instruction, operation, kind) if operation else None

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        request = listed(lanes, mask, AddressOperand(registers[slot], offset))
        threads = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
        rows, offsets = places(lanes, request, form)
        data = [
            np.broadcast_to(cut(registers[one]), (lanes.ctas, lanes.threads)).reshape(-1)[threads]
            for cut, one in zip(cuts, slots, strict=True)
        ]
        form.tally.shared_stored += len(offsets) * form.size
        for address, who, _ in gate.targets(lanes, mask):
            chosen = np.isin(threads, who)
            stored = _Stored(rows[chosen], offsets[chosen], [one[chosen] for one in data], threads[chosen])
            _register(lanes, address, stored, form, function)

    return run


@dataclass(frozen=True, slots=True)
class _Stored:
    """Values on their way, one entry a thread."""

    rows: Array
    """Place in the batch of the CTA that each goes to."""
    offsets: Array
    """Byte offset in its shared memory."""
    data: list[Array]
    """Elements, as unsigned bits."""
    threads: Array
    """Thread that stores, as an index into the flattened batch."""


def _register(
    lanes: Batch, address: int, stored: _Stored, form: SharedAccessForm, function: AtomicFunction | None
) -> None:
    """Let values arrive, and their bytes at the mbarrier at ``address``, when their CTA waits there."""
    at = (stored.rows, stored.threads % lanes.threads)
    active = np.zeros((lanes.ctas, lanes.threads), np.bool_)
    active[at] = True

    def complete(due: Array) -> None:
        now = due[at]
        rows, offsets = stored.rows[now], stored.offsets[now]
        if lanes.watch is not None:
            there = ListedAddresses(offsets, rows * lanes.threads)
            lanes.watch.written_from_afar(
                lanes, SharedAccess(form.instruction, there, form.width, form.count, "writes")
            )
        words = lanes.shared.view(UNSIGNED[form.width])
        index = rows * words.shape[1] + offsets // form.width
        for number, one in enumerate(stored.data):
            if function is None:
                words.reshape(-1)[index + number] = one[now]
            else:
                apply(words.reshape(-1), index + number, [one[now]], function, wanted=False)
        landed = np.bincount(rows, minlength=lanes.ctas).astype(S64) * form.size
        complete_bytes(lanes, form.instruction, address, landed)
        lanes.released(mask_of(lanes, due), ("mbarrier", address))

    known = mbarriers_of(lanes)
    known.arrivals.append(AsyncArrival(address=address, lanes=active, complete=complete))
    known.changed()

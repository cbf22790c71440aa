"""Asynchronous copies (``cp.async``), fences, and instructions without effect on values.

``cp.async`` data arrives at the wait that covers its group, or at the kernel's end, never before. A read in
between sees the old contents of shared memory, as it may on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.counters.async_copies import CopyCount
from cutegen_nb.simulator.numbers.values import S64, U32, Array, Value
from cutegen_nb.simulator.ops.bulk.copies import lower_bulk
from cutegen_nb.simulator.ops.lowering import NONE, Lowering, Modifiers, Operation, opcode, under
from cutegen_nb.simulator.ops.memory import global_ as global_ops
from cutegen_nb.simulator.ops.memory import shared
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.ops.memory.load_store import address_of
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ops.sync import mbarrier_objects
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Register
from cutegen_nb.simulator.state.addressing import AddressOperand
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

_COPY_SIZES = (4, 8, 16)
"""Bytes that a thread may copy (PTX ISA, ``cp.async``)."""
_WIDEST = 8
"""Bytes of the largest element in which a copy is moved."""


_NO_GROUPS: Array = np.zeros((1, 1), np.int64)
"""Number of committed groups before the first commit; one number stands for all threads until they differ."""


@dataclass(slots=True)
class PendingCopy:
    """Copy (cp.async) whose data has not arrived."""

    at: AddressOperand
    """Destination addresses in shared memory."""
    data: list[Value]
    """Data of each thread, word by word."""
    mask: Mask | None
    """Threads that copy; None for all."""
    form: SharedAccessForm
    """Instruction, tally and size of the write."""
    group: Array
    """Number of the group of each lane, of a shape that broadcasts over the batch."""
    waiting: Array
    """Lanes whose data has not arrived, bool, of a shape that broadcasts over the batch."""


@opcode(
    "cp",
    forms="async ca, cg (4, 8, 16 bytes, source size or ignore-src predicate), commit_group, wait_group, "
    "wait_all, mbarrier.arrive (noinc); async.bulk and async.bulk.tensor (tile, 1d to 5d) between global and "
    "shared memory, reduce.async.bulk, their groups; prefetches do nothing",
)
def _copy(instruction: Instruction, lowering: Lowering) -> Operation:
    if "bulk" in instruction.modifiers:
        return lower_bulk(instruction, lowering)
    modifiers = Modifiers(instruction)
    if not modifiers.flag("async"):
        raise unsupported(instruction)
    if modifiers.flag("mbarrier"):
        return _arrive_later(instruction, lowering, modifiers)
    what = modifiers.one("commit_group", "wait_group", "wait_all", "ca", "cg")
    modifiers.skip("shared", "global", "L2")
    modifiers.done()
    if what == "commit_group":
        return _commit
    if what == "wait_all":
        return lambda lanes, mask: arrive(lanes, mask, None)
    if what == "wait_group":
        (count,) = instruction.operands
        assert isinstance(count, Immediate)
        left = int(count.value)
        return lambda lanes, mask: arrive(lanes, mask, left)
    if what not in {"ca", "cg"}:
        raise unsupported(instruction)
    return _begin(instruction, lowering)


def _begin(instruction: Instruction, lowering: Lowering) -> Operation:
    target, offset, _ = address_of(instruction, lowering, instruction.operands[0])
    source, source_offset, _ = address_of(instruction, lowering, instruction.operands[1])
    size_operand = instruction.operands[2]
    if not isinstance(size_operand, Immediate) or int(size_operand.value) not in _COPY_SIZES:
        raise unsupported(instruction, "copy size")
    size = int(size_operand.value)
    rest = (
        instruction.operands[3:]
        if not any("cache_hint" in one for one in instruction.modifiers)
        else (instruction.operands[3:-1])
    )
    ignores = bool(rest) and isinstance(rest[0], Register) and lowering.register_types(rest[0].name) == "pred"
    valid = lowering.source(instruction, rest[0], "pred" if ignores else "u32") if rest else None
    negated = ignores and isinstance(rest[0], Register) and rest[0].negated
    width = min(size, _WIDEST)
    words = size // width
    reading = GlobalForm(instruction=instruction, tally=lowering.tally, width=width, count=words)
    writing = SharedAccessForm(
        instruction=instruction, tally=lowering.tally, width=width, count=words, stores=True
    )
    tally, bypass = lowering.tally, "cg" in instruction.modifiers

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        counted = CopyCount(tally)
        whole = mask
        asked = np.uint32(size) if valid is None else registers[valid]
        if ignores:  # where the predicate holds, the source is not read and zeros are written
            asked = np.where(np.logical_not(asked) if negated else asked, U32.type(0), U32.type(size))[()]
        asked = asked.view(U32)
        active = under(lanes, mask, asked != 0)
        if active is NONE:
            data: list[Value] = [UNSIGNED[width].type(0)] * words
        else:
            data = global_ops.load(lanes, active, AddressOperand(registers[source], source_offset), reading)
        if asked.ndim or int(asked) != size:
            # Bytes beyond the source size are written as zeros (PTX ISA, ``cp.async``, src-size).
            data = [_kept(one, asked.astype(S64) - index * width) for index, one in enumerate(data)]
        there, here = (
            AddressOperand(registers[source], source_offset),
            AddressOperand(registers[target], offset),
        )
        begin(lanes, whole, here, data, writing)
        reads = None if active is whole else np.atleast_2d(asked != 0)
        counted.settle(lanes, whole, reads, there, here, size, bypass=bypass)

    return run


def _kept(element: Value, left: Value) -> Value:
    """Element with all but its first ``left`` bytes set to zero."""
    unsigned = element.dtype
    # A shift by the whole width is undefined in NumPy, so no bytes at all is chosen apart.
    ones = unsigned.type(~unsigned.type(0))
    kept = np.clip(left, 0, unsigned.itemsize)
    drop = (8 * (unsigned.itemsize - np.maximum(kept, 1))).astype(unsigned)
    return element & np.where(kept > 0, ones >> drop, unsigned.type(0))


def begin(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Start a copy; its data arrives later.

    Raises:
        OutOfBounds: the destination is outside shared memory.
        Misaligned: the destination is no multiple of the copy's size.
    """
    shared.announce(lanes, mask, at, data, form)
    if lanes.async_groups is None:
        lanes.async_groups = _NO_GROUPS
    waiting = np.ones((1, 1), np.bool_) if mask is None else mask.array
    copy = PendingCopy(at, data, mask, form, lanes.async_groups, waiting)
    lanes.async_copies.append(copy)


def _commit(lanes: Batch, mask: Mask | None) -> None:
    if lanes.async_groups is None:
        lanes.async_groups = _NO_GROUPS
    # A new array: copies begun before keep the number of the group they belong to.
    lanes.async_groups = lanes.async_groups + (1 if mask is None else mask.array.astype(np.int64))


def arrive(lanes: Batch, mask: Mask | None, left: int | None) -> None:
    """Complete the copies of the active lanes, except those of the ``left`` newest committed groups.

    ``left`` None completes all copies, uncommitted ones included (``cp.async.wait_all``).
    """
    if not lanes.async_copies:
        return
    groups = lanes.async_groups
    assert groups is not None
    kept: list[PendingCopy] = []
    for copy in lanes.async_copies:
        due = copy.waiting if mask is None else copy.waiting & mask.array
        if left is not None:
            # Groups are numbered from 0; ``groups`` are committed, of which the last ``left`` may wait.
            due = due & (copy.group < groups - left)
        if not due.any():
            kept.append(copy)
            continue
        same = due.all()
        active = None if same else Mask(lanes, due)
        whole = copy.mask if (due == copy.waiting).all() else active
        shared.land(lanes, whole, copy.at, copy.data, copy.form)
        rest = copy.waiting & ~due
        if rest.any():
            copy.waiting = rest
            copy.mask = Mask(lanes, rest)
            kept.append(copy)
    lanes.async_copies = kept
    if not kept and not lanes.bulk_loads and lanes.watch is not None:
        lanes.watch.copies_landed()


def land(lanes: Batch, copies: list[PendingCopy], threads: Array) -> None:
    """Complete some copies for some threads, bool (ctas, threads)."""
    for copy in copies:
        due = copy.waiting & threads
        if not due.any():
            continue
        shared.land(lanes, Mask(lanes, due), copy.at, copy.data, copy.form)
        copy.waiting = copy.waiting & ~due
        copy.mask = Mask(lanes, copy.waiting)
    lanes.async_copies = [one for one in lanes.async_copies if one.waiting.any()]
    if not lanes.async_copies and not lanes.bulk_loads and lanes.watch is not None:
        lanes.watch.copies_landed()


def _arrive_later(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``cp.async.mbarrier.arrive``: an arrival once the thread's earlier copies are complete."""
    counted = not modifiers.flag("noinc")
    space = modifiers.one("shared", "shared::cta", "shared::cluster")
    if not modifiers.flag("arrive") or modifiers.types() != ("b64",):
        raise unsupported(instruction)
    modifiers.done()
    at = mbarrier_objects.place_of(instruction, lowering, instruction.operands[0], space)

    def run(lanes: Batch, mask: Mask | None) -> None:
        before = list(lanes.async_copies)
        for address, active in at.each(lanes, mask):
            mbarrier_objects.arrive_later(
                lanes, instruction, address, active, lambda due: land(lanes, before, due), counted=counted
            )

    return run


# -- without effect on values --------------------------------------------------------------------------------
@opcode("membar", "fence", forms="accepted; threads run in step, so they order nothing that is not in order")
def _fence(instruction: Instruction, lowering: Lowering) -> Operation:
    del lowering
    proxy = "proxy" in instruction.modifiers
    return lambda lanes, mask: lanes.fenced(mask, proxy=proxy)


@opcode(
    "prefetch", "prefetchu", "nanosleep", "griddepcontrol", "pmevent", "discard",
    "applypriority", "setmaxnreg", forms="accepted; threads run in step, so they change nothing",
)  # fmt: skip
def _nothing(instruction: Instruction, lowering: Lowering) -> Operation:
    del instruction, lowering
    return no_effect


def no_effect(lanes: Batch, mask: Mask | None) -> None:
    """Operation without effect."""
    del lanes, mask

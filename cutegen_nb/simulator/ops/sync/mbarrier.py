"""``mbarrier`` instructions (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

A wait that fails returns false and lets other threads run. Threads that come back to it stay there until
some mbarrier changes (``machine.schedule`` asks :meth:`MbarrierWait.blocked`). An arrival that follows
asynchronous copies happens when a thread waits at its barrier, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import S64, U32, U64, Array, Value
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ops.sync.mbarrier_objects import (
    MbarrierOperand,
    Mbarriers,
    arrive_at,
    complete_bytes,
    deliver,
    mask_of,
    mbarriers_of,
    misuse,
    place_of,
    states_at,
    store_states,
    words_at,
)
from cutegen_nb.simulator.ptx.faults import Deadlock, place, unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask
from cutegen_nb.simulator.state.mbarrier import MOST_ARRIVALS, States, pending_of, phase_of

TRIES = 5_000
"""Number of failed waits in a row, with no change of any mbarrier, after which a deadlock is reported."""
_ORDERS = ("release", "acquire", "relaxed", "cta", "cluster")
"""Modifiers for memory order and scope, which change nothing here."""
_WAITS = ("test_wait", "try_wait")


# -- instructions --------------------------------------------------------------------------------------------
@opcode(
    "mbarrier",
    forms="init, inval, arrive and arrive_drop (count, noComplete, expect_tx), expect_tx, complete_tx, "
    "test_wait and try_wait (state, parity), pending_count; shared::cta or generic",
)
def _mbarrier(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    what = modifiers.one("init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", *_WAITS)
    if modifiers.flag("pending_count"):
        return _pending_count(instruction, lowering)
    space = modifiers.one("shared", "shared::cta", "shared::cluster")
    options = {name for name in ("parity", "noComplete", "expect_tx") if modifiers.flag(name)}
    modifiers.skip(*_ORDERS)
    modifiers.done()
    if kind != "b64" or not what:
        raise unsupported(instruction)
    if what in _WAITS:
        origin = instruction.operands[2]
        return MbarrierWait(
            at=place_of(instruction, lowering, instruction.operands[1], space),
            slot=lowering.source(instruction, origin, "u32" if "parity" in options else "b64"),
            parity="parity" in options,
            put=lowering.writer(instruction, instruction.operands[0]),
        )
    if what in {"arrive", "arrive_drop"}:
        return _arrive(instruction, lowering, space, (what == "arrive_drop", "expect_tx" in options))
    at = place_of(instruction, lowering, instruction.operands[0], space)
    if what == "inval":
        return _invalidate(at)
    slot = lowering.source(instruction, instruction.operands[1], "u32")
    return _initialise(at, slot) if what == "init" else _transactions(at, slot, expects=what == "expect_tx")


def _initialise(at: MbarrierOperand, slot: int) -> Operation:
    def run(lanes: Batch, mask: Mask | None) -> None:
        counts = lanes.full(lanes.registers[slot], U32).astype(S64)
        for address, active in at.each(lanes, mask):
            wrong = active & ((counts < 1) | (counts > MOST_ARRIVALS))
            if wrong.any():
                raise misuse(
                    lanes, at.instruction, wrong,
                    f"initialises an mbarrier with {int(counts[wrong][0])} arrivals|"
                    f"Use 1 to {MOST_ARRIVALS}.",
                )  # fmt: skip
            # Each CTA takes the count of its first active thread; 0 marks a CTA without any.
            count = np.take_along_axis(counts, active.argmax(axis=1)[:, None], axis=1)[:, 0]
            nothing = np.zeros_like(count)
            states = States(pending=count, expected=count, bytes_left=nothing, phase=nothing, valid=count > 0)
            store_states(lanes, address, active, states)
            lanes.released(mask, ("mbarrier", address))

    return run


def _invalidate(at: MbarrierOperand) -> Operation:
    def run(lanes: Batch, mask: Mask | None) -> None:
        for address, active in at.each(lanes, mask):
            states_at(lanes, at.instruction, address, active)
            words_at(lanes, address)[active.any(axis=1)] = 0
            mbarriers_of(lanes).changed()

    return run


def _transactions(at: MbarrierOperand, slot: int, *, expects: bool) -> Operation:
    """Operation of ``expect_tx`` and ``complete_tx``: add or subtract bytes of the phase's transactions."""

    def run(lanes: Batch, mask: Mask | None) -> None:
        amounts = lanes.full(lanes.registers[slot], U32).astype(S64).reshape(-1)
        for address, threads, rows in at.targets(lanes, mask):
            total = np.bincount(rows, amounts[threads], lanes.ctas).astype(S64)
            complete_bytes(lanes, at.instruction, address, -total if expects else total)

    return run


def _arrive(instruction: Instruction, lowering: Lowering, space: str, kind: tuple[bool, bool]) -> Operation:
    """Operation of an arrival; ``kind`` is (``arrive_drop``, ``.expect_tx``)."""
    drop, expects = kind
    target, origin, *rest = instruction.operands
    at = place_of(instruction, lowering, origin, space)
    put = lowering.writer(instruction, target)
    slot = lowering.source(instruction, rest[0], "u32") if rest else lowering.constant(np.uint32(1))

    def run_in_cluster(lanes: Batch, mask: Mask | None) -> None:
        """Arrive at mbarriers of any CTA of the cluster; such arrivals return no token."""
        amounts = lanes.full(lanes.registers[slot], U32).astype(S64).reshape(-1)
        for address, threads, rows in at.targets(lanes, mask):
            given = np.zeros((lanes.ctas, lanes.threads), S64)
            np.add.at(given, (rows, threads % lanes.threads), amounts[threads])
            counts = np.zeros_like(given)
            np.add.at(counts, (rows, threads % lanes.threads), 1)
            extra = given.sum(axis=1) if expects else None
            arrive_at(lanes, instruction, address, counts if expects else given, extra, drop=drop)

    def run(lanes: Batch, mask: Mask | None) -> None:
        amounts = lanes.full(lanes.registers[slot], U32).astype(S64)
        result: Value = None
        for address, active in at.each(lanes, mask):
            given = np.where(active, amounts, 0)
            # With ``.expect_tx`` the operand is a number of bytes, and each thread arrives once.
            counts = active.astype(S64) if expects else given
            extra = given.sum(axis=1) if expects else None
            tokens = arrive_at(lanes, instruction, address, counts, extra, drop=drop)
            result = tokens if result is None else np.where(active, tokens, result)
        put(lanes, mask, result)

    return run_in_cluster if space == "shared::cluster" else run


def _pending_count(instruction: Instruction, lowering: Lowering) -> Operation:
    (slot,) = lowering.sources(instruction, ("b64",))
    return lowering.assign(instruction, lambda registers: pending_of(registers[slot].view(U64)).astype(U32))


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierWait:
    """Operation of one test_wait or try_wait."""

    at: MbarrierOperand
    """Address of the mbarrier."""
    slot: int
    """Slot of the register with the token or the parity."""
    parity: bool
    """True if the register holds a parity (``.parity``), else a token."""
    put: Callable[[Batch, Mask | None, Value], None]
    """Writer of the resulting predicate."""

    def __call__(self, lanes: Batch, mask: Mask | None) -> None:
        """Write the predicate that is true if the phase has ended.

        Raises:
            Deadlock: waits have failed more than :data:`TRIES` times since any mbarrier last changed.
        """
        known = mbarriers_of(lanes)
        value = lanes.registers[self.slot]
        wanted = value.view(U32) & U32.type(1) if self.parity else phase_of(value.view(U64))
        truth: Value = None
        failed = np.zeros((1, 1), np.bool_)
        for address, active in self.at.each(lanes, mask):
            if known.arrivals:
                # A thread whose phase has ended passes, and makes nothing arrive that it did not wait for.
                waiting = phase_of(words_at(lanes, address))[:, None] == wanted.astype(U64)
                deliver(lanes, address, active & waiting)
            states = states_at(lanes, self.at.instruction, address, active)
            # The waited-for phase has ended if the current one has the other parity.
            ended = states.phase[:, None] != wanted.astype(S64)
            passed = active & ended
            if passed.any():
                known.idle = 0
                lanes.acquired(mask_of(lanes, passed), ("mbarrier", address))
            failed = failed | (active & ~ended)
            truth = ended if truth is None else np.where(active, ended, truth)
        if failed.any():
            self._failed(lanes, known, failed)
        self.put(lanes, mask, truth)

    def blocked(self, lanes: Batch) -> Array | None:
        """Threads whose wait would fail again, bool (ctas, threads); None if there is none.

        Their last wait here failed, and no mbarrier has changed since.
        """
        if lanes.mbarriers is None:
            return None
        version, failed = lanes.mbarriers.failed.get(id(self), (-1, None))
        return failed if version == lanes.mbarriers.version else None

    def _failed(self, lanes: Batch, known: Mbarriers, failed: Array) -> None:
        before = self.blocked(lanes)
        known.failed[id(self)] = (known.version, failed if before is None else failed | before)
        known.idle += 1
        if known.idle > TRIES:
            raise self._deadlock(lanes, failed)

    def _deadlock(self, lanes: Batch, failed: Array) -> Deadlock:
        instruction = self.at.instruction
        lane = int(np.flatnonzero(failed)[0])
        thread, cta = lanes.place_of(lane)
        row = lane // lanes.threads
        address, _ = next(self.at.each(lanes, Mask(lanes, failed)))
        states = States.read(words_at(lanes, address))
        warps = sorted({int(one) // WARP for one in np.flatnonzero(failed[row])})
        bytes_left = int(states.bytes_left[row])
        waits = f"{int(states.pending[row])} of {int(states.expected[row])} arrivals" + (
            f" and {bytes_left} bytes of transactions" if bytes_left else ""
        )
        return Deadlock(
            f"Deadlock in CTA {cta}: {int(failed[row].sum())} threads of warps {', '.join(map(str, warps))} "
            f"wait at {instruction.name} {place(instruction)} for the mbarrier at byte {address} of shared "
            f"memory. Its phase (parity {int(states.phase[row])}) still lacks {waits}, and nobody is left to "
            "bring them. Make every arrival it counts happen, and check the parity that is waited for.",
            instruction, thread=thread, cta=cta,
        )  # fmt: skip


def is_wait(instruction: Instruction) -> bool:
    """Return whether the instruction is a ``test_wait`` or ``try_wait``."""
    return instruction.opcode == "mbarrier" and not set(_WAITS).isdisjoint(instruction.modifiers)


def wait_of(operations: Sequence[Operation]) -> MbarrierWait | None:
    """Wait that a segment begins with; None if its first operation is another."""
    first = operations[0] if operations else None
    return first if isinstance(first, MbarrierWait) else None

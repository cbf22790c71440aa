"""``mbarrier`` instructions (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

A wait that fails gives false and lets others run: threads that come back to it stay there until some
mbarrier changes (``schedule`` asks :meth:`Wait.blocked`). An arrival that follows asynchronous copies happens
when somebody waits at its barrier, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.faults import Deadlock, place, unsupported
from cutegen_nb.simulator.lanes import WARP, Lanes, Mask
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.mbarrier_objects import (
    Mbarriers,
    Place,
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
from cutegen_nb.simulator.mbarrier_state import MOST, States, pending_of, phase_of
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import S64, U32, U64, Array, Value

TRIES = 5_000
"""Waits that fail one after the other, nothing else happening to any mbarrier, before it is a deadlock."""
_ORDERS = ("release", "acquire", "relaxed", "cta", "cluster")
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
        return Wait(
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


def _initialise(at: Place, slot: int) -> Operation:
    def run(lanes: Lanes, mask: Mask | None) -> None:
        counts = lanes.full(lanes.registers[slot], U32).astype(S64)
        for address, active in at.each(lanes, mask):
            wrong = active & ((counts < 1) | (counts > MOST))
            if wrong.any():
                raise misuse(
                    lanes, at.instruction, wrong,
                    f"initialises an mbarrier with {int(counts[wrong][0])} arrivals|Use 1 to {MOST}.",
                )  # fmt: skip
            count = np.take_along_axis(counts, active.argmax(axis=1)[:, None], axis=1)[:, 0]
            nothing = np.zeros_like(count)
            states = States(pending=count, expected=count, bytes_left=nothing, phase=nothing, valid=count > 0)
            store_states(lanes, address, active, states)
            lanes.released(mask, ("mbarrier", address))

    return run


def _invalidate(at: Place) -> Operation:
    def run(lanes: Lanes, mask: Mask | None) -> None:
        for address, active in at.each(lanes, mask):
            states_at(lanes, at.instruction, address, active)
            words_at(lanes, address)[active.any(axis=1)] = 0
            mbarriers_of(lanes).changed()

    return run


def _transactions(at: Place, slot: int, *, expects: bool) -> Operation:
    def run(lanes: Lanes, mask: Mask | None) -> None:
        amounts = lanes.full(lanes.registers[slot], U32).astype(S64)
        for address, active in at.each(lanes, mask):
            total = np.where(active, amounts, 0).sum(axis=1)
            complete_bytes(lanes, at.instruction, address, -total if expects else total)

    return run


def _arrive(instruction: Instruction, lowering: Lowering, space: str, kind: tuple[bool, bool]) -> Operation:
    """``kind``: whether it drops out of later phases, and whether it expects bytes."""
    drop, expects = kind
    target, origin, *rest = instruction.operands
    at = place_of(instruction, lowering, origin, space)
    put = lowering.writer(instruction, target)
    slot = lowering.source(instruction, rest[0], "u32") if rest else lowering.constant(np.uint32(1))

    def run(lanes: Lanes, mask: Mask | None) -> None:
        amounts = lanes.full(lanes.registers[slot], U32).astype(S64)
        result: Value = None
        for address, active in at.each(lanes, mask):
            given = np.where(active, amounts, 0)
            counts = active.astype(S64) if expects else given
            extra = given.sum(axis=1) if expects else None
            tokens = arrive_at(lanes, instruction, address, counts, extra, drop=drop)
            result = tokens if result is None else np.where(active, tokens, result)
        put(lanes, mask, result)

    return run


def _pending_count(instruction: Instruction, lowering: Lowering) -> Operation:
    (slot,) = lowering.sources(instruction, ("b64",))
    return lowering.assign(instruction, lambda registers: pending_of(registers[slot].view(U64)).astype(U32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One test_wait or try_wait."""

    at: Place
    """The mbarrier."""
    slot: int
    """Register with the token or the parity."""
    parity: bool
    """Whether it is a parity."""
    put: Callable[[Lanes, Mask | None, Value], None]
    """Writer of the answer."""

    def __call__(self, lanes: Lanes, mask: Mask | None) -> None:
        """Answer whether the phase has ended.

        Raises:
            Deadlock: the same waits have failed :data:`TRIES` times and no mbarrier has changed.
        """
        known = mbarriers_of(lanes)
        value = lanes.registers[self.slot]
        wanted = value.view(U32) & U32.type(1) if self.parity else phase_of(value.view(U64))
        truth: Value = None
        failed = np.zeros((1, 1), np.bool_)
        for address, active in self.at.each(lanes, mask):
            if known.arrivals:
                deliver(lanes, self.at.instruction, address, active)
            states = states_at(lanes, self.at.instruction, address, active)
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

    def blocked(self, lanes: Lanes) -> Array | None:
        """Threads, bool (ctas, threads), that would fail again; None where there is none."""
        if lanes.mbarriers is None:
            return None
        version, failed = lanes.mbarriers.failed.get(id(self), (-1, None))
        return failed if version == lanes.mbarriers.version else None

    def _failed(self, lanes: Lanes, known: Mbarriers, failed: Array) -> None:
        before = self.blocked(lanes)
        known.failed[id(self)] = (known.version, failed if before is None else failed | before)
        known.idle += 1
        if known.idle > TRIES:
            raise self._deadlock(lanes, failed)

    def _deadlock(self, lanes: Lanes, failed: Array) -> Deadlock:
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
    """Whether threads wait at the instruction."""
    return instruction.opcode == "mbarrier" and not set(_WAITS).isdisjoint(instruction.modifiers)


def wait_of(operations: Sequence[Operation]) -> Wait | None:
    """The wait that straight code begins with, None for any other."""
    first = operations[0] if operations else None
    return first if isinstance(first, Wait) else None

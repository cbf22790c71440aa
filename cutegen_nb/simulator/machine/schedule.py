"""Scheduler of a batch: all lanes run together while they agree, else the lowest program counter first.

Lanes that diverged meet again where their paths join, because the compiler places a join after the code that
leads to it. After :data:`FAIR_TURN_STEPS` steps the highest program counter goes first instead, as far as it
comes. So a loop that waits for a thread further on ends. The next such turn comes after half as many steps.
CTAs of one batch run side by side and batches one after the other: a kernel whose CTAs wait for CTAs of a
later batch never ends.
"""

from __future__ import annotations

import math
import time

import numpy as np

from cutegen_nb.simulator.machine import barriers
from cutegen_nb.simulator.machine.barriers import is_barrier
from cutegen_nb.simulator.machine.program import Program, Segment
from cutegen_nb.simulator.numbers.values import S32, U32, Array, Value
from cutegen_nb.simulator.ops.bulk import stores as bulk_stores
from cutegen_nb.simulator.ops.sync.async_copy import arrive
from cutegen_nb.simulator.ops.tensor.allocation import check_freed
from cutegen_nb.simulator.ops.tensor.work import finish
from cutegen_nb.simulator.ops.warp.shuffle import by_thread, by_warp, warp_count
from cutegen_nb.simulator.ops.warpgroup.pending import check_waited
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, OutOfBounds, OutOfTime, Trapped, mistake, place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch, Mask

FAIR_TURN_STEPS = 1024
"""Steps (segments run) after which the highest program counter goes first for the first time."""
_LEAST_PATIENCE = 32
"""Least number of steps between such turns; each turn halves it. A lock that 96 warps want needs 96 turns."""


def run_batch(program: Program, lanes: Batch) -> None:
    """Run the lanes of a batch from the first segment until all have exited.

    Raises:
        SimulatorFault: the launch cannot go on.
    """
    segments, tally = program.segments, lanes.tally
    at, done = 0, len(segments)
    while at < done:
        segment = segments[at]
        tally.warps[at] += lanes.warps
        tally.threads[at] += lanes.lane_count
        lanes.clock += len(segment.instructions)
        execute(segment, lanes, None)
        if segment.end is None:
            at += 1
            continue
        following = _after(segment, at, lanes, None, done)
        if not isinstance(following, int):
            at = _Divergence(program, lanes, following).run()
            continue
        if following <= at and lanes.loops is not None:
            lanes.loops.turned(at, following, lanes, None)
        at = following
    arrive(lanes, None, None)
    bulk_stores.complete(lanes, None, None)
    finish(lanes)
    check_freed(lanes)
    check_waited(lanes)


def execute(segment: Segment, lanes: Batch, mask: Mask | None) -> None:
    """Run a segment's operations for the active lanes.

    Raises:
        SimulatorFault: the launch cannot go on; SimulatorMistake, without a verdict, if the simulator failed.
        KeyboardInterrupt: with the place in the kernel.
    """
    if time.monotonic() > lanes.stop_at:
        raise _out_of_time(segment, lanes, mask)
    position = 0
    try:
        for position, operation in enumerate(segment.operations):  # noqa: B007 - the handler reads it
            operation(lanes, mask)
    except SIMULATOR_DEFECTS as problem:
        raise mistake(segment.instructions[position][0], problem) from problem
    except KeyboardInterrupt:
        raise _interrupted(segment, lanes, mask) from None


def _interrupted(segment: Segment, lanes: Batch, mask: Mask | None) -> KeyboardInterrupt:
    """KeyboardInterrupt with the place in the kernel, to find a loop that never ends."""
    _, thread, cta, where = _whereabouts(segment, lanes, mask)
    return KeyboardInterrupt(f"in a kernel: thread {thread} of CTA {cta} was {where}")


def _whereabouts(
    segment: Segment, lanes: Batch, mask: Mask | None
) -> tuple[Instruction | None, tuple[int, int, int], tuple[int, int, int], str]:
    """Instruction, thread, CTA and place of the first active lane; a loop repeats at a segment's end."""
    at = segment.end or (segment.instructions[0][0] if segment.instructions else None)
    thread, cta = lanes.place_of(0 if mask is None else int(mask.index[0]))
    return at, thread, cta, f"at {at.name} {place(at)}" if at else "at no known place"


def _out_of_time(segment: Segment, lanes: Batch, mask: Mask | None) -> OutOfTime:
    """Fault of lanes that still run at the deadline."""
    at, thread, cta, where = _whereabouts(segment, lanes, mask)
    running = f"Time was up while the kernel still ran: thread {thread} of CTA {cta} was {where}."
    return OutOfTime(f"{running} {_likely_cause(lanes)}", at, thread=thread, cta=cta)


def _likely_cause(lanes: Batch) -> str:
    """Say what probably keeps a launch running at its deadline, and what to do.

    A kernel of which CTAs have ended hardly has a loop without an end.
    """
    if lanes.earlier:
        total = math.prod(lanes.grid)
        return (
            f"{lanes.earlier:,} of {total:,} CTAs had ended, so the launch is probably too large for the "
            "simulator: give the problem smaller inputs, or launch less work. Else a loop there never ends."
        )
    if lanes.later:
        return (
            f"A loop there may never end; else launch less work. {lanes.later} CTAs of the grid have not "
            "started: they run when these have ended, so a wait for one of them never ends. On a GPU only a "
            "cooperative launch promises that all CTAs run at once; launch it so (cooperative=True), with no "
            "more CTAs than the device holds."
        )
    return "A loop there may never end; else launch less work."


def _after(segment: Segment, at: int, lanes: Batch, mask: Mask | None, done: int) -> int | Array:
    """Next segment of the active lanes: one for all, or one for each lane (only active lanes count)."""
    end = segment.end
    assert end is not None
    if end.opcode in {"bar", "barrier"}:
        barriers.passed(segment, lanes, mask)
        return at + 1
    if end.opcode == "brx":
        return _indexed(segment, lanes, mask)
    target = done if end.opcode in {"ret", "exit"} else segment.target
    if segment.guard < 0:
        if end.opcode in {"trap", "brkpt"}:
            raise _trapped(segment, lanes, mask)
        return target
    predicate: Value = lanes.registers[segment.guard]
    if predicate.ndim == 0:
        taken = bool(predicate) != segment.negated
        if taken and end.opcode in {"trap", "brkpt"}:
            raise _trapped(segment, lanes, mask)
        return target if taken else at + 1
    if segment.negated:
        predicate = np.logical_not(predicate)
    active = predicate if mask is None else np.logical_and(predicate, mask.array)
    if not active.any():
        return at + 1
    if end.opcode in {"trap", "brkpt"}:
        raise _trapped(segment, lanes, Mask(lanes, active))
    # ``active`` may be broadcast over CTAs: the active lanes are counted in its shape.
    total = active.size if mask is None else np.broadcast_to(mask.array, active.shape).sum()
    if np.count_nonzero(active) == total:
        return target
    segment.end_tally.divergent += warp_count(lanes, active, mask)
    return np.where(predicate, np.int32(target), np.int32(at + 1))


def _indexed(segment: Segment, lanes: Batch, mask: Mask | None) -> int | Array:
    """Next segment of ``brx.idx``. Raises OutOfBounds if an index is beyond the list."""
    index = lanes.registers[segment.operand_slots[0]].view(U32)
    table = np.array(segment.targets, S32)
    beyond = np.broadcast_to(index >= len(table), (lanes.ctas, lanes.threads))
    if mask is not None:
        beyond = beyond & mask.array
    if beyond.any():
        raise _beyond(segment, lanes, int(np.flatnonzero(beyond)[0]))
    if index.ndim == 0:
        return int(table[int(index)])
    return table[np.minimum(index, len(table) - 1)]


def _beyond(segment: Segment, lanes: Batch, lane: int) -> OutOfBounds:
    """Fault of a thread whose branch index is beyond the list."""
    assert segment.end is not None
    value = np.broadcast_to(lanes.registers[segment.operand_slots[0]].view(U32), (lanes.ctas, lanes.threads))
    thread, cta = lanes.place_of(lane)
    return OutOfBounds(
        f"Thread {thread} of CTA {cta} branches to entry {int(value.flat[lane])} of a list of "
        f"{len(segment.targets)} ({segment.end.name}, {place(segment.end)}). Check the index first.",
        segment.end, thread=thread, cta=cta,
    )  # fmt: skip


def _trapped(segment: Segment, lanes: Batch, mask: Mask | None) -> Trapped:
    assert segment.end is not None
    lane = 0 if mask is None else int(mask.index[0])
    thread, cta = lanes.place_of(lane)
    return Trapped(
        f"Thread {thread} of CTA {cta} executed {segment.end.name} ({place(segment.end)}): an assertion or "
        "an unreachable place in the kernel. Correct the condition that leads there.",
        segment.end, thread=thread, cta=cta,
    )  # fmt: skip


class _Divergence:
    """Lanes at different segments, run until they are at one again.

    ``pc`` has shape (1, threads) while all CTAs agree, else (ctas, threads).
    """

    def __init__(self, program: Program, lanes: Batch, pc: Array) -> None:
        self._segments = program.segments
        self._lanes = lanes
        self._done = len(program.segments)
        self._pc = self._shaped(pc)
        self._released: Array = np.zeros(self._pc.shape, np.bool_)
        self._steps = 0
        self._patience = FAIR_TURN_STEPS
        self._tries = 0
        self._late_turns = 0

    def run(self) -> int:
        """Run until all lanes of the batch are at one segment and return it (the end if all have exited)."""
        while True:
            low = int(self._pc.min())
            if low == int(self._pc.max()):
                return low
            try:
                at, active, ahead = self._choose(low)
                self._execute(at, Mask(self._lanes, active), ahead=ahead)
            except KeyboardInterrupt as stop:
                raise stop if stop.args else self._interrupted(low) from None
            if ahead:
                self._steps = 0

    def _interrupted(self, at: int) -> KeyboardInterrupt:
        return _interrupted(self._segments[at], self._lanes, Mask(self._lanes, self._pc == at))

    def _shaped(self, pc: Array) -> Array:
        ctas = 1 if pc.shape[0] == 1 else self._lanes.ctas
        return np.ascontiguousarray(np.broadcast_to(pc, (ctas, self._lanes.threads)), dtype=np.int32)

    # -- choosing -------------------------------------------------------------------------------------------
    def _choose(self, low: int) -> tuple[int, Array, bool]:
        """Choose the next segment, its lanes, and whether these may run past other lanes."""
        late_first = self._steps >= self._patience
        if not late_first and not self._meets(low):
            self._steps += 1
            return low, self._pc == low, False
        places = [int(one) for one in np.unique(self._pc) if one != self._done]
        if late_first:
            self._steps = 0
            self._patience = max(_LEAST_PATIENCE, self._patience // 2)
            self._late_turns += 1
            free = [at for at in places if not self._meets(at)]
            met = self._met(places, free) if free and self._late_turns % 2 == 0 else None
            if met is not None:
                return met
            if free:
                return free[-1], self._pc == free[-1], True
        while True:
            for at in places:
                active = self._ready(at)
                if active.any():
                    self._widen(active.shape[0])
                    return at, active, False
            waits = [at for at in places if self._segments[at].wait is not None]
            if not self._release(waiting=bool(waits)):
                # Only waits are left: try them in turn. A loop that gives up goes on, any other deadlocks.
                self._tries += 1
                at = waits[self._tries % len(waits)]
                return at, self._pc == at, False

    def _met(self, places: list[int], free: list[int]) -> tuple[int, Array, bool] | None:
        """Lanes that waited for one another and may go on, while others spin; None if there are none."""
        spinning = by_warp_bits(self._lanes, np.isin(self._pc, free)) != 0
        # A warp meets others when all of its lanes are there, so a lane that spins keeps its warp back.
        met = np.where(_each(self._lanes, spinning), np.int32(free[0]), self._pc)
        released = barriers.released(self._lanes, self._segments, met, self._released)
        self._widen(released.shape[0])
        self._released = released
        for at in places:
            if self._meets(at) and (active := self._ready(at)).any():
                self._widen(active.shape[0])
                return at, active, True
        return None

    def _meets(self, at: int) -> bool:
        """Return whether threads have to meet or wait at a segment."""
        segment = self._segments[at]
        return segment.warp_wide is not None or segment.wait is not None or is_barrier(segment)

    def _ready(self, at: int) -> Array:
        """Lanes at a segment that may execute it: released, not blocked, or with their warp complete."""
        here = self._pc == at
        segment = self._segments[at]
        if is_barrier(segment):
            return here & self._released
        if segment.wait is not None:
            blocked = segment.wait.blocked(self._lanes)
            return here if blocked is None else here & ~blocked
        if segment.warp_wide is None:
            return here
        here_bits = by_warp_bits(self._lanes, here)
        live_bits = by_warp_bits(self._lanes, self._pc != self._done)
        member = self._lanes.registers[segment.member].view(U32)
        # Exited threads are not waited for, whatever the member mask names.
        missing = live_bits & ~here_bits
        if member.ndim == 0:
            complete = (missing & np.uint32(member)) == 0
            return here & _each(self._lanes, complete)
        each = np.broadcast_to(member, np.broadcast_shapes(member.shape, here.shape))
        lacking = by_thread(self._lanes, by_warp(self._lanes, each, U32) & missing[..., None])
        return here & (lacking == 0)

    def _release(self, *, waiting: bool) -> bool:
        """Release threads whose barrier is complete.

        Return False if none is complete but threads wait for an mbarrier. Raises Deadlock if none wait.
        """
        released = barriers.released(self._lanes, self._segments, self._pc, self._released)
        if not (released & ~self._released).any():
            if waiting:
                return False
            raise barriers.deadlock(self._lanes, self._segments, self._pc)
        self._widen(released.shape[0])
        self._released = released
        return True

    def _widen(self, ctas: int) -> None:
        """Give every CTA its own row of program counters once CTAs differ."""
        if ctas > self._pc.shape[0]:
            self._pc = np.repeat(self._pc, ctas, axis=0)
            self._released = np.repeat(self._released, ctas, axis=0)

    # -- executing ------------------------------------------------------------------------------------------
    def _execute(self, at: int, mask: Mask, *, ahead: bool) -> None:
        """Run a segment for some lanes, and its successors until the lanes diverge, wait, or reach others."""
        lanes, tally = self._lanes, self._lanes.tally
        outside = self._pc[~mask.array]
        others = int(outside.min()) if len(outside) else self._done
        while True:
            segment = self._segments[at]
            tally.warps[at] += mask.warps
            tally.threads[at] += mask.threads
            lanes.clock += len(segment.instructions)
            execute(segment, lanes, mask)
            if is_barrier(segment):
                self._released = self._released & ~mask.array
            following = at + 1 if segment.end is None else _after(segment, at, lanes, mask, self._done)
            if not isinstance(following, int):
                break
            if following <= at and lanes.loops is not None:
                lanes.loops.turned(at, following, lanes, mask)
            # At the lowest other lane the paths may join, so the run ends there unless ``ahead``.
            alone = (ahead or following < others) and following < self._done and not self._meets(following)
            self._steps += 1
            if not alone or self._steps >= (FAIR_TURN_STEPS if ahead else self._patience):
                break
            at = following
        if isinstance(following, int):
            self._pc = np.where(mask.array, np.int32(following), self._pc)
            return
        moved = self._shaped(
            np.broadcast_to(following, np.broadcast_shapes(following.shape, (1, lanes.threads)))
        )
        self._pc = np.where(mask.array, moved, self._pc).astype(np.int32)
        if self._released.shape != self._pc.shape:
            self._released = np.broadcast_to(self._released, self._pc.shape).copy()


def by_warp_bits(lanes: Batch, truth: Array) -> Array:
    """Pack booleans of lanes into one 32-bit number a warp."""
    return Mask(lanes, truth).bits()


def _each(lanes: Batch, per_warp: Array) -> Array:
    return by_thread(lanes, np.broadcast_to(per_warp[..., None], (*per_warp.shape, 32)))

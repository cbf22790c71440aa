"""Skipping of loop iterations that only repeat: their counts are added, and their registers advanced.

A period is a number of iterations after which everything that steers the loop comes back or has advanced by
a constant: stage numbers modulo 2, 3, 4 or 6, phase bits, sectors of misaligned rows. After two equal periods
as many as possible are skipped; the last iterations, in which pipelines drain, are always executed.

Not skipped are loops with mbarriers, loops whose path or addresses depend on data, and in divergent code
loops in which threads wait for others. A branch over arithmetic alone that loaded data decide, as in the
error function, may go either way: its executions are extrapolated from two periods. Values accumulated over a
skipped loop are meaningless.
"""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.sampling.access_log import AccessLog, LogMark
from cutegen_nb.simulator.sampling.counts import CountReader, Counts
from cutegen_nb.simulator.sampling.loop_analysis import LoopAnalysis, analysed, periods_left
from cutegen_nb.simulator.sampling.open_loops import BatchCut, OpenLoops
from cutegen_nb.simulator.sampling.steps import Unchanged, advanced, same_steps, step_of
from cutegen_nb.simulator.state.batch import Batch, Mask

_STRIDE = 12
"""Turns between two checks of a loop for a repeating period: a multiple of 2, 3, 4 and 6 stages."""
_EARLY_LOOKS = frozenset({1, 3, 5, 7, 9, 13, 17, 25, 33})
"""Early turns at which a loop is checked too: the ends of periods of 2, 4, 8 and 16 turns."""
_LONGEST = 8 * _STRIDE
"""Longest period. Its 96 iterations hold 8 or 16 stages, and filters of 3 × 3 elements."""
_MARGIN = 4 / 3
"""Least number of periods executed before a comparison in the loop changes its result. Within a period a
register may run ahead of its steady advance."""
_LEAST_OF_DATA = 8
"""Shortest period, in turns, where data decide about branches over arithmetic."""
_LEAST_LAST = 4
"""Least number of iterations executed before a comparison in the loop changes its result."""


@dataclass(slots=True)
class _Look:
    """State of a batch at one turn of a loop."""

    counts: Counts
    """Counts so far."""
    registers: list[Value]
    """Value of each register."""
    mark: LogMark
    """Length of the log of accesses."""


@dataclass(slots=True)
class _Loop:
    """Loop in progress."""

    lanes: bytes
    """Active lanes; empty for all."""
    target: int
    """Segment that the branch goes to."""
    at: int
    """Segment that ends in the branch."""
    known: LoopAnalysis
    """Analysis of all segments from the target to the branch."""
    turns: int = 0
    """Number of times that its backward branch was taken."""
    looks: dict[int, _Look] = field(default_factory=dict)
    """Latest looks, by turn."""
    trace: deque[tuple[Value, ...]] = field(default_factory=lambda: deque(maxlen=2 * _LONGEST + 1))
    """Values of the traced registers at the latest turns."""

    def repeats(self, iterations: int, active: Array | None) -> bool:
        """Return whether each traced register moved in the last ``iterations`` as in those before.

        Values at the ends of periods do not tell: a stage number modulo 5 goes 0, 2, 4 in steps of 12.
        """
        turns = list(self.trace)[-2 * iterations - 1 :]
        return all(
            same_steps((early[at], early_next[at]), (late[at], late_next[at]), active)
            for early, early_next, late, late_next in zip(
                turns, turns[1:], turns[iterations:], turns[iterations + 1 :], strict=False
            )
            for at in range(len(self.known.steering))
        )


class LoopSkipper:
    """Observer of loops that skips their repeating iterations."""

    def __init__(self, program: Program, reader: CountReader) -> None:
        self._program = program
        self._reader = reader
        self._loops: dict[int, _Loop] = {}
        self._known: dict[tuple[int, ...], LoopAnalysis] = {}
        self._log: AccessLog | None = None
        self._open = OpenLoops(program)
        self._cut_at = math.inf
        self.skipped = 0.0
        """Warp instructions that were counted and not run since :meth:`begin`."""

    def begin(self, log: AccessLog | None, cut_at: float = math.inf) -> None:
        """Forget the loops of the batch before; accesses of the next one go to ``log``.

        From ``cut_at`` on, a reading of ``time.monotonic``, the batch is ended where its loops are known.
        """
        self._loops.clear()
        self._open.begin()
        self._cut_at = cut_at
        self._log = log
        self.skipped = 0.0

    def turned(self, at: int, target: int, lanes: Batch, mask: Mask | None) -> None:
        """Look at a loop every few turns, and skip iterations once two periods were equal.

        Raises:
            BatchCut: time is up for the batch, and what its loops have left is known.
        """
        self._open.turned(at, target, lanes, mask)
        if time.monotonic() > self._cut_at:
            factors = self._open.factors(np.array(lanes.tally.warps, np.int64) * self._reader.lengths)
            if factors is not None:
                raise BatchCut(factors)
        # The loops inside this one have ended and begin anew.
        for inner in [one for one in self._loops if target <= one < at]:
            del self._loops[inner]
        active = b"" if mask is None else mask.array.tobytes()
        loop = self._loops.get(at)
        if loop is None or loop.lanes != active:
            known = self._analysis(tuple(range(target, at + 1)))
            loop = self._loops[at] = _Loop(active, target, at, known)
        loop.turns += 1
        loop.trace.append(tuple([lanes.registers[slot] for slot in loop.known.steering]))
        if loop.turns in _EARLY_LOOKS or loop.turns % _STRIDE == 1:
            self._consider(loop, lanes, mask)

    def _consider(self, loop: _Loop, lanes: Batch, mask: Mask | None) -> None:
        """Skip periods that end now, the shortest that repeats."""
        now = loop.turns
        loop.looks[now] = self._look(loop, lanes)
        for middle in sorted(loop.looks, reverse=True):
            first = 2 * middle - now
            if now - middle > 2 * _LONGEST:
                loop.looks.pop(middle)
            elif first < middle and first in loop.looks:
                looks = (loop.looks[first], loop.looks[middle], loop.looks[now])
                if self._skip(loop, looks, now - middle, lanes, mask):
                    del self._loops[loop.at]
                    return

    def _look(self, loop: _Loop, lanes: Batch) -> _Look:
        mark = LogMark() if self._log is None else self._log.mark()
        counts = self._reader.read(lanes.tally, lanes.clock, self._rows(loop))
        return _Look(counts, list(lanes.registers), mark)

    def _rows(self, loop: _Loop) -> slice:
        return self._reader.of_segments(loop.target, loop.at)

    def _skip(
        self,
        loop: _Loop,
        looks: tuple[_Look, _Look, _Look],
        iterations: int,
        lanes: Batch,
        mask: Mask | None,
    ) -> bool:
        """Skip periods of ``iterations`` if the last two were equal; return whether any were skipped."""
        first, middle, last = looks
        period = last.counts - middle.counts
        before = middle.counts - first.counts
        if not self._reader.same(period, before, loop.target, loop.known.detours):
            return False
        if loop.known.detours and iterations < _LEAST_OF_DATA:
            return False
        body = np.flatnonzero(period.warps + before.warps)
        if body[0] < loop.target or body[-1] > loop.at:
            return False  # blocks laid out elsewhere, whose counts the looks do not have
        known = self._analysis(tuple(body.tolist()))
        if known.has_mbarrier or (mask is not None and known.synchronises):
            return False
        active = None if mask is None else mask.array
        steps = self._steps(known, loop.known.steering, looks, active)
        if steps is None or (iterations < _STRIDE and not _bends_stay(known, steps)):
            return False
        left = min(
            (periods_left(one, lanes.registers, steps, active) for one in known.comparisons), default=np.inf
        )
        if not np.isfinite(left):
            return False
        periods = int(left - max(_MARGIN, _LEAST_LAST / iterations))
        if periods < 1 or not loop.repeats(iterations, active):
            return False
        if self._log is not None and not self._log.repeats(first.mark, middle.mark):
            return False
        self._apply(loop, looks, periods, lanes, active)
        return True

    def _analysis(self, body: tuple[int, ...]) -> LoopAnalysis:
        """Analysis of the loop that consists of some segments."""
        if body not in self._known:
            self._known[body] = analysed(self._program, body)
        return self._known[body]

    @staticmethod
    def _steps(
        known: LoopAnalysis,
        traced: tuple[int, ...],
        looks: tuple[_Look, _Look, _Look],
        active: Array | None,
    ) -> dict[int, Value | Unchanged] | None:
        """Step of each steering register over a period; None if one neither repeats nor advances evenly."""
        steps: dict[int, Value | Unchanged] = {}
        early, middle, late = (one.registers for one in looks)
        for slot in known.steering:
            step = step_of(early[slot], middle[slot], late[slot], active)
            # Loaded values and compared floats must repeat, and so must what the trace does not hold.
            fixed = slot in known.loaded or slot in known.opaque or slot not in traced
            if step is None or (fixed and not isinstance(step, Unchanged)):
                return None
            steps[slot] = step
        return steps

    def _apply(
        self,
        loop: _Loop,
        looks: tuple[_Look, _Look, _Look],
        periods: int,
        lanes: Batch,
        active: Array | None,
    ) -> None:
        """Count ``periods`` more periods, and advance every register that advances by a constant."""
        first, middle, last = looks
        more = (last.counts - first.counts).times(periods / 2)
        self._reader.write(last.counts + more, lanes.tally, self._rows(loop))
        lanes.clock += int(more.clock)
        self.skipped += self._reader.instructions(more)
        for slot, value in enumerate(lanes.registers):
            if first.registers[slot] is value:
                continue
            step = step_of(first.registers[slot], middle.registers[slot], value, active)
            if step is not None and not isinstance(step, Unchanged):
                lanes.registers[slot] = advanced(value, step, periods)
        if self._log is not None:
            self._log.skip(middle.mark, periods)


def _bends_stay(known: LoopAnalysis, steps: dict[int, Value | Unchanged]) -> bool:
    """Return whether operations that need not advance evenly read only what repeats.

    A quotient k ÷ 9 seems not to change at all within a few iterations.
    """
    return all(isinstance(steps[slot], Unchanged) for slot in known.bent)

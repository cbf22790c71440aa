"""Loops in progress: how far they have come, and what they have left to do.

A CTA of a persistent kernel works on hundreds of tiles, so a batch of such CTAs does not end in time. The
batch may then be cut short, and the counts of each outermost loop are multiplied by the number of all its
turns ÷ the number of turns that ran. Straight code after such a loop is not counted; a batch is not cut while
another loop may follow. A loop that only some lanes execute is extrapolated only if it waits for other
threads: without a wait these lanes may have run far ahead of lanes that have not begun.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.sampling.loop_analysis import (
    SteeringComparison,
    analysed,
    difference_of,
    exit_comparison,
)
from cutegen_nb.simulator.state.batch import Batch, Mask

_LEAST_TURNS = 8
"""Fewest turns from which the remaining turns are extrapolated. The last of them may have only begun."""
_SPINNING = frozenset({"mbarrier", "bra", "nanosleep"})
"""Opcodes of a loop that only waits for an mbarrier; it may never turn."""
_SMALL = 0.02
"""Share of the warp instructions up to which a loop may stay without a known number of turns."""


class BatchCut(Exception):
    """A batch ended before its loops did."""

    def __init__(self, factors: Array) -> None:
        super().__init__("the batch was ended while loops had turns left")
        self.factors = factors
        """Factor of the counts of each segment."""


@dataclass(slots=True)
class _Open:
    """Loop of some lanes. Differences are those of the operands of the comparison that ends it."""

    target: int
    """Segment that its backward branch goes to."""
    at: int
    """Segment that ends in the branch."""
    active: Array | None
    """Lanes that take it; None for all."""
    first: Array | None
    """Difference at its first turn; None if no single comparison of integers ends it."""
    now: Array | None
    """Difference at its latest turn."""
    step: Array | None = None
    """Change of the difference in one turn; None until these lanes have turned twice."""

    def turns(self) -> tuple[float, float] | None:
        """Return the turns that ran and those that are left, in the mean of the lanes; None if unknown."""
        if self.first is None or self.step is None or self.now is None:
            return None
        first, step, now = np.broadcast_arrays(self.first, self.step, self.now)
        some = (
            np.ones(first.shape, np.bool_)
            if self.active is None
            else np.broadcast_to(self.active, first.shape)
        )
        first, step, now = first[some], step[some], now[some]
        if not step.all() or ((now < 0) == (step < 0)).any():
            return None
        return float(np.mean((now - first) / step)) + 1, float(np.mean(-now / step))


class OpenLoops:
    """Loops of a batch that have turned."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._exits: dict[tuple[int, int], SteeringComparison | None] = {}
        self._waits: dict[tuple[int, int], bool] = {}
        self._open: dict[tuple[int, bytes], _Open] = {}
        self._edges = [
            (segment.target, at)
            for at, segment in enumerate(program.segments)
            if segment.end is not None and segment.end.opcode == "bra" and segment.target <= at
        ]
        self._working = [edge for edge in self._edges if not self._opcodes(edge) <= _SPINNING]

    def begin(self) -> None:
        """Forget the loops of the batch before."""
        self._open.clear()

    def turned(self, at: int, target: int, lanes: Batch, mask: Mask | None) -> None:
        """Note a turn."""
        # The loops inside this one have ended and begin anew.
        for key in [key for key in self._open if target <= key[0] < at]:
            del self._open[key]
        key = (at, b"" if mask is None else mask.array.tobytes())
        ends = self._exit(target, at)
        now = None if ends is None else np.asarray(difference_of(ends, lanes.registers))
        active = None if mask is None else mask.array
        loop = self._open.get(key)
        if loop is None:
            self._open[key] = _Open(target, at, active, self._first(at, active, now), now)
            return
        if loop.step is None and now is not None and loop.now is not None:
            loop.step = now - loop.now
        loop.now = now

    def _first(self, at: int, active: Array | None, now: Array | None) -> Array | None:
        """Return the difference at the first turn of lanes that turn together for the first time.

        Lanes that turned with others before have had turns; the record of those is dropped.
        """
        for key, other in [(key, one) for key, one in self._open.items() if key[0] == at]:
            shared = _both(active, other.active)
            if now is not None and other.first is not None and shared.any():
                now = np.where(shared, other.first, now)
                del self._open[key]
        return now

    def factors(self, instructions: Array) -> Array | None:
        """Return the factor of each segment's counts if the batch ends now.

        Returns None where the number of turns of a loop that matters is unknown, and where no turn is left.

        ``instructions`` are the warp instructions of each segment so far.
        """
        if self._others_may_follow():
            return None
        found = np.ones(len(instructions))
        total = max(1.0, float(instructions.sum()))
        for target, at in self._outermost():
            rows = slice(target, at + 1)
            loops = [one for one in self._open.values() if one.at == at]
            known = [turns for one in loops if (turns := one.turns())]
            together = self._waiting(target, at) or any(
                one.active is None or one.active.all() for one in loops
            )
            matters = instructions[rows].sum() > _SMALL * total
            if not known or not together or self._is_inside_another(target, at):
                if matters:
                    return None
                continue
            ran, left = (sum(column) for column in zip(*known, strict=True))
            if left <= len(known):
                continue  # it has ended, or is about to
            if matters and min(one for one, _ in known) < _LEAST_TURNS:
                return None
            found[rows] = (ran + left) / ran
        return found if found.max() > 1 else None

    def _outermost(self) -> list[tuple[int, int]]:
        """Loops that are inside no other that has turned, as their first and last segments."""
        every = {(one.target, one.at) for one in self._open.values()}
        return [one for one in every if not any(_holds(other, one) for other in every)]

    def _is_inside_another(self, target: int, at: int) -> bool:
        """Return whether a loop around this one has not turned yet, so that its turns are not known."""
        return any(_holds(edge, (target, at)) for edge in self._edges)

    def _others_may_follow(self) -> bool:
        """Return whether a loop has not turned that is no part of one that has: it may come later."""
        turned = {(one.target, one.at) for one in self._open.values()}
        return any(
            edge not in turned and not any(_holds(one, edge) for one in turned) for edge in self._working
        )

    def _opcodes(self, edge: tuple[int, int]) -> set[str]:
        segments = self._program.segments[edge[0] : edge[1] + 1]
        return {item.opcode for segment in segments for item, _ in segment.instructions}

    def _waiting(self, target: int, at: int) -> bool:
        """Return whether threads wait for others in a loop."""
        if (target, at) not in self._waits:
            known = analysed(self._program, range(target, at + 1))
            self._waits[target, at] = known.synchronises or known.has_mbarrier
        return self._waits[target, at]

    def _exit(self, target: int, at: int) -> SteeringComparison | None:
        if (target, at) not in self._exits:
            self._exits[target, at] = exit_comparison(self._program, target, at)
        return self._exits[target, at]


def _both(one: Array | None, other: Array | None) -> Array:
    """Lanes that are active in both masks, where None is all of them."""
    if one is None or other is None:
        return np.ones((1, 1), np.bool_) if one is other else np.asarray(one if other is None else other)
    return one & other


def _holds(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer != inner and outer[0] <= inner[0] and inner[1] <= outer[1]

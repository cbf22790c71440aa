"""Loop nests: merging of a kernel's axes to loops, and the order of the loops in each tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cutegen_nb.authors.offline.fused.lowering import Axis, OperandAccess
from cutegen_nb.authors.offline.fused.plan import PlannedKernel
from cutegen_nb.authors.offline.graph.ir import ONE, Extent, elements
from cutegen_nb.authors.offline.graph.pitches import Pitch


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Axes that are neighbours in every tensor of a kernel, merged to one loop."""

    axes: tuple[Axis, ...]
    """Axes, slowest first; empty for a loop of one turn, such as the rows of a full reduction."""

    @property
    def extent(self) -> Extent:
        """Trip count."""
        return elements([axis.extent for axis in self.axes]) if self.axes else ONE


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Loops over rows and columns of a kernel, each slowest first."""

    rows: tuple[Loop, ...]
    """Loops over dimensions that are kept."""
    cols: tuple[Loop, ...]
    """Loops over dimensions that are reduced; empty in an element-wise kernel."""

    @property
    def all(self) -> tuple[Loop, ...]:
        """Loops over rows, then over columns."""
        return (*self.rows, *self.cols)

    def memory_order(self, access: OperandAccess) -> tuple[Loop, ...]:
        """Loops that run over a tensor, in the order of its memory, slowest first."""
        owner = {axis: loop for loop in self.all for axis in loop.axes}
        return tuple(dict.fromkeys(owner[axis] for axis in access.axes))

    def fastest(self, access: OperandAccess) -> Loop | None:
        """Loop with stride 1 in a tensor; None for a single number."""
        order = self.memory_order(access)
        return order[-1] if order else None


def loop_nest(
    kernel: PlannedKernel, *, merge: bool = True, pitches: Mapping[str, Pitch] | None = None
) -> LoopNest:
    """Merge the axes of a kernel to as few loops as its tensors allow; with `merge` off, one loop an axis.

    A tensor is dense unless `pitches` names it.
    """
    accesses = [_runs(access, (pitches or {}).get(access.value)) for access in kernel.accesses]
    rows = _merged(kernel.rows, accesses) if merge else [Loop((axis,)) for axis in kernel.rows]
    cols = _merged(kernel.cols, accesses) if merge else [Loop((axis,)) for axis in kernel.cols]
    # A kernel has at least one row, and one that reduces at least one column.
    alone = (Loop(()),)
    return LoopNest(tuple(rows) or alone, tuple(cols) or (alone if kernel.reductions else ()))


_Runs = list[tuple[Axis, ...]]
"""Axes of a tensor in the order of memory, in runs without a gap between them."""


def _runs(access: OperandAccess, pitch: Pitch | None) -> _Runs:
    runs: _Runs = [()]
    for dim, axes in enumerate(access.index):
        if pitch is not None and dim in pitch.breaks:
            runs.append(())
        runs[-1] += axes
    return runs


def _merged(axes: Sequence[Axis], accesses: Sequence[_Runs]) -> list[Loop]:
    groups: list[list[Axis]] = []
    for axis in axes:
        # Axes side by side in every tensor have one common stride, so one loop covers both.
        if groups and all(_neighbours(groups[-1][-1], axis, order) for order in accesses):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return [Loop(tuple(group)) for group in groups]


def _neighbours(slow: Axis, fast: Axis, runs: _Runs) -> bool:
    """Return whether a tensor has neither of the two axes, or both side by side in this order."""
    if not any(axis in run for axis in (slow, fast) for run in runs):
        return True
    return any((slow, fast) in pairwise(run) for run in runs)

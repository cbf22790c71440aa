"""The loops of a kernel after merging, and how the host views each tensor so that they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.ir import ONE, Extent, elements
from cutegen_nb.authors.offline.lowering import Access, Axis
from cutegen_nb.authors.offline.plan import Kernel


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """Axes that are neighbours in every tensor of a kernel, run as one."""

    axes: tuple[Axis, ...]
    """Slowest first; empty for a loop of one turn, such as the rows of a full reduction."""

    @property
    def extent(self) -> Extent:
        """Trip count."""
        return elements([axis.extent for axis in self.axes]) if self.axes else ONE


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops over rows and over columns, each slowest first."""

    rows: tuple[Loop, ...]
    """Kept."""
    cols: tuple[Loop, ...]
    """Reduced; empty in an element-wise kernel."""

    @property
    def all(self) -> tuple[Loop, ...]:
        """Rows, then columns."""
        return (*self.rows, *self.cols)

    def memory_order(self, access: Access) -> tuple[Loop, ...]:
        """The loops that run over a tensor, in the order of its memory, slowest first."""
        owner = {axis: loop for loop in self.all for axis in loop.axes}
        return tuple(dict.fromkeys(owner[axis] for axis in access.axes))

    def fastest(self, access: Access) -> Loop | None:
        """The loop along which neighbours lie side by side; None for a single number."""
        order = self.memory_order(access)
        return order[-1] if order else None


def loop_nest(kernel: Kernel, *, merge: bool = True) -> LoopNest:
    """Merge the axes of a kernel into as few loops as its tensors allow, or into none with `merge` off."""
    accesses = [access.axes for access in kernel.accesses]
    rows = _merged(kernel.rows, accesses) if merge else [Loop((axis,)) for axis in kernel.rows]
    cols = _merged(kernel.cols, accesses) if merge else [Loop((axis,)) for axis in kernel.cols]
    # A kernel has at least one row, and one that reduces at least one column.
    alone = (Loop(()),)
    return LoopNest(tuple(rows) or alone, tuple(cols) or (alone if kernel.reductions else ()))


def _merged(axes: Sequence[Axis], accesses: Sequence[tuple[Axis, ...]]) -> list[Loop]:
    groups: list[list[Axis]] = []
    for axis in axes:
        if groups and all(_neighbours(groups[-1][-1], axis, order) for order in accesses):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return [Loop(tuple(group)) for group in groups]


def _neighbours(slow: Axis, fast: Axis, order: tuple[Axis, ...]) -> bool:
    """Whether a tensor has either none of the two axes, or both side by side in this order."""
    if slow not in order and fast not in order:
        return True
    if slow not in order or fast not in order:
        return False
    return order.index(fast) == order.index(slow) + 1

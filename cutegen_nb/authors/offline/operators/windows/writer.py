"""Writer of kernels over sliding windows."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.windows.attributes import Window
from cutegen_nb.authors.offline.operators.windows.march import fits_march, march_plan
from cutegen_nb.authors.offline.operators.windows.matches import windows_in
from cutegen_nb.authors.offline.operators.windows.settled import settled
from cutegen_nb.authors.offline.operators.windows.strategies import (
    MARCH,
    MARCH_STRATEGY,
    PIPELINE,
    SHARED,
    WINDOW_STRATEGIES,
)
from cutegen_nb.authors.offline.operators.windows.text import window_text
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy


class WindowsWriter:
    """Writer of pooling, and of convolutions of each channel by itself."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the windows in a graph, in order."""
        return windows_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies in order. Raises Declined."""
        window = settled(call)
        if not fits_march(window, call.operands[0].dtype):
            return ()
        return WINDOW_STRATEGIES if _gains_by_staging(window) else (MARCH_STRATEGY,)

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        window = settled(call)
        plan = None
        if {MARCH, SHARED, PIPELINE} & set(applied):
            staged = SHARED in applied or PIPELINE in applied
            plan = march_plan(window, staged=staged, pipelined=PIPELINE in applied)
        return window_text(call, window, plan)


_NARROW = 4
"""Taps of a row up to which the windows of neighbouring threads use whole sectors without staging."""


def _gains_by_staging(window: Window) -> bool:
    """Return whether slices in shared memory are read more than once, or bring long rows of taps there.

    Windows of two by steps of two gained at most 0.7 % in seven problems of KernelBench level 2 on an H200,
    windows of 11 × 11 by steps of 11 gained 17 % on an H100.
    """
    overlaps = any(axis.span > axis.stride for axis in window.axes)
    return overlaps or window.axes[-1].window > _NARROW

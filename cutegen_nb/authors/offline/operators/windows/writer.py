"""Writer of kernels over sliding windows."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.windows.march import fits_march, march_plan
from cutegen_nb.authors.offline.operators.windows.matches import windows_in
from cutegen_nb.authors.offline.operators.windows.settled import settled
from cutegen_nb.authors.offline.operators.windows.strategies import (
    MARCH,
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
        return WINDOW_STRATEGIES if fits_march(settled(call), call.operands[0].dtype) else ()

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        window = settled(call)
        plan = None
        if {MARCH, SHARED, PIPELINE} & set(applied):
            staged = SHARED in applied or PIPELINE in applied
            plan = march_plan(window, staged=staged, pipelined=PIPELINE in applied)
        return window_text(call, window, plan)

"""Common parts of row kernels: tensors, accumulators and loop text."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.expressions import Expr, body, leaves
from cutegen_nb.authors.offline.expressions.hoisting import Hoist
from cutegen_nb.authors.offline.fused.accumulators import states
from cutegen_nb.authors.offline.fused.blocks import LONGEST_RUN
from cutegen_nb.authors.offline.fused.kernel_text import KernelRequest
from cutegen_nb.authors.offline.fused.loops import LoopNest, loop_nest
from cutegen_nb.authors.offline.fused.lowering import COLUMN
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide, operands, vector_elements
from cutegen_nb.authors.offline.fused.plan import PlannedKernel
from cutegen_nb.authors.offline.graph.ir import elements


def is_strided(kernel: PlannedKernel, nest: LoopNest) -> bool:
    """Return whether neighbours in memory belong to different rows.

    One thread a row then coalesces already.
    """
    over_both = [access for access in kernel.loads if len(nest.memory_order(access)) > 0]
    widest = max(over_both, key=lambda access: len(access.axes), default=None)
    return widest is not None and nest.fastest(widest) in nest.rows


class RowsText:
    """Base of the row kernels."""

    def __init__(self, request: KernelRequest) -> None:
        self.kernel, self.plan = request.kernel, request.plan
        self.variant, self.name = request.variant, request.name
        self.nest = loop_nest(self.kernel)
        self.loads = operands(self.kernel.loads, self.plan.dtype)
        self.element_stores = operands([s.access for s in self.kernel.element_stores], self.plan.dtype)
        self.row_stores = operands([s.access for s in self.kernel.row_stores], self.plan.dtype)
        self.counts = tuple(count for count, _ in self.kernel.counts)
        self.hoist = Hoist()
        self.states = states(self.kernel.passes, merge=self.variant.one_pass)
        self.varying = frozenset(t.register for t in self.loads if self.varies(t)) | {COLUMN}

    def varies(self, tensor: Operand) -> bool:
        """Return whether a tensor varies along a row."""
        return any(loop in self.nest.cols for loop in self.nest.memory_order(tensor.access))

    @property
    def tensors(self) -> tuple[Operand, ...]:
        """Arguments of the kernel: loads, then stores."""
        return (*self.loads, *self.element_stores, *self.row_stores)

    def wanted(self, exprs: dict[str, Expr], *, varying: bool) -> list[Operand]:
        """Loads that `exprs` use, of those that vary along a row or those that do not."""
        used = frozenset[str]().union(*(leaves(expr) for expr in exprs.values())) if exprs else frozenset()
        return [t for t in self.loads if t.register in used and self.varies(t) == varying]

    @property
    def rows(self) -> str:
        """Number of rows, as text."""
        return f"cute.size({self.tensors[0].tensor}, mode=[0])"

    @property
    def cols(self) -> str:
        """Number of columns, as text."""
        return f"cute.size({self.tensors[0].tensor}, mode=[1])"

    def wide_cols(self) -> list[str]:
        """Statements that make a single thread count a row's columns in 64 bits, where 32 do not suffice."""
        return ["cols = cutlass.Int64(cols)"] if is_wide(self.plan) else []

    def is_long(self, threads: int) -> bool:
        """Return whether a row is too long for one running sum in each of `threads` threads."""
        cols = elements([loop.extent for loop in self.nest.cols])
        return max(cols.full, cols.scaled) > threads * LONGEST_RUN

    def views(self) -> tuple[list[str], frozenset[str]]:
        """Launcher statements that view each tensor with two modes, and the functions that they call."""
        if len(self.nest.rows) == 1 and len(self.nest.cols) == 1:
            return [], frozenset()
        group = "".join(f"{tensor.tensor}, " for tensor in self.tensors).rstrip()
        line = f"{group} = [rows_by_columns(m, {len(self.nest.rows)}) for m in ({group})]"
        return [line], frozenset({"rows_by_columns"})

    @property
    def widest(self) -> int:
        """Number of elements in 128 bits of the widest dtype."""
        return vector_elements(
            [t for t in self.tensors if self.nest.memory_order(t.access)] or list(self.tensors)
        )

    def joins(self) -> frozenset[str]:
        """Names of the merge functions that the accumulators need."""
        return frozenset(s.join for group in self.states for s in group if s.how != "sum")


def expression_lines(exprs: dict[str, Expr]) -> tuple[list[str], dict[str, str]]:
    """Statements for shared parts, and the text of each value."""
    return body(exprs)


def definitions(exprs: dict[str, Expr]) -> list[str]:
    """Statements that bind each name."""
    lines, values = body(exprs, prefix="u")
    return [*lines, *(f"{name} = {value}" for name, value in values.items())]

"""What every kernel over rows has in common: its tensors, its states, the text of its loops."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions import Expr, body, leaves
from cutegen_nb.authors.offline.hoisting import Hoist
from cutegen_nb.authors.offline.kernel_text import KernelRequest
from cutegen_nb.authors.offline.loops import LoopNest, loop_nest
from cutegen_nb.authors.offline.lowering import COLUMN
from cutegen_nb.authors.offline.operands import Operand, operands, vector_elements
from cutegen_nb.authors.offline.plan import Kernel
from cutegen_nb.authors.offline.states import states


def is_strided(kernel: Kernel, nest: LoopNest) -> bool:
    """Whether neighbours in memory belong to different rows, so that one thread a row already coalesces."""
    over_both = [access for access in kernel.loads if len(nest.memory_order(access)) > 0]
    widest = max(over_both, key=lambda access: len(access.axes), default=None)
    return widest is not None and nest.fastest(widest) in nest.rows


class RowsText:
    """Shared by the kernels below; `kernel` may be one whose states go to other CTAs."""

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
        """Whether a tensor changes along a row."""
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

    def views(self) -> tuple[list[str], frozenset[str]]:
        """Lines of the launcher that give each tensor its two modes, and the functions they call."""
        if len(self.nest.rows) == 1 and len(self.nest.cols) == 1:
            return [], frozenset()
        group = "".join(f"{tensor.tensor}, " for tensor in self.tensors).rstrip()
        line = f"{group} = [rows_by_columns(m, {len(self.nest.rows)}) for m in ({group})]"
        return [line], frozenset({"rows_by_columns"})

    @property
    def widest(self) -> int:
        """Elements in 128 bits of the widest dtype."""
        return vector_elements(
            [t for t in self.tensors if self.nest.memory_order(t.access)] or list(self.tensors)
        )

    def joins(self) -> frozenset[str]:
        """Functions that the states need."""
        return frozenset(s.join for group in self.states for s in group if s.how != "sum")


def expression_lines(exprs: dict[str, Expr]) -> tuple[list[str], dict[str, str]]:
    """Statements for shared parts, and each value's text."""
    return body(exprs)


def definitions(exprs: dict[str, Expr]) -> list[str]:
    """Statements that bind each name."""
    lines, values = body(exprs, prefix="u")
    return [*lines, *(f"{name} = {value}" for name, value in values.items())]

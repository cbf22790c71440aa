"""Code generation for the second kernel of a split reduction, which merges the partial results."""

from __future__ import annotations

from cutegen_nb.authors.offline.fused.accumulators import State
from cutegen_nb.authors.offline.fused.blocks import LoopRange
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel, called
from cutegen_nb.authors.offline.fused.kernel_text import KernelText, Scratch
from cutegen_nb.authors.offline.fused.loops import LoopNest
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide
from cutegen_nb.authors.offline.fused.rows_text import expression_lines
from cutegen_nb.authors.offline.templates import indented, joined, render, signature


def emit_joining(partial: RowKernel, name: str) -> KernelText:
    """Generate the kernel that merges the partial results of `partial`."""
    return _Joining(partial, name).text()


class _Joining:
    def __init__(self, partial: RowKernel, name: str) -> None:
        self.partial, self.name = partial, name
        self.nest = LoopNest(partial.nest.rows, ())
        self.counts = tuple(count for count, _ in partial.kernel.counts)
        self.scratch: tuple[Scratch, ...] = partial.scratch()
        exprs = {s.access.register: s.expr for s in partial.kernel.row_stores}
        self.exprs = exprs
        self.loads = partial.wanted(exprs, varying=False)
        self.lanes = "thread" if partial.strided else "warp"

    def text(self) -> KernelText:
        tensors: tuple[Operand, ...] = (*self.loads, *self.partial.row_stores)
        names = [t.tensor for t in tensors] + [s.tensor for s in self.scratch]
        numbers = [*self.counts, "SPLITS"]
        views = []
        if len(self.nest.rows) > 1:
            group = "".join(f"{t.tensor}, " for t in tensors).rstrip()
            views = [f"{group} = [fastest_first(m) for m in ({group})]"]
        joins = {s.join for group in self.partial.states for s in group}
        source = render(
            f"rows_{self.lanes}",
            **signature(self.name, names, numbers),
            doc="Joins the parts of each row and finishes it.",
            views=joined(views),
            wide=is_wide(self.partial.plan),
            rows=f"cute.size({self.scratch[0].tensor}, mode=[0])",
            split="",
            setup="",
            body=joined(self._body()),
        )
        return KernelText(
            name=self.name,
            source=source,
            nest=self.nest,
            tensors=tensors,
            counts=self.counts,
            needed=frozenset(joins | ({"across_lanes"} if self.lanes == "warp" else set()))
            | frozenset({"fastest_first"} if views else ()),
            constants=self.partial.constants(),
            scratch=self.scratch,
        )

    def _over_splits(self, states: list[State], tensors: dict[str, str]) -> list[str]:
        """Loop over a row's splits; `tensors` hold their partial results by name."""
        in_blocks = self.partial.in_blocks and self.lanes == "thread"
        sums = [state for state in states if in_blocks and state.is_float_sum]
        inner = []
        for state in states:
            taking = state.of_block() if state in sums else state
            inner.append(taking.joined([f"{tensors[name]}[row, part]" for name in state.names]))
        start, step = ("lane", "32") if self.lanes == "warp" else ("0", "1")
        run = LoopRange(counter="part", start=start, stop="SPLITS", step=step, unroll=False)
        if not sums:
            return run.loop(inner)
        before = [line for state in sums for line in state.of_block().starts]
        return run.blocks(inner, before=before, after=[s.joined(s.of_block().names) for s in sums])

    def _body(self) -> list[str]:
        lines = [load.load("row") for load in self.loads]
        states = [state for group in self.partial.states for state in group]
        for state in states:
            lines += state.starts
        tensors = {scratch.name: scratch.tensor for scratch in self.scratch}
        lines += self._over_splits(states, tensors)
        for state in states:
            if self.lanes == "warp":
                lines.append(state.across("32"))
            if state.shift:
                lines.append(f"{state.shift} = {tensors[state.shift]}[row, 0]")
            count = expression_lines({"count": state.count})[1]["count"] if state.count is not None else ""
            lines += state.finish(count)
        statements, values = expression_lines(self.exprs)
        stores = [t.store("row", called(t, values[t.register])) for t in self.partial.row_stores]
        written = [*statements, *stores]
        return lines + (["if lane == 0:", *indented(written)] if self.lanes == "warp" else written)

"""Code generation for reductions over contiguous rows: a thread, a warp or a CTA reduces a row."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.expressions import Expr, grouped, kind_of, leaves
from cutegen_nb.authors.offline.fused.accumulators import (
    SHIFT_REASON,
    State,
    StateRegister,
    middle,
    states,
)
from cutegen_nb.authors.offline.fused.blocks import BLOCK_TURNS, LoopRange, row_run
from cutegen_nb.authors.offline.fused.kernel_text import KernelRequest, KernelText, Scratch
from cutegen_nb.authors.offline.fused.lowering import COLUMN
from cutegen_nb.authors.offline.fused.operands import Operand, camel, is_wide
from cutegen_nb.authors.offline.fused.residence import CTA_THREADS, WARP_THREADS, threads_with_registers
from cutegen_nb.authors.offline.fused.rows_text import RowsText, definitions, expression_lines
from cutegen_nb.authors.offline.fused.splits import FEW_THREADS
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.templates import indented, joined, render, signature

UNROLL = 4
"""Turns of a loop whose loads are issued together. Eight were slower than four on an H200 (sum over a strided
dimension, 2 GB: 2.6 ms against 2.3)."""

_DOCS = {
    "thread": "One thread a row.",
    "warp": "One warp a row: its lanes take neighbouring columns and join their parts by exchanges.",
    "cta": "One CTA a row: threads take neighbouring columns; warps join their parts through shared memory.",
}


class RowKernel(RowsText):
    """Generator of one row kernel; with a split variant, another kernel merges the partial results."""

    def __init__(self, request: KernelRequest, *, strided: bool) -> None:
        super().__init__(request)
        partial = request.variant.split
        self.partial = partial
        self.needed = self._needed_loads() if partial else self.loads
        self.counts = self._needed_counts() if partial else self.counts
        self.strided = strided
        self.lanes = "thread" if strided else ("cta" if partial else self.variant.lanes)
        # A CTA of many neighbouring rows reads longer runs, whose cut-off ends cost less.
        self.threads = 2 * CTA_THREADS if strided and partial and not self.are_few else CTA_THREADS
        self.cached = self._can_cache()
        self.vectors = (self.variant.vectors and not strided) or self.cached
        self.fragments: dict[str, Operand] = {}

    # ------------------------------------------------------------------ what is decided before any text

    @property
    def are_few(self) -> bool:
        """True if there are fewer rows than a GPU has threads for."""
        return elements([loop.extent for loop in self.nest.rows]).full < FEW_THREADS

    def _needed_counts(self) -> tuple[str, ...]:
        used = {name for group in self.states for state in group for name in leaves(state.expr)}
        return tuple(count for count in self.counts if count in used)

    def _needed_loads(self) -> list[Operand]:
        """Loads of the reductions themselves; the other loads belong to the merging kernel."""
        exprs = {state.parts[0].name: state.expr for group in self.states for state in group}
        used = {t.register for flag in (True, False) for t in self.wanted(exprs, varying=flag)}
        return [tensor for tensor in self.loads if tensor.register in used] or self.loads

    def _can_cache(self) -> bool:
        """Return whether a thread's share of a row fits its registers at the full size."""
        if not self.variant.one_pass or self.partial:
            return False
        unmerged = len(self.kernel.passes) + (1 if self.element_stores else 0)
        if unmerged < 2 or self.kernel.passes == ():  # noqa: PLR2004 - something must be read twice
            return False
        kept = max(len([t for t in self.loads if self.varies(t)]), 1)
        threads = threads_with_registers(self.nest, kept, self.lanes)
        if threads is None:
            return False
        self.threads = threads
        return self._exactly_twice()

    def _exactly_twice(self) -> bool:
        # The data stay in registers, so each reduction may run on its own: nothing has to be merged.
        self.states = states(self.kernel.passes, merge=False)
        return True

    # ------------------------------------------------------------------ coordinates

    def _vector_at(self, tensor: Operand) -> str:
        return f"{tensor.divided}[row, (None, chunk)]"

    def _along_vector(self, tensor: Operand) -> bool:
        return self.nest.cols[-1] in self.nest.memory_order(tensor.access)

    @property
    def _leader(self) -> str:
        """Condition of the one thread that writes a row's results; empty where a thread has the row alone."""
        return {"thread": "", "warp": "lane == 0", "cta": "tidx == 0"}[self.lanes]

    def run(self, counter: str, size: str) -> LoopRange:
        """Range of this thread's part of a row."""
        coalesced = self.variant.coalesced
        return row_run(counter, size, lanes=self.lanes, partial=self.partial, coalesced=coalesced)

    @property
    def in_blocks(self) -> bool:
        """True if a thread's share of a row is too long for one running sum."""
        threads = {"thread": 1, "warp": WARP_THREADS, "cta": self.threads}[self.lanes]
        sums = any(state.is_float_sum for group in self.states for state in group)
        return sums and not self.cached and self.is_long(threads)

    # ------------------------------------------------------------------ loops

    def _loop(
        self, loads: list[Operand], inner: list[str], stores: list[Operand], sums: list[State]
    ) -> list[str]:
        """Loop over a row; `sums` are the accumulators kept by block."""
        if self.cached:
            return self._cached_loop(loads, inner, stores)
        if self.vectors:
            run = self.run("chunk", "chunks")
            lines = self._vector_lines(loads, inner, stores, "j", None)
        else:
            run = self.run("col", "cols")
            lines = [tensor.load("row, col") for tensor in loads] + inner
        if not sums:
            return run.loop(lines)
        before = [line for state in sums for line in state.of_block().starts]
        return run.blocks(lines, before=before, after=[s.joined(s.of_block().names) for s in sums])

    def _cached_loop(self, loads: list[Operand], inner: list[str], stores: list[Operand]) -> list[str]:
        fresh = [tensor for tensor in loads if tensor.register not in self.fragments]
        lines = self._vector_lines(fresh, inner, stores, "j, v", loads)
        return self._over_share(lines)

    def _over_share(self, lines: list[str]) -> list[str]:
        lane = {"thread": "v", "warp": "lane + v * 32", "cta": "tidx + v * THREADS"}[self.lanes]
        return [
            "for v in cutlass.range_constexpr(share):",
            f"    chunk = {lane}",
            "    if chunk < chunks:",
            *indented(lines, 2),
        ]

    def _vector_lines(
        self,
        copied: list[Operand],
        inner: list[str],
        stores: list[Operand],
        at: str,
        read: list[Operand] | None,
    ) -> list[str]:
        """Statements that copy vectors in, loop over their elements, and copy vectors out."""
        piece = "" if read is None else "[None, v]"
        lines = []
        body: list[str] = []
        for tensor in copied:
            if self._along_vector(tensor):
                self.fragments[tensor.register] = tensor
                lines.append(f"cute.autovec_copy({self._vector_at(tensor)}, {tensor.fragment}{piece})")
        for tensor in copied if read is None else read:
            if self._along_vector(tensor):
                body.append(f"{tensor.register} = {tensor.loaded(f'{tensor.fragment}[{at}]')}")
            else:
                lines.append(f"{tensor.register} = {tensor.loaded(f'{tensor.divided}[row, (0, chunk)]')}")
        lines += ["for j in cutlass.range_constexpr(VEC):", *indented([*body, *inner])]
        for tensor in stores:
            self.fragments[tensor.register] = tensor
            lines.append(f"cute.autovec_copy({tensor.fragment}{piece}, {self._vector_at(tensor)})")
        return lines

    # ------------------------------------------------------------------ passes

    def _pass(self, group: tuple[State, ...]) -> list[str]:
        exprs = {state.parts[0].name: state.expr for state in group}
        before, inside = self.hoist.split(exprs, self.varying)
        lines = [line for state in group if state.shift for line in self.shift_lines(state)]
        lines += definitions(before)
        for state in group:
            lines += state.starts
        statements, values = expression_lines(inside)
        placed = any(state.needs_place for state in group) or self.uses_column(inside)
        if placed and self.vectors:
            statements.insert(0, "col = chunk * VEC + j")
        sums = [state for state in group if self.in_blocks and state.is_float_sum]
        takes = []
        for state in group:
            taking = state.of_block() if state in sums else state
            takes += taking.take(values[state.parts[0].name])
        lines += self._loop(self.wanted(inside, varying=True), [*statements, *takes], [], sums)
        lines += self.across_lines(group)
        if self.partial:
            return lines
        for state in group:
            count = expression_lines({"count": state.count})[1]["count"] if state.count is not None else ""
            lines += state.finish(count)
        return lines

    @staticmethod
    def uses_column(exprs: dict[str, Expr]) -> bool:
        """Return whether an expression needs an element's column."""
        return any(COLUMN in leaves(expr) for expr in exprs.values())

    def shift_lines(self, state: State) -> list[str]:
        """Statements that load the shift of a row's deviations."""
        first = state.expr.args[0]  # type: ignore[union-attr]
        loads = self.wanted({"": first}, varying=True)
        statements, values = expression_lines({"": first})
        lines = [*SHIFT_REASON]
        names = [f"{state.shift}_{place}" for place in range(3)]
        for name, at in zip(names, ("0", f"{self.cols} // 2", f"{self.cols} - 1"), strict=True):
            lines += [
                *(tensor.load(f"row, {at}") for tensor in loads),
                *statements,
                f"{name} = {values['']}",
            ]
        return [*lines, f"{state.shift} = {middle(*names)}"]

    def across_lines(self, group: tuple[State, ...]) -> list[str]:
        """Statements that merge the accumulators of a row's threads."""
        if self.lanes == "thread":
            return []
        lines = [state.across("32") for state in group]
        if self.lanes == "warp":
            return lines
        parts = [part for state in group for part in state.parts]
        return [
            *lines,
            "if lane == 0:",
            *(f"    {shared(part)}[warp] = {part.name}" for part in parts),
            "cute.arch.sync_threads()",
            "# Every warp joins the warps' parts for itself: its lanes read them in turn.",
            *(f"{part.name} = {shared(part)}[lane % WARPS]" for part in parts),
            *(state.across("WARPS") for state in group),
        ]

    def _shared(self) -> list[str]:
        return [
            f"{shared(part)} = smem.allocate_tensor(cutlass.{part.kind.value}, cute.make_layout(WARPS))"
            for group in self.states
            for state in group
            for part in state.parts
        ]

    # ------------------------------------------------------------------ the end of a row

    def _stores(self) -> list[str]:
        lines: list[str] = []
        if self.kernel.element_stores:
            exprs: dict[str, Expr] = {s.access.register: s.expr for s in self.kernel.element_stores}
            before, inside = self.hoist.split(exprs, self.varying)
            lines += definitions(before)
            statements, values = expression_lines(inside)
            if self.vectors and self.uses_column(inside):
                statements.insert(0, "col = chunk * VEC + j")
            for tensor in self.element_stores:
                value = tensor.rounded(called(tensor, values[tensor.register]))
                if self.vectors:
                    at = "j, v" if self.cached else "j"
                    statements.append(f"{tensor.fragment}[{at}] = {value}")
                else:
                    statements.append(f"{tensor.tensor}[row, col] = {value}")
            lines += self._loop(
                self.wanted(inside, varying=True), statements, self.element_stores if self.vectors else [], []
            )
        if self.kernel.row_stores:
            exprs = {s.access.register: s.expr for s in self.kernel.row_stores}
            statements, values = expression_lines(exprs)
            written = [
                *statements,
                *(t.store("row, 0", called(t, values[t.register])) for t in self.row_stores),
            ]
            lines += [f"if {self._leader}:", *indented(written)] if self._leader else written
        return lines

    def _partial_stores(self) -> list[str]:
        lines = [f"{scratch.tensor}[row, split] = {scratch.name}" for scratch in self.scratch()]
        return [f"if {self._leader}:", *indented(lines)] if self._leader else lines

    def result_kind(self, name: str) -> str:
        """DSL type of a reduction's result."""
        return kind_of(self.plan.program.dtype(name)).value

    def scratch(self) -> tuple[Scratch, ...]:
        """Partial results that each split of a row writes."""
        found = []
        for state in (s for group in self.states for s in group):
            kinds = {"Float32": "float32", "Float64": "float64", "Int32": "int32", "Int64": "int64"}
            found += [Scratch(part.name, kinds[part.kind.value], self.strided) for part in state.parts]
            if state.shift:
                found.append(Scratch(state.shift, "float32", self.strided))
        return tuple(found)

    # ------------------------------------------------------------------ the whole kernel

    def text(self) -> KernelText:
        """Generate kernel and launcher."""
        body = [load.load("row, 0") for load in self.needed if not self.varies(load)]
        share = self._share_lines()
        for group in self.states:
            body += self._pass(group)
        body += self._partial_stores() if self.partial else self._stores()
        scratch = self.scratch() if self.partial else ()
        names = [t.tensor for t in self._arguments()] + [s.tensor for s in scratch]
        numbers = [*self.counts, *(["SPLITS"] if self.partial else []), *(["VEC"] if self.vectors else [])]
        views, needed = self.views()
        joins = {*self.joins(), *(() if self.lanes == "thread" else ("across_lanes",))}
        if self.lanes != "thread":
            joins |= {s.join for group in self.states for s in group}
        source = render(
            f"rows_{self.lanes}",
            **signature(self.name, names, numbers),
            doc=_DOCS[self.lanes],
            views=joined(views),
            wide=is_wide(self.plan),
            rows=self.rows,
            split="SPLITS" if self.partial else "",
            shared=joined(self._shared()),
            setup=joined(self._setup(share)),
            body=joined(body),
        )
        return KernelText(
            name=self.name,
            source=source,
            nest=self.nest,
            tensors=self._arguments(),
            counts=self.counts,
            needed=needed | joins,
            constants=self.constants(),
            vector=(self.nest.cols[-1], self.widest if self.variant.vectors else 1) if self.vectors else None,
            scratch=scratch,
            splits=self.partial,
        )

    def constants(self) -> dict[str, str]:
        """Module-level constants of the kernel."""
        turns = UNROLL if self.variant.in_flight > 1 else 1
        found = {"THREADS": str(self.threads)}
        if self.lanes == "cta":
            found["WARPS"] = "THREADS // 32"
        if not self.cached:
            found["UNROLL"] = f"{turns}  # turns of a loop whose loads are issued together"
        if self.in_blocks:
            found["BLOCK"] = f"{BLOCK_TURNS}  # turns of the loop over a block of a row"
        return found

    def _arguments(self) -> tuple[Operand, ...]:
        return self.tensors

    @property
    def tensors(self) -> tuple[Operand, ...]:
        """Arguments of the kernel, without partial results."""
        return tuple(self.needed) if self.partial else super().tensors

    def _share_lines(self) -> list[str]:
        if not self.cached:
            return []
        threads = {"thread": "1", "warp": "32", "cta": "THREADS"}[self.lanes]
        return [
            "# A thread keeps its share of the row in registers, so the row is read once.",
            f"share = cute.ceil_div(chunks, {threads})",
        ]

    def _setup(self, share: list[str]) -> list[str]:
        if not self.vectors:
            lines = [f"cols = {self.cols}", *(self.wide_cols() if self.lanes == "thread" else [])]
            if self.lanes == "cta" and not self.variant.coalesced:
                threads = "SPLITS * THREADS" if self.partial else "THREADS"
                who = "split * THREADS + tidx" if self.partial else "tidx"
                lines += [
                    "# Each thread walks a run of its own; a warp's accesses are a run apart.",
                    f"span = cute.ceil_div(cols, {threads})",
                    f"first = ({who}) * span" if self.partial else f"first = {who} * span",
                    "last = cutlass.min(first + span, cols)",
                ]
            return lines
        lines = [f"chunks = {self.cols} // VEC", *share]
        divided = [t for t in self._arguments() if t.register in self.fragments or self._needs_division(t)]
        lines += [f"{t.divided} = cute.logical_divide({t.tensor}, (None, VEC))" for t in divided]
        shape = "(VEC, share)" if self.cached else "VEC"
        lines += [
            f"{t.fragment} = cute.make_rmem_tensor({shape}, {t.tensor}.element_type)"
            for t in self.fragments.values()
        ]
        return lines

    def _needs_division(self, tensor: Operand) -> bool:
        return self.varies(tensor) and not self._along_vector(tensor)


def shared(part: StateRegister) -> str:
    """Name of a register's array in shared memory: ``sTotal``."""
    return f"s{camel(part.name)}"


def called(tensor: Operand, value: str) -> str:
    """`value`, in parentheses where a conversion is called on it."""
    return value if tensor.rounded("?") == "?" else grouped(value)

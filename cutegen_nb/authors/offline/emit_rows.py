"""Kernels over rows whose elements lie side by side: a thread, a warp or a CTA reduces a row."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions import Expr, grouped, kind_of, leaves
from cutegen_nb.authors.offline.kernel_text import KernelRequest, KernelText, Scratch
from cutegen_nb.authors.offline.lowering import COLUMN
from cutegen_nb.authors.offline.operands import Operand, camel, is_wide
from cutegen_nb.authors.offline.rows_text import RowsText, definitions, expression_lines
from cutegen_nb.authors.offline.states import Part, State, states
from cutegen_nb.authors.offline.templates import indented, joined, render, signature

REGISTERS_FOR_A_ROW = 64
"""32-bit registers a thread may spend on keeping its share of a row."""
WARP_THREADS = 32
CTA_THREADS = 256
LARGEST_CTA_THREADS = 1024
UNROLL = 4
"""Turns of a loop whose loads are issued together. Eight were slower than four on an H200 (sum over a
strided dimension, 2 GB: 2.6 ms against 2.3)."""

_DOCS = {
    "thread": "One thread a row.",
    "warp": "One warp a row: its lanes take neighbouring columns and join their parts by exchanges.",
    "cta": "One CTA a row: threads take neighbouring columns; warps join their parts through shared memory.",
}


class RowKernel(RowsText):
    """The text of one kernel; `partial` leaves the joining of splits to another."""

    def __init__(self, request: KernelRequest, *, strided: bool) -> None:
        super().__init__(request)
        partial = request.variant.split
        self.partial = partial
        self.needed = self._needed_loads() if partial else self.loads
        self.counts = self._needed_counts() if partial else self.counts
        self.strided = strided
        self.lanes = "thread" if strided else ("cta" if partial else self.variant.lanes)
        self.threads = CTA_THREADS
        self.cached = self._can_cache()
        self.vectors = (self.variant.vectors and not strided) or self.cached
        self.fragments: dict[str, Operand] = {}

    # ------------------------------------------------------------------ what is decided before any text

    def _needed_counts(self) -> tuple[str, ...]:
        used = {name for group in self.states for state in group for name in leaves(state.expr)}
        return tuple(count for count in self.counts if count in used)

    def _needed_loads(self) -> list[Operand]:
        """What the reductions themselves read; the rest is for the kernel that joins them."""
        exprs = {state.parts[0].name: state.expr for group in self.states for state in group}
        used = {t.register for flag in (True, False) for t in self.wanted(exprs, varying=flag)}
        return [tensor for tensor in self.loads if tensor.register in used] or self.loads

    def _can_cache(self) -> bool:
        """Whether a thread's share of a row fits its registers at the full size."""
        if not self.variant.one_pass or self.partial:
            return False
        unmerged = len(self.kernel.passes) + (1 if self.element_stores else 0)
        if unmerged < 2 or self.kernel.passes == ():  # noqa: PLR2004 - something must be read twice
            return False
        cols = 1
        for loop in self.nest.cols:
            cols *= max(loop.extent.full, loop.extent.scaled)
        kept = max(len([t for t in self.loads if self.varies(t)]), 1)
        for threads in (
            (1,)
            if self.lanes == "thread"
            else (WARP_THREADS,)
            if self.lanes == "warp"
            else (CTA_THREADS, LARGEST_CTA_THREADS)
        ):
            if cols * kept <= threads * REGISTERS_FOR_A_ROW:
                self.threads = max(threads, CTA_THREADS)
                return self._exactly_twice()
        return False

    def _exactly_twice(self) -> bool:
        # Registers hold what was read, so each reduction may be exact: no merging is needed.
        self.states = states(self.kernel.passes, merge=False)
        return True

    # ------------------------------------------------------------------ coordinates

    def _vector_at(self, tensor: Operand) -> str:
        return f"{tensor.divided}[row, (None, chunk)]"

    def _along_vector(self, tensor: Operand) -> bool:
        return self.nest.cols[-1] in self.nest.memory_order(tensor.access)

    @property
    def _leader(self) -> str:
        """The one thread that writes a row's results."""
        return {"thread": "", "warp": "lane == 0", "cta": "tidx == 0"}[self.lanes]

    def _range(self, size: str) -> str:
        """Arguments of the loop over a row, as this thread runs it."""
        if self.lanes == "thread":
            return f"split, {size}, SPLITS" if self.partial else size
        if self.lanes == "warp":
            return f"lane, {size}, 32"
        if not self.variant.coalesced:
            return "first, last"
        return (
            f"split * THREADS + tidx, {size}, SPLITS * THREADS" if self.partial else f"tidx, {size}, THREADS"
        )

    # ------------------------------------------------------------------ loops

    def _loop(self, loads: list[Operand], inner: list[str], stores: list[Operand]) -> list[str]:
        if self.cached:
            return self._cached_loop(loads, inner, stores)
        unroll = ", unroll=UNROLL"
        if not self.vectors:
            lines = [tensor.load("row, col") for tensor in loads] + inner
            return [f"for col in cutlass.range({self._range('cols')}{unroll}):", *indented(lines)]
        lines = self._vector_lines(loads, inner, stores, "j", None)
        return [f"for chunk in cutlass.range({self._range('chunks')}{unroll}):", *indented(lines)]

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
        """Copies in, the loop over a vector's elements, copies out."""
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
        lines = [line for state in group if state.shift for line in self._shift(state)]
        lines += definitions(before)
        for state in group:
            lines += state.starts
        statements, values = expression_lines(inside)
        placed = any(state.needs_place for state in group) or self._uses_column(inside)
        if placed and self.vectors:
            statements.insert(0, "col = chunk * VEC + j")
        takes = [line for state in group for line in state.take(values[state.parts[0].name])]
        lines += self._loop(self.wanted(inside, varying=True), [*statements, *takes], [])
        lines += self._across(group)
        if self.partial:
            return lines
        for state in group:
            count = expression_lines({"count": state.count})[1]["count"] if state.count is not None else ""
            lines += state.finish(count)
        return lines

    @staticmethod
    def _uses_column(exprs: dict[str, Expr]) -> bool:
        return any(COLUMN in leaves(expr) for expr in exprs.values())

    def _shift(self, state: State) -> list[str]:
        """The row's first element, around which its deviations are taken."""
        first = state.expr.args[0]  # type: ignore[union-attr]
        loads = self.wanted({"": first}, varying=True)
        statements, values = expression_lines({"": first})
        return [
            "# Deviations are taken around the row's first element, so that squares do not cancel.",
            *(tensor.load("row, 0") for tensor in loads),
            *statements,
            f"{state.shift} = {values['']}",
        ]

    def _across(self, group: tuple[State, ...]) -> list[str]:
        """Lines that join what the threads of a row hold."""
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
            if self.vectors and self._uses_column(inside):
                statements.insert(0, "col = chunk * VEC + j")
            for tensor in self.element_stores:
                value = tensor.rounded(called(tensor, values[tensor.register]))
                if self.vectors:
                    at = "j, v" if self.cached else "j"
                    statements.append(f"{tensor.fragment}[{at}] = {value}")
                else:
                    statements.append(f"{tensor.tensor}[row, col] = {value}")
            lines += self._loop(
                self.wanted(inside, varying=True), statements, self.element_stores if self.vectors else []
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
        """The DSL's type of a reduction's result."""
        return kind_of(self.plan.program.dtype(name)).value

    def scratch(self) -> tuple[Scratch, ...]:
        """What each split of a row leaves behind."""
        found = []
        for state in (s for group in self.states for s in group):
            kinds = {"Float32": "float32", "Float64": "float64", "Int32": "int32", "Int64": "int64"}
            found += [Scratch(part.name, kinds[part.kind.value], self.strided) for part in state.parts]
            if state.shift:
                found.append(Scratch(state.shift, "float32", self.strided))
        return tuple(found)

    # ------------------------------------------------------------------ the whole kernel

    def text(self) -> KernelText:
        """Kernel and launcher."""
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
            wide=is_wide(self.nest),
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
        return found

    def _arguments(self) -> tuple[Operand, ...]:
        return self.tensors

    @property
    def tensors(self) -> tuple[Operand, ...]:
        """Arguments of the kernel that are not scratch."""
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
            lines = [f"cols = {self.cols}"]
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


def shared(part: Part) -> str:
    """Name of a part's place in shared memory: ``sTotal``."""
    return f"s{camel(part.name)}"


def called(tensor: Operand, value: str) -> str:
    """`value`, in parentheses where a conversion will be called on it."""
    return value if tensor.rounded("?") == "?" else grouped(value)

"""Code generation for rows kept on the chip: in shared memory of one CTA, or of the CTAs of a cluster."""

from __future__ import annotations

import math
from typing import ClassVar

from cutegen_nb.authors.offline.expressions.expressions import Expr
from cutegen_nb.authors.offline.fused.accumulators import State
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel, called, shared
from cutegen_nb.authors.offline.fused.kernel_text import KernelText, OverGrid, Scratch
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide
from cutegen_nb.authors.offline.fused.residence import Residence
from cutegen_nb.authors.offline.fused.resident_text import AlignedVectors, PeeledVectors, by_reciprocals
from cutegen_nb.authors.offline.fused.rows_text import definitions, expression_lines
from cutegen_nb.authors.offline.templates import indented, joined, render, signature

MOST_IN_FLIGHT = 4
"""Largest number of vectors of a tensor that a thread loads before it uses the first."""
VECTORS_IN_REGISTERS = 8
"""Vectors of 128 bits that a thread holds at once, in 32 of its 64 registers."""
_DOCS = {
    True: "The CTAs of a cluster share a row and keep it in their shared memory: it is read once.",
    False: "One CTA a row, which keeps the row in shared memory: it is read once.",
}


class ResidentRows:
    """Variant of a row kernel that copies its part of a row to shared memory and works from there.

    One CTA takes a row, or the CTAs of a cluster share it.

    Each thread copies its own vectors asynchronously and reads no others, so the copies need no barrier. Of a
    row that is too long for the chip a part is kept; the rest is read again, in reverse, while L2 has it.
    """

    def __init__(self, base: RowKernel, room: Residence) -> None:
        self.base, self.room = base, room
        self.shared_rows = not room.in_cta
        self.kept_bytes, self.threads = room.kept_bytes, room.threads
        held = {access.register for access in room.held}
        self.held = [tensor for tensor in base.loads if tensor.register in held]
        odd = math.gcd(base.nest.cols[-1].extent.full, base.widest) < base.widest
        kind = PeeledVectors if odd and PeeledVectors.fits(base) else AlignedVectors
        self.vectors = kind(base, self.held, self._batch())
        self.met = False

    def _batch(self) -> int:
        """Vectors in flight of a thread: 1 where all copies to shared memory are in flight anyway."""
        loads = [tensor for tensor in self.base.loads if self.base.varies(tensor)]
        if self.room.whole and len(loads) == len(self.held):
            return 1
        return max(1, min(MOST_IN_FLIGHT, VECTORS_IN_REGISTERS // len(loads)))

    # ------------------------------------------------------------------ loops

    def _loop(
        self, exprs: dict[str, Expr], inner: list[str], stores: list[Operand], *, first: bool = False
    ) -> list[str]:
        """Loop over this thread's vectors; the first pass waits for each, the last one goes backwards."""
        loads = self.base.wanted(exprs, varying=True)
        work = [
            "for j in cutlass.range_constexpr(VEC):",
            *indented(self.vectors.elements(loads, inner)),
            *self.vectors.stores(stores),
        ]
        waits = [
            "if cutlass.const_expr(v < KEPT):",
            "    cute.arch.cp_async_wait_group(KEPT - 1 - v)  # vector v has landed, later ones may not",
        ]
        copies = self.vectors.copies(loads)
        last = bool(stores)
        head = [f"# {self.last_order}"] if last else []
        before = waits if first else []
        present = f"if {self.vectors.present}:"
        after = self._after_last() if last else []
        if self.vectors.batch == 1:
            turn = "turn" if last else "v"
            place = [f"v = {self._last_vector(turn)}"] if last else []
            inside = [*place, "chunk = first + v * STEP", *before, present, *indented([*copies, *work])]
            return [*head, f"for {turn} in cutlass.range_constexpr(SHARE):", *indented([*inside, *after])]
        turn = "batch + u"
        place = [f"v = {self._last_vector(turn) if last else turn}", "chunk = first + v * STEP"]
        vectors = "for u in cutlass.range_constexpr(min(BATCH, SHARE - batch)):"
        return [
            *head,
            "for batch in cutlass.range_constexpr(0, SHARE, BATCH):",
            f"    {vectors}",
            *indented([*place, *before, present, *indented(copies)], 2),
            f"    {vectors}",
            *indented([*place, present, *indented(work), *after], 2),
        ]

    last_order: ClassVar[str] = "Backwards: L2 still has the end of a row that is too long to keep."
    """Comment on the order of vectors in the pass that stores them."""

    def _last_vector(self, turn: str) -> str:
        """Number of the vector that the pass that stores takes in its turn number `turn`."""
        return f"SHARE - 1 - ({turn})" if "+" in turn else f"SHARE - 1 - {turn}"

    def _after_last(self) -> list[str]:
        """Statements of the pass that stores after each vector, whether the thread has it or not."""
        return []

    def _copy_in(self) -> list[str]:
        lines = [
            "# All copies are under way before the first is needed.",
            "for v in cutlass.range_constexpr(KEPT):",
            "    chunk = first + v * STEP",
            f"    if {self.vectors.present}:",
        ]
        for tensor in self.held:
            lines += indented(self.vectors.to_shared(tensor), 2)
        return [*lines, "    cute.arch.cp_async_commit_group()"]

    # ------------------------------------------------------------------ passes

    def _pass(self, group: tuple[State, ...], *, first: bool) -> list[str]:
        base = self.base
        exprs = {state.parts[0].name: state.expr for state in group}
        before, inside = base.hoist.split(exprs, base.varying)
        lines = [line for state in group if state.shift for line in base.shift_lines(state)]
        lines += definitions(before)
        for state in group:
            lines += state.starts
        statements, values = expression_lines(inside)
        if any(state.needs_place for state in group) or base.uses_column(inside):
            statements = [*self.vectors.place, *statements]
        takes = [line for state in group for line in state.take(values[state.parts[0].name])]
        lines += self._loop(inside, [*statements, *takes], [], first=first)
        lines += self._across(group)
        for state in group:
            count = expression_lines({"count": state.count})[1]["count"] if state.count is not None else ""
            lines += state.finish(count)
        return lines

    def _across(self, group: tuple[State, ...]) -> list[str]:
        if not self.shared_rows:
            return self.base.across_lines(group)
        parts = [part for state in group for part in state.parts]
        lines = [state.across("32") for state in group]
        if not self.met:
            lines.append("cute.arch.cluster_wait()  # the other CTAs have started")
            self.met = True
        lines += [
            "# Lane c of each warp writes the warp's part into CTA c.",
            "if lane < CTAS:",
            *(f"    store_to(lane, {shared(part)}, rank * WARPS + warp, {part.name})" for part in parts),
            "cute.arch.cluster_arrive()",
            "cute.arch.cluster_wait()",
            "# Every warp joins the parts for itself, in the same order.",
            *(f"{part.name} = {shared(part)}[lane % PARTS]" for part in parts),
            "for part in cutlass.range_constexpr(32, PARTS, 32):",
        ]
        lines += [f"    {s.joined([f'{shared(part)}[lane + part]' for part in s.parts])}" for s in group]
        return [*lines, *(state.across("min(PARTS, 32)") for state in group)]

    # ------------------------------------------------------------------ the end of a row

    def _element_stores(self) -> list[str]:
        base = self.base
        if not base.kernel.element_stores:
            return []
        exprs: dict[str, Expr] = {s.access.register: s.expr for s in base.kernel.element_stores}
        before, inside = base.hoist.split(exprs, base.varying)
        inside, inverse = by_reciprocals(inside, base.varying)
        statements, values = expression_lines(inside)
        if base.uses_column(inside):
            statements = [*self.vectors.place, *statements]
        for tensor in base.element_stores:
            value = tensor.rounded(called(tensor, values[tensor.register]))
            statements.append(f"{tensor.fragment}[j] = {value}")
        return [*definitions(before), *inverse, *self._loop(inside, statements, base.element_stores)]

    def _row_stores(self) -> list[str]:
        base = self.base
        if not base.kernel.row_stores:
            return []
        exprs = {s.access.register: s.expr for s in base.kernel.row_stores}
        statements, values = expression_lines(exprs)
        written = [
            *statements,
            *(t.store("row, 0", called(t, values[t.register])) for t in base.row_stores),
        ]
        leader = "(rank == 0) & (tidx == 0)" if self.shared_rows else "tidx == 0"
        return [f"if {leader}:", *indented(written)]

    # ------------------------------------------------------------------ the whole kernel

    def _setup(self) -> list[str]:
        base, batch = self.base, self.vectors.batch
        lines = [
            f"cols = {base.cols}",
            *(
                [f"BATCH = {batch}  # vectors that a thread loads before it uses the first"]
                if batch > 1
                else []
            ),
            *self.vectors.setup,
            "# Neighbouring threads take neighbouring vectors, and the next ones a step further.",
            "STEP = CTAS * THREADS" if self.shared_rows else "STEP = THREADS",
            "first = rank * THREADS + tidx" if self.shared_rows else "first = tidx",
        ]
        for tensor in self.held:
            lines.append(
                f"s{tensor.tensor[1:]} = smem.allocate_tensor({tensor.tensor}.element_type, kept_layout, 16)"
            )
            lines.append(f"to_s{tensor.tensor[1:]} = copy_atom({tensor.tensor}.element_type, VEC)")
        fragments = dict.fromkeys(self.vectors.fragments, "(VEC, BATCH)" if batch > 1 else "VEC")
        fragments |= dict.fromkeys(self.vectors.scalars, "BATCH" if batch > 1 else "1")
        fragments |= dict.fromkeys(base.element_stores, "VEC")
        lines += [
            f"{tensor.fragment} = cute.make_rmem_tensor({shape}, {tensor.tensor}.element_type)"
            for tensor, shape in fragments.items()
        ]
        return lines

    def _shared(self) -> list[str]:
        layout = "PARTS" if self.shared_rows else "WARPS"
        lines = ["WARPS = THREADS // 32", *(["PARTS = CTAS * WARPS"] if self.shared_rows else [])]
        parts = [part for group in self.base.states for state in group for part in state.parts]
        kinds = [
            f"smem.allocate_tensor(cutlass.{part.kind.value}, cute.make_layout({layout}))" for part in parts
        ]
        return [*lines, *(f"{shared(part)} = {kind}" for part, kind in zip(parts, kinds, strict=True))]

    def _sizes(self) -> list[str]:
        """Launcher statements that divide a row."""
        bits = " + ".join(f"{tensor.tensor}.element_type.width" for tensor in self.held)
        return [
            *self._ctas_line(),
            f"cols = {self.base.cols}",
            *self.vectors.sizes,
            f"threads = cta_threads(chunks, {'CTAS' if self.shared_rows else '1'}, {self.threads})",
            f"share = cute.ceil_div(chunks, {'CTAS * threads' if self.shared_rows else 'threads'})",
            "# Each thread keeps as many of its vectors as fit.",
            f"kept = min(share, {self.kept_bytes} // (threads * VEC * ({bits}) // 8))",
        ]

    def _ctas_line(self) -> list[str]:
        """Launcher statement that sets the number of CTAs of a row."""
        return [f"CTAS = {self.room.ctas}"] if self.shared_rows else []

    def _body(self) -> list[str]:
        """Statements for one row, or for all rows of a CTA, after the set-up."""
        return [*self._copy_in(), *self._row()]

    def _row(self) -> list[str]:
        base = self.base
        lines = [load.load("row, 0") for load in base.loads if not base.varies(load)]
        for position, group in enumerate(base.states):
            lines += self._pass(group, first=position == 0)
        return [*lines, *self._element_stores(), *self._row_stores()]

    def _joins(self) -> set[str]:
        """Functions of the module that the kernel calls, views left out."""
        base = self.base
        joins = {*base.joins(), "across_lanes", "cta_threads", "copy_atom", *self.vectors.needed}
        return joins | {s.join for group in base.states for s in group} | self.meeting

    @property
    def meeting(self) -> set[str]:
        """Function by which the CTAs of a row exchange parts."""
        return {"store_to"} if self.shared_rows else set()

    @property
    def division(self) -> list[str]:
        """Compile-time numbers of the kernel that say how CTAs divide the rows."""
        return ["CTAS"] if self.shared_rows else []

    @property
    def launch(self) -> dict[str, object]:
        """Values of the template that say where a CTA's row is, and how the grid is launched."""
        return {
            "doc": _DOCS[self.shared_rows],
            "cluster": self.shared_rows,
            "over_grid": False,
            "grid": f"{self.base.rows} * CTAS" if self.shared_rows else self.base.rows,
        }

    def text(self) -> KernelText:
        """Generate kernel and launcher."""
        base = self.base
        body = self._body()
        names = [*(tensor.tensor for tensor in base.tensors), *(part.tensor for part in self.scratch)]
        by_host = self.division if self.scratch else []
        inner = [*(() if by_host else self.division), "THREADS", "SHARE", "KEPT"]
        of_kernel = [*(() if by_host else self.division), "threads", "share", "kept"]
        vec = ["VEC"] if self.vectors.from_host else []
        views, needed = base.views()
        source = render(
            "rows_on_chip",
            **self.launch,
            name=base.name,
            params=signature(base.name, names, [*base.counts, *by_host, "VEC", *inner])["params"],
            host_params=signature(base.name, names, [*base.counts, *by_host, *vec])["host_params"],
            arguments=", ".join([*names, *base.counts, *by_host, "VEC", *of_kernel]),
            views=joined(views),
            wide=is_wide(base.plan),
            shared=joined(self._shared()),
            setup=joined(self._setup()),
            sizes=joined(self._sizes()),
            body=joined(body),
        )
        return KernelText(
            name=base.name,
            source=source,
            nest=base.nest,
            tensors=base.tensors,
            counts=base.counts,
            needed=needed | self._joins(),
            constants={},
            vector=(base.nest.cols[-1], base.widest) if self.vectors.from_host else None,
            scratch=self.scratch,
            over_grid=self.over_grid,
        )

    @property
    def scratch(self) -> tuple[Scratch, ...]:
        """Partial results in global memory."""
        return ()

    @property
    def over_grid(self) -> OverGrid | None:
        """Facts by which the host divides the rows over the grid; None where it does not."""
        return None

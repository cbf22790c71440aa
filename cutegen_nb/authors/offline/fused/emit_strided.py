"""Code generation for reductions over strided rows: a thread reduces a vector of neighbouring rows."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.expressions import Expr, leaves
from cutegen_nb.authors.offline.fused.accumulators import SHIFT_REASON, State, middle
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel, called
from cutegen_nb.authors.offline.fused.kernel_text import KernelText
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide
from cutegen_nb.authors.offline.fused.rows_text import expression_lines
from cutegen_nb.authors.offline.templates import indented, joined, render, signature


class StridedVectors:
    """Variant of a row kernel in which each thread takes VEC rows at once."""

    def __init__(self, base: RowKernel) -> None:
        self.base = base
        self.kernel, self.nest = base.kernel, base.nest
        self.setup: list[str] = []
        self.held: set[str] = set()

    def _along_vector(self, tensor: Operand) -> bool:
        return self.nest.rows[-1] in self.nest.memory_order(tensor.access)

    def _copy_in(self, loads: list[Operand], col: str) -> list[str]:
        return [
            f"cute.autovec_copy({t.divided}[(None, row), {col}], {t.fragment})"
            for t in loads
            if self._along_vector(t)
        ]

    def _element(self, tensor: Operand, col: str) -> str:
        if self._along_vector(tensor):
            return f"{tensor.register} = {tensor.loaded(f'{tensor.fragment}[j]')}"
        return f"{tensor.register} = {tensor.loaded(f'{tensor.divided}[(0, row), {col}]')}"

    def _over_vector(self, exprs: dict[str, Expr], col: str, tail: list[str]) -> list[str]:
        """Loop over a vector's rows that binds the registers of `exprs`, evaluates them, and runs `tail`."""
        statements, values = expression_lines(exprs)
        used = frozenset[str]().union(*(leaves(expr) for expr in exprs.values())) if exprs else frozenset()
        lines = [
            self._element(t, col if self.base.varies(t) else "0")
            for t in self.base.loads
            if t.register in used
        ]
        lines += [f"{name} = r_{name}[j]" for name in sorted(used & self.held)]
        lines += statements
        lines += [line.format(**values) for line in tail]
        return ["for j in cutlass.range_constexpr(VEC):", *indented(lines)]

    def _pass(self, group: tuple[State, ...]) -> list[str]:
        lines: list[str] = []
        for state in group:
            if state.shift:
                lines += self._shift(state)
            lines += self._start(state)
        exprs = {state.parts[0].name: state.expr for state in group}
        sums = [state for state in group if self.base.in_blocks and state.is_float_sum]
        tail = []
        for state in group:
            taking = state.of_block() if state in sums else state
            tail += _held(taking, taking.take("{" + state.parts[0].name + "}"))
        loads = self.base.wanted(exprs, varying=True)
        inner = self._copy_in(loads, "col") + self._over_vector(exprs, "col", tail)
        run = self.base.run("col", "cols")
        if sums:
            before = [line for state in sums for line in self._start(state.of_block())]
            after = [line for state in sums for line in self._joined(state)]
            lines += run.blocks(inner, before=before, after=after)
        else:
            lines += run.loop(inner)
        if not self.base.partial:
            for state in group:
                lines += self._finish(state)
        return lines

    def _start(self, state: State) -> list[str]:
        """Statements that set the registers of an accumulator, VEC of each."""
        self.setup += [
            f"r_{part.name} = cute.make_rmem_tensor(VEC, cutlass.{part.kind.value})" for part in state.parts
        ]
        return [f"r_{part.name}.fill({part.start})" for part in state.parts]

    @staticmethod
    def _joined(state: State) -> list[str]:
        """Statements that merge a block's accumulator into the row's."""
        inner = _held(state, [state.joined([f"r_{name}[j]" for name in state.of_block().names])])
        return ["for j in cutlass.range_constexpr(VEC):", *indented(inner)]

    def _shift(self, state: State) -> list[str]:
        first = state.expr.args[0]  # type: ignore[union-attr]
        names = [f"r_{state.shift}", *(f"r_{state.shift}_{place}" for place in (1, 2))]
        self.setup += [f"{name} = cute.make_rmem_tensor(VEC, cutlass.Float32)" for name in names]
        loads = self.base.wanted({"": first}, varying=True)
        self.held.add(state.shift)
        lines = [*SHIFT_REASON]
        for name, at in zip(names, ("0", "cols // 2", "cols - 1"), strict=True):
            lines += [
                *self._copy_in(loads, at),
                *self._over_vector({"value": first}, at, [f"{name}[j] = " + "{value}"]),
            ]
        chosen = middle(*(f"{name}[j]" for name in names))
        return [*lines, "for j in cutlass.range_constexpr(VEC):", f"    {names[0]}[j] = {chosen}"]

    def _finish(self, state: State) -> list[str]:
        count = expression_lines({"count": state.count})[1]["count"] if state.count is not None else ""
        changes = state.finish(count)
        self.held.update(state.results)
        if not changes:
            return []
        inner = [f"{name} = r_{name}[j]" for name in (*state.names, *([state.shift] if state.shift else []))]
        inner += changes
        for name in state.results:
            kind = self.base.result_kind(name)
            self.setup.append(f"r_{name} = cute.make_rmem_tensor(VEC, cutlass.{kind})")
            inner.append(f"r_{name}[j] = {name}")
        return ["for j in cutlass.range_constexpr(VEC):", *indented(inner)]

    def _stores(self) -> list[str]:
        lines: list[str] = []
        if self.kernel.element_stores:
            exprs = {s.access.register: s.expr for s in self.kernel.element_stores}
            inner = self._copy_in(self.base.wanted(exprs, varying=True), "col")
            inner += self._stored(exprs, self.base.element_stores, "col")
            lines += ["for col in cutlass.range(cols, unroll=UNROLL):", *indented(inner)]
        if self.kernel.row_stores:
            lines += self._stored(
                {s.access.register: s.expr for s in self.kernel.row_stores}, self.base.row_stores, "0"
            )
        return lines

    def _stored(self, exprs: dict[str, Expr], tensors: list[Operand], col: str) -> list[str]:
        values = expression_lines(exprs)[1]
        tail = [
            f"{t.fragment}[j] = {t.rounded(called(t, values[t.register]))}".replace("{", "{{").replace(
                "}", "}}"
            )
            for t in tensors
        ]
        self.setup += [f"{t.fragment} = cute.make_rmem_tensor(VEC, {t.tensor}.element_type)" for t in tensors]
        lines = self._over_vector(exprs, col, tail)
        return lines + [f"cute.autovec_copy({t.fragment}, {t.divided}[(None, row), {col}])" for t in tensors]

    def _partial_stores(self) -> list[str]:
        lines = []
        for scratch in self.base.scratch():
            self.setup.append(f"g{scratch.tensor[1:]} = cute.logical_divide({scratch.tensor}, (VEC, None))")
            lines.append(f"cute.autovec_copy(r_{scratch.name}, g{scratch.tensor[1:]}[(None, row), split])")
        return lines

    def text(self) -> KernelText:
        """Generate kernel and launcher."""
        base = self.base
        loads = [t for t in base.needed if not base.varies(t)]
        body = self._copy_in(loads, "0")
        for group in base.states:
            body += self._pass(group)
        body += self._partial_stores() if base.partial else self._stores()
        tensors = base.tensors
        scratch = base.scratch() if base.partial else ()
        names = [t.tensor for t in tensors] + [s.tensor for s in scratch]
        numbers = [*base.counts, *(["SPLITS"] if base.partial else []), "VEC"]
        views, needed = base.views()
        fragments = [
            f"{t.fragment} = cute.make_rmem_tensor(VEC, {t.tensor}.element_type)"
            for t in base.needed
            if self._along_vector(t)
        ]
        divided = [f"{t.divided} = cute.logical_divide({t.tensor}, (VEC, None))" for t in tensors]
        source = render(
            "rows_thread",
            **signature(base.name, names, numbers),
            doc="VEC neighbouring rows a thread, so that a load along them is 128 bits wide.",
            views=joined(views),
            wide=is_wide(self.base.plan),
            rows=f"{base.rows} // VEC",
            split="SPLITS" if base.partial else "",
            setup=joined(
                [f"cols = {base.cols}", *base.wide_cols(), *divided, *fragments, *dict.fromkeys(self.setup)]
            ),
            body=joined(body),
        )
        return KernelText(
            name=base.name,
            source=source,
            nest=self.nest,
            tensors=tensors,
            counts=base.counts,
            needed=needed | base.joins(),
            constants=base.constants(),
            vector=(self.nest.rows[-1], base.widest),
            scratch=scratch,
            splits=base.partial,
        )


def _held(state: State, lines: list[str]) -> list[str]:
    """`lines` between reading an accumulator from its registers and writing it back."""
    read = [f"{name} = r_{name}[j]" for name in state.names]
    return [*read, *lines, *(f"r_{name}[j] = {name}" for name in state.names)]

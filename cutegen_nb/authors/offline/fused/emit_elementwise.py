"""Code generation for element-wise kernels."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.expressions import body, grouped
from cutegen_nb.authors.offline.fused.kernel_text import KernelRequest, KernelText
from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide, operands, vector_elements
from cutegen_nb.authors.offline.templates import indented, joined, render, signature

TRIPS = 4
"""Least number of turns of a thread in the grid-stride loop."""


def emit_elementwise(request: KernelRequest) -> KernelText:
    """Generate the kernel of an element-wise computation in the given variant."""
    return _Elementwise(request).text()


class _Elementwise:
    def __init__(self, request: KernelRequest) -> None:
        self.kernel, self.plan = request.kernel, request.plan
        self.variant, self.name = request.variant, request.name
        self.nest = loop_nest(self.kernel, merge=self.variant.coalesced, pitches=self.plan.pitches)
        self.loads = operands(self.kernel.loads, request.plan.dtype)
        self.stores = operands([store.access for store in self.kernel.element_stores], request.plan.dtype)
        self.counts = tuple(count for count, _ in self.kernel.counts)

    def text(self) -> KernelText:
        tensors = (*self.loads, *self.stores)
        rank = len(self.nest.all)
        reverse = self.variant.coalesced and rank > 1
        names = [tensor.tensor for tensor in tensors]
        chosen = self.variant.vectors and rank > 1
        numbers = [*self.counts, *(["VEC"] if chosen else [])]
        group = f"{', '.join(names)},"
        views = [f"{group} = [fastest_first(m) for m in ({group})]"] if reverse else []
        constants = {"THREADS": "256  # eight warps; several such CTAs share an SM"}
        widest = vector_elements(list(tensors))
        if self.variant.vectors:
            constants["IN_FLIGHT"] = (
                f"{self.variant.in_flight}  # vectors a thread loads before it uses the first"
            )
            if not chosen:
                constants["VEC"] = f"{widest}  # elements in 128 bits of the widest dtype"
            if self.variant.grid_stride:
                constants["TRIPS"] = f"{TRIPS}  # turns of the loop a thread makes"
        source = render(
            self._template(),
            **signature(self.name, names, numbers),
            doc=self._doc(),
            views=joined(views),
            like=self.stores[0].tensor,
            wide=is_wide(self.plan),
            element=joined(self._element()),
            divided=joined(self._divided()),
            fragments=joined(self._fragments()),
            copies_in=joined(self._copies_in() or ["pass"]),
            vector=joined(self._vector()),
            in_flight=self.variant.in_flight,
            tail=not chosen,
        )
        last = self.nest.all[-1] if chosen else None
        return KernelText(
            name=self.name,
            source=source,
            nest=self.nest,
            tensors=tensors,
            counts=self.counts,
            needed=frozenset({"fastest_first"} if reverse else ()),
            constants=constants,
            vector=(last, widest) if last else None,
        )

    def _template(self) -> str:
        if not self.variant.vectors:
            return "elementwise_scalar"
        return "elementwise_grid_stride" if self.variant.grid_stride else "elementwise_vector"

    def _doc(self) -> str:
        if self.variant.vectors:
            extra = ", in a grid-stride loop" if self.variant.grid_stride else ""
            several = f"{self.variant.in_flight} vectors" if self.variant.in_flight > 1 else "One vector"
            return f"{several} of 128 bits a thread{extra}; a warp's vectors lie side by side."
        if self.variant.coalesced or len(self.nest.all) <= 1:
            return "One element a thread; a warp's elements lie side by side."
        return "One element a thread, counted as CuTe counts: mode 0 first."

    def _compute(self, target: str | None) -> list[str]:
        """Statements from loaded registers to stored results; `target` is the coordinate in the fragments."""
        results = {store.access.register: store.expr for store in self.kernel.element_stores}
        lines, values = body(results)
        for tensor in self.stores:
            value = values[tensor.register]
            if target is None:
                lines.append(tensor.store("i", self._parenthesised(tensor, value)))
            else:
                lines.append(
                    f"{tensor.fragment}[{target}] = {tensor.rounded(self._parenthesised(tensor, value))}"
                )
        return lines

    @staticmethod
    def _parenthesised(tensor: Operand, value: str) -> str:
        """Parenthesise an infix expression where a conversion is called on it."""
        return value if tensor.rounded("?") == "?" else grouped(value)

    def _element(self) -> list[str]:
        return [load.load("i") for load in self.loads] + self._compute(None)

    def _is_vector(self, tensor: Operand) -> bool:
        return tensor in self.stores or self.nest.all[-1] in self.nest.memory_order(tensor.access)

    def _divided(self) -> list[str]:
        rank = len(self.nest.all)
        # Tiler (VEC, 1, …, 1): vectors along mode 0, the fastest dimension.
        tiler = f"({', '.join(['VEC'] + ['1'] * (rank - 1))}{',' if rank == 1 else ''})"
        return [
            f"{tensor.divided} = cute.zipped_divide({tensor.tensor}, {tiler})"
            for tensor in (*self.loads, *self.stores)
            if self._is_vector(tensor) or len(self.nest.all) > 1
        ]

    def _fragments(self) -> list[str]:
        return [
            f"{tensor.fragment} = cute.make_rmem_tensor((VEC, IN_FLIGHT), {tensor.tensor}.element_type)"
            for tensor in (*self.loads, *self.stores)
            if self._is_vector(tensor)
        ]

    def _copies_in(self) -> list[str]:
        return [
            f"cute.autovec_copy({tensor.divided}[None, i], {tensor.fragment}[None, v])"
            for tensor in self.loads
            if self._is_vector(tensor)
        ]

    def _vector(self) -> list[str]:
        lines = []
        inner = []
        for tensor in self.loads:
            if self._is_vector(tensor):
                inner.append(f"{tensor.register} = {tensor.loaded(f'{tensor.fragment}[j, v]')}")
            elif len(self.nest.all) > 1:
                # A tensor that does not vary along the vector: one load serves all of its elements.
                lines.append(f"{tensor.register} = {tensor.loaded(f'{tensor.divided}[0, i]')}")
            else:
                lines.append(tensor.load("0"))
        inner += self._compute("j, v")
        lines += ["for j in cutlass.range_constexpr(VEC):", *indented(inner)]
        lines += [f"cute.autovec_copy({t.fragment}[None, v], {t.divided}[None, i])" for t in self.stores]
        return lines

"""Epilogue of a matrix product: element-wise operations fused into its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.expressions import (
    Apply,
    Const,
    Expr,
    Leaf,
    ValueType,
    apply,
    kind_of,
    number,
)
from cutegen_nb.authors.offline.expressions.pointwise import (
    UnsupportedOperationError,
    is_pointwise,
    pointwise,
    short_name,
)
from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.matmul.sizes import Sizes, SymbolicSize, broadcast, same
from cutegen_nb.authors.offline.matmul.views import FLOATS, Arrangement, View, arrangement_of, moved
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument, Node, Ref

_BATCHED_RANK = 3


@dataclass(frozen=True, slots=True)
class Extra:
    """Tensor that the epilogue reads besides the product: a bias, a residual."""

    name: str
    """CuTe name of the tensor: ``mBias``."""
    text: str
    """Torch expression for its view of modes (M, N, L), broadcast by strides of 0."""
    register: str
    """Name of its element in the epilogue."""


@dataclass(frozen=True, slots=True)
class ProductValue:
    """Value computed from the product, with the order of its dimensions relative to the product's."""

    expr: Expr
    """Expression of one element."""
    arrangement: Arrangement
    """Arrangement over a memory that lists the product's elements row by row, batch by batch."""


@dataclass(frozen=True, slots=True)
class Triangle:
    """Part of a matrix that ``triu`` or ``tril`` keeps."""

    upper: bool
    """True for the part above the diagonal (``triu``)."""
    diagonal: int
    """Offset of the edge from the main diagonal in columns, as in torch."""

    @property
    def outside(self) -> str:
        """Text of the condition that a kernel's tile lies outside the triangle entirely."""
        shift = f" + {self.diagonal}" if self.diagonal else ""
        # triu keeps n >= m + diagonal: nothing is kept if the last column fails for the first row.
        if self.upper:
            return f"(tile_n + 1) * BN - 1 < tile_m * BM{shift}"
        # tril keeps n <= m + diagonal: nothing is kept if the first column fails for the last row.
        return f"tile_n * BN > (tile_m + 1) * BM - 1{shift}"


class Epilogue:
    """Builder of an epilogue from the operations after a product."""

    def __init__(self) -> None:
        self.frame: Sizes = ()
        """Dimensions of the product, (M, N) or (L, M, N), once the product is known."""
        self.placed: dict[Ref, ProductValue] = {}
        """Values computed from the product so far."""
        self._beside: dict[Ref, Node] = {}
        self._triangles: dict[int, Triangle] = {}
        self._extras: dict[tuple[str, str], Extra] = {}

    @property
    def extras(self) -> tuple[Extra, ...]:
        """Tensors that the epilogue reads besides the product, in order."""
        return tuple(self._extras.values())

    def append(self, node: Node, shape: tuple[Extent, ...], views: Mapping[Ref, View]) -> None:
        """Add one operation. Raises Declined, naming the operation, where fusing is not supported."""
        op = short_name(node.op)
        refs = [argument for argument in node.args if isinstance(argument, Ref)]
        if not any(ref in self.placed for ref in refs):
            self._keep(node, refs, views)
            return
        first = next(self.placed[ref] for ref in refs if ref in self.placed)
        if op in ("triu", "tril"):
            result = self._triangle(op, node, first)
        elif len(refs) == 1 and (arrangement := moved(first.arrangement, op, node.args, shape)) is not None:
            result = ProductValue(first.expr, arrangement)
        elif is_pointwise(node.op) and len(node.outputs) == 1:
            result = self._pointwise(node, shape, first, views)
        else:
            raise Declined(f"the offline author does not write {node.op} after a matrix product")
        self.placed[Ref(node.name)] = result

    def _keep(self, node: Node, refs: list[Ref], views: Mapping[Ref, View]) -> None:
        """Keep an operation on inputs alone, to recompute it for each element of the product that uses it."""
        known = bool(refs) and all(ref in views or ref in self._beside for ref in refs)
        if not known or not is_pointwise(node.op) or len(node.outputs) != 1:
            raise Declined(f"the offline author does not write {node.op} before a matrix product")
        self._beside[Ref(node.name)] = node

    def _pointwise(
        self, node: Node, shape: tuple[Extent, ...], first: ProductValue, views: Mapping[Ref, View]
    ) -> ProductValue:
        if shape != first.arrangement.shape:
            raise Declined(f"the offline author does not broadcast a product to a larger shape ({node.op})")
        return ProductValue(self._computed(node, first, views), first.arrangement)

    def _computed(self, node: Node, first: ProductValue, views: Mapping[Ref, View]) -> Expr:
        """Build one element of a point-wise operation."""
        kind, dtype = kind_of(node.outputs[0].dtype), node.outputs[0].dtype
        args = [self._value(argument, first, views) for argument in node.args]
        # A factor of 1 is left over from the decomposition of addmm.
        if short_name(node.op) == "mul" and 1 in node.args:
            return next(arg for arg in args if isinstance(arg, Leaf | Const | Apply))
        kwargs = {key: self._value(value, first, views) for key, value in node.kwargs}
        try:
            return pointwise(node.op, args, kwargs, kind, dtype)
        except UnsupportedOperationError as problem:
            raise Declined(str(problem)) from problem

    def _value(self, argument: Argument, first: ProductValue, views: Mapping[Ref, View]) -> object:
        if not isinstance(argument, Ref):
            return argument
        other = self.placed.get(argument)
        if argument in self._beside:
            return self._computed(self._beside[argument], first, views)
        if other is None:
            if argument not in views:
                raise Declined("the offline author does not write tensors that forward makes from numbers")
            return self.element(views[argument], first)
        one, two = other.arrangement, first.arrangement
        if one.shape != two.shape or one.dims != two.dims:
            raise Declined("the offline author does not combine a product with itself in another order")
        return other.expr

    def element(self, view: View, placed: ProductValue) -> Expr:
        """Return the input's element that meets the product's element. Raises Declined if there is none."""
        if view.dtype not in FLOATS:
            raise Declined(f"the offline author does not combine a matrix product with {view.dtype} values")
        sizes = placed.arrangement.sizes
        if not same(broadcast(view.sizes, sizes), sizes):
            raise Declined("the offline author does not broadcast a product to a larger operand")
        self._check_mergeable(view, placed)
        text = view.text
        if not same(view.sizes, sizes):
            text += f".expand({', '.join(size.text for size in sizes)})"
        text = self.framed(text, placed)
        extra = self._extras.get((text, view.dtype))
        if extra is None:
            word = self._word(view.root)
            extra = Extra(f"m{word}", text, word[0].lower() + word[1:])
            self._extras[text, view.dtype] = extra
        return Leaf(extra.register, ValueType.F32)

    def _check_mergeable(self, view: View, placed: ProductValue) -> None:
        """Check the dimensions of an operand that the product merges to one.

        They must be one run in the operand's memory too, or all broadcast. Raises Declined otherwise.
        """
        padded = (SymbolicSize(),) * (len(placed.arrangement.dims) - len(view.sizes)) + view.sizes
        present = {
            at: not size.extent.is_one
            for at, size in zip(placed.arrangement.dims, padded, strict=True)
            if at is not None
        }
        start = 0
        for size in self.frame:
            run = [factor.text for factor in size.factors]
            taken, held = 0, list[bool]()
            while start < len(placed.arrangement.memory) and taken < len(run):
                taken += len(placed.arrangement.memory[start].factors)
                held.append(present.get(start, False))
                start += 1
            one_run = all(held) and view.contiguous and view.arrangement.in_order
            if len(held) > 1 and any(held) and not one_run:
                raise Declined(
                    "the offline author broadcasts a tensor over all rows of a matrix product or over "
                    "none, and here it is broadcast over some of them"
                )

    def framed(self, text: str, placed: ProductValue) -> str:
        """Torch expression for the (M, N, L) view of the tensor `text`, with the dimensions of `placed`."""
        sizes = placed.arrangement.sizes
        view = arrangement_of(sizes).permuted(placed.arrangement.to_memory_order())
        view = view.reshaped([size.extent for size in self.frame])
        view = view.permuted((1, 2, 0)) if len(self.frame) == _BATCHED_RANK else view.appended()
        return view.text(text, sizes)

    def _triangle(self, op: str, node: Node, value: ProductValue) -> ProductValue:
        """Add ``triu`` or ``tril`` as a comparison of the element's coordinates."""
        arrangement = value.arrangement
        if not arrangement.in_order or not same(arrangement.sizes[-2:], self.frame[-2:]):
            raise Declined(f"the offline author does not write {node.op} of a reshaped product")
        diagonal = dict(node.kwargs).get("diagonal", node.args[1] if len(node.args) > 1 else 0)
        assert isinstance(diagonal, int)
        m, n = Leaf("m", ValueType.I32), Leaf("n", ValueType.I32)
        edge: Expr = apply("+", m, number(diagonal, ValueType.I32)) if diagonal else m
        kept = apply(">=" if op == "triu" else "<=", n, edge, kind=ValueType.BOOL)
        expr = apply("select", kept, value.expr, number(0, value.expr.kind), kind=value.expr.kind)
        self._triangles[id(expr)] = Triangle(upper=op == "triu", diagonal=diagonal)
        return ProductValue(expr, arrangement)

    def triangle(self, result: Expr) -> Triangle | None:
        """Return the triangle outside of which `result` does not depend on the product; None without one."""
        found: set[Triangle] = set()
        pending, seen = [result], set[int]()
        while pending:
            expr = pending.pop()
            if id(expr) in self._triangles:
                found.add(self._triangles[id(expr)])
            elif isinstance(expr, Leaf) and expr.name == "acc":
                return None
            elif isinstance(expr, Apply) and id(expr) not in seen:
                seen.add(id(expr))
                pending.extend(expr.args)
        return found.pop() if len(found) == 1 else None

    def _word(self, root: str) -> str:
        """Choose a CuTe-like word for an operand: ``Bias`` for ``self.gemm.bias``."""
        stem = root.rpartition(".")[2].strip("_")
        stem = stem[:1].upper() + stem[1:] if len(stem) > 1 else f"{stem.upper()}In"
        taken = {extra.name for extra in self.extras}
        word, count = stem, 1
        while f"m{word}" in taken:
            count += 1
            word = f"{stem}{count}"
        return word

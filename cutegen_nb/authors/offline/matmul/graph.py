"""Conversion of a traced graph to one matrix product with an element-wise epilogue.

The product is D[m, n, l] = epilogue(Σₖ A[m, k, l]·B[n, k, l]) over tensors of three modes (rows, columns,
batch), in CuTe's order. Transposes and reshapes of the operands become views, never copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.expressions import Expr, Leaf, ValueType, apply, number
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.authors.offline.matmul.epilogue import Epilogue, Extra, ProductValue, Triangle
from cutegen_nb.authors.offline.matmul.sizes import Sizes, SymbolicSize, sizes_of
from cutegen_nb.authors.offline.matmul.views import FLOATS, Arrangement, View, arrangement_of, moved
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec

PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "linear"})
"""Supported matrix products, by ATen's short name."""
_CASTS = frozenset({"_to_copy", "convert_element_type", "to"})
_BATCHED_RANK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixProduct:
    """Graph of one product and its epilogue."""

    a: str
    """Torch expression for A's view of modes (M, K, L)."""
    b: str
    """Torch expression for B's view of modes (N, K, L)."""
    d: str
    """Torch expression for the output's view of modes (M, N, L); the output is named ``D``."""
    output_sizes: Sizes
    """Dimensions of the output as ``forward`` returns it."""
    output_dtype: str
    """torch's dtype name of the output."""
    operand_dtype: str
    """dtype of A and B in memory."""
    like: str
    """Input or parameter whose device the output gets."""
    extras: tuple[Extra, ...]
    """Tensors that the epilogue reads besides the product, in order."""
    result: Expr
    """Expression of one output element; its leaves are ``acc``, ``m``, ``n`` and the extras' registers."""
    triangle: Triangle | None
    """Triangle outside of which the output does not depend on the product; None without one."""
    m: Extent
    """Number of rows, M."""
    n: Extent
    """Number of columns, N."""
    k: Extent
    """Depth, K."""
    batch: Extent
    """Number of independent products, L."""
    k_contiguous: tuple[bool, bool]
    """True, for A and for B, if neighbours along k are neighbours in memory."""


def has_product(graph: Graph) -> bool:
    """Return whether any operation is a matrix product."""
    return any(short_name(node.op) in PRODUCTS for node in graph.nodes)


def read_product(full: Graph, scaled: Graph, texts: Mapping[str, str]) -> MatrixProduct:
    """Read a graph as one product; `texts` holds the expression on the host of each input and parameter.

    Raises Declined, naming what is not supported.
    """
    if [(node.name, node.op) for node in full.nodes] != [(node.name, node.op) for node in scaled.nodes]:
        raise Declined("the reference traces to different operations at the full and at the scaled size")
    return _Reader(full, scaled, texts).product()


class _Reader:
    """Walk over the nodes: views of inputs stay text, operations after the product go to the epilogue."""

    def __init__(self, full: Graph, scaled: Graph, texts: Mapping[str, str]) -> None:
        self.full, self.scaled = full, scaled
        self.views: dict[Ref, View] = {}
        self.a: View | None = None
        self.b: View | None = None
        self.epilogue = Epilogue()
        values = zip((*full.inputs, *full.parameters), (*scaled.inputs, *scaled.parameters), strict=True)
        for value, small in values:
            text = texts[value.name]
            sizes = sizes_of(text, _shape(value.spec, small.spec))
            contiguous = value.spec.strides == _row_major(value.spec.shape)
            view = View(text, sizes, arrangement_of(sizes), value.spec.dtype, contiguous)
            self.views[Ref(value.name)] = view

    def product(self) -> MatrixProduct:
        needed = _needed(self.full)
        for node, small in zip(self.full.nodes, self.scaled.nodes, strict=True):
            if node.name in needed:
                self._node(node, _shape(node.outputs[0], small.outputs[0]))
        if len(self.full.outputs) != 1:
            raise Declined(f"the offline author writes products of one output, not {len(self.full.outputs)}")
        output = self.full.outputs[0]
        if output not in self.epilogue.placed or self.a is None or self.b is None:
            raise Declined("the output does not depend on a matrix product that the offline author can write")
        placed, spec = self.epilogue.placed[output], self.full.spec(output)
        if spec.dtype not in FLOATS:
            raise Declined(f"the offline author does not write products whose output is {spec.dtype}")
        sizes = placed.arrangement.sizes
        (m, k, batch), n = self.a.arrangement.shape, self.b.arrangement.shape[0]
        return MatrixProduct(
            a=self.a.text, b=self.b.text, d=self.epilogue.framed("D", placed),
            output_sizes=sizes, output_dtype=spec.dtype, operand_dtype=self.a.dtype, like=self.a.root,
            extras=self.epilogue.extras, result=placed.expr,
            triangle=self.epilogue.triangle(placed.expr),
            m=m, n=n, k=k, batch=batch, k_contiguous=(_runs_along_k(self.a), _runs_along_k(self.b)),
        )  # fmt: skip

    def _node(self, node: Node, shape: tuple[Extent, ...]) -> None:
        op = short_name(node.op)
        if op in PRODUCTS:
            self._multiply(op, node)
            return
        refs = [argument for argument in node.args if isinstance(argument, Ref)]
        view = self.views.get(refs[0]) if len(refs) == 1 else None
        changed = None if view is None else self._viewed(op, node, view, shape)
        if changed is not None:
            self.views[Ref(node.name)] = changed
        else:
            self.epilogue.append(node, shape, self.views)

    def _viewed(self, op: str, node: Node, view: View, shape: tuple[Extent, ...]) -> View | None:
        """Return the view after an operation that changes no value; None for any other operation."""
        dtype = node.outputs[0].dtype
        if op in _CASTS and view.dtype in FLOATS and dtype in (view.dtype, "float32"):
            return view  # widening changes no value: the kernel widens what it reads
        if op == "mul" and 1 in node.args:
            return view  # the lowering of addmm leaves such factors
        arrangement = moved(view.arrangement, op, node.args, shape)
        return None if arrangement is None else view.arranged(arrangement)

    def _multiply(self, op: str, node: Node) -> None:
        if self.a is not None:
            raise Declined("the offline author writes one matrix product a problem, and this one has more")
        operands = [argument for argument in node.args if isinstance(argument, Ref)]
        added = operands.pop(0) if op.startswith(("addm", "badd")) else None
        bias = operands.pop() if op == "linear" and len(operands) == 3 else None  # noqa: PLR2004 - x, W, b
        a, b = (self._operand(ref, node.op) for ref in operands)
        columns = b.arrangement
        if op == "linear":
            columns = columns.permuted((1, 0))
        vector = op in ("mv", "addmv")
        if vector:
            columns = columns.appended()
        frame, sizes = self._place(node.op, a, b.arranged(columns))
        if vector:
            sizes = sizes[:-1]
        placed = ProductValue(Leaf("acc", ValueType.F32), arrangement_of(sizes))
        self.epilogue.frame = frame
        if added is not None:
            placed = self._sum(dict(node.kwargs), placed, self.views[added])
        if bias is not None:
            placed = self._sum({}, placed, self.views[bias])
        self.epilogue.placed[Ref(node.name)] = placed

    def _sum(self, kwargs: Mapping[str, object], placed: ProductValue, added: View) -> ProductValue:
        """beta·added + alpha·product, as addmm and its variants define it."""
        product, other = placed.expr, self.epilogue.element(added, placed)
        alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
        if isinstance(alpha, int | float) and alpha != 1:
            product = apply("*", product, number(alpha, ValueType.F32))
        if isinstance(beta, int | float) and beta != 1:
            other = apply("*", other, number(beta, ValueType.F32))
        return ProductValue(apply("+", product, other), placed.arrangement)

    def _operand(self, ref: Ref, op: str) -> View:
        view = self.views.get(ref)
        if view is None:
            raise Declined(f"the offline author does not write {op} on a value computed by the reference")
        if view.dtype not in FLOATS:
            raise Declined(f"the offline author does not write matrix products of {view.dtype}")
        return view

    def _place(self, op: str, a: View, b: View) -> tuple[Sizes, Sizes]:
        """Set A and B; return the product's own dimensions, (M, N) or (L, M, N), and those of its result."""
        if a.dtype != b.dtype:
            raise Declined(f"the operands of {op} have different dtypes, {a.dtype} and {b.dtype}")
        if len(b.arrangement.dims) == _BATCHED_RANK:
            # CuTe's mode order: A from (L, M, K) to (M, K, L), B from (L, K, N) to (N, K, L).
            self.a = a.arranged(a.arrangement.permuted((1, 2, 0)))
            self.b = b.arranged(b.arrangement.permuted((2, 1, 0)))
            frame = (a.sizes[0], a.sizes[1], b.sizes[2])
            return frame, frame
        # Leading dimensions of A (batch × sequence, as in ``linear``) merge to rows.
        rows = SymbolicSize(tuple(factor for size in a.sizes[:-1] for factor in size.factors))
        flat = a.arrangement.reshaped((rows.extent, a.sizes[-1].extent))
        self.a = a.arranged(flat.appended())
        self.b = b.arranged(b.arrangement.permuted((1, 0)).appended())
        return (rows, b.sizes[1]), (*a.sizes[:-1], b.sizes[1])


def _runs_along_k(view: View) -> bool:
    """Return whether the second mode, k, is the fastest in memory."""
    arrangement: Arrangement = view.arrangement
    return arrangement.dims[1] is None or arrangement.dims[1] == len(arrangement.memory) - 1


def _shape(full: TensorSpec, scaled: TensorSpec) -> tuple[Extent, ...]:
    return tuple(Extent(a, b) for a, b in zip(full.shape, scaled.shape, strict=True))


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _needed(graph: Graph) -> set[str]:
    """Names of the values that the outputs depend on."""
    needed = {ref.name for ref in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in needed:
            values = (*node.args, *(value for _, value in node.kwargs))
            needed.update(value.name for value in values if isinstance(value, Ref))
    return needed

"""Extents that decide on a mapping: the rows of a reduction, and the dimensions of a matrix product."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_nb.analysis.problem.workload import base_name, operands
from cutegen_nb.core.graph import DTYPE_BYTES, Argument, Graph, Node, TensorSpec
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass

NAMES = ("rows", "columns", "batch", "m", "n", "k", "head")
"""Names of `named_extents`: of the largest reduction its ``rows`` and the ``columns`` that it reduces; of the
largest product ``batch`` times (``m`` × ``k``)·(``k`` × ``n``); of an attention the width of its ``head``."""
_REDUCTIONS = frozenset({
    "sum", "mean", "amax", "amin", "max", "min", "argmax", "argmin", "prod", "var", "std", "var_mean",
    "std_mean", "linalg_vector_norm", "norm", "logsumexp", "any", "all",
})  # fmt: skip
"""ATen operations that reduce the dimensions of their second operand, or all without one."""
_WHOLE = frozenset({"_softmax", "_log_softmax", "softmax", "log_softmax"})
"""ATen operations over rows along their second operand, with a result for each element."""
_SCANS = frozenset({"cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"})
"""ATen operations that scan the dimension of their second operand."""
_PRODUCTS = frozenset({"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot"})
_ADDED = frozenset({"addmm", "baddbmm", "addmv"})
"""Products whose first operand is added, so that the factors are the second and the third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Rows of the largest reduction of a workload."""

    count: int
    """Number of rows, which is the number of results of one statistic."""
    length: int
    """Elements of a row."""
    element_bytes: int
    """Bytes of an element of the largest tensor given."""
    contiguous: bool
    """True if the reduced dimensions are the innermost in memory."""
    statistics: int
    """Number of reductions over the same rows."""
    elementwise_result: bool
    """True if the workload returns a value for each element of the rows."""

    @property
    def size_bytes(self) -> int:
        """Bytes of one row."""
        return self.length * self.element_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductExtents:
    """Extents of the largest matrix product of a workload: ``batch`` times (m × k)·(k × n)."""

    m: int
    """Rows of the result."""
    n: int
    """Columns of the result."""
    k: int
    """Terms of each sum."""
    batch: int = 1
    """Number of products."""
    k_contiguous: bool = True
    """True if the larger factor is contiguous along k."""

    @property
    def outputs(self) -> int:
        """Number of results."""
        return self.m * self.n * self.batch


def rows_of(workload: Workload) -> Rows | None:
    """Return the rows of the largest reduction; a matrix–vector product counts as one.

    None where nothing is reduced.
    """
    graph = workload.graph
    found = [(node, reduced) for node in graph.nodes if (reduced := _reduced(graph, node))]
    product = product_of(workload)
    if not found:
        return _rows_of_product(product, workload) if product and min(product.m, product.n) == 1 else None
    node, reduced = max(found, key=lambda item: _source(graph, item[0]).elements)
    source = _source(graph, node)
    length = math.prod(source.shape[dim] for dim in reduced)
    same = [dims for other, dims in found if _source(graph, other).shape == source.shape and dims == reduced]
    return Rows(
        count=source.elements // max(length, 1),
        length=length,
        element_bytes=_element_bytes(workload),
        contiguous=_innermost(source, reduced),
        # A softmax that is not lowered finds its maximum and its sum in one node.
        statistics=max(len(same), 2 if base_name(node.op) in _WHOLE else 1),
        elementwise_result=any(spec.elements >= source.elements for spec in graph.output_specs),
    )


def scanned_rows_of(workload: Workload) -> Rows | None:
    """Return the rows of the first scan; None where nothing is scanned."""
    graph = workload.graph
    node = next((node for node in graph.nodes if base_name(node.op) in _SCANS), None)
    if node is None or len(node.args) < 2:  # noqa: PLR2004 - the tensor and the dimension
        return None
    source = _source(graph, node)
    along = tuple(dim % len(source.shape) for dim in _dims(node.args[1])) if source.shape else ()
    length = math.prod(source.shape[dim] for dim in along)
    return Rows(
        count=source.elements // max(length, 1),
        length=length,
        element_bytes=_element_bytes(workload),
        contiguous=_innermost(source, along),
        statistics=1,
        elementwise_result=True,
    )


def product_of(workload: Workload) -> ProductExtents | None:
    """Return the extents of the product with the most arithmetic; None where there is none."""
    graph = workload.graph
    found = [_product(graph, node) for node in graph.nodes if base_name(node.op) in _PRODUCTS]
    return max(found, key=lambda item: item.outputs * item.k, default=None)


def named_extents(facts: ProblemFacts) -> dict[str, int]:
    """Return every extent in `NAMES` at the problem's full size; 0 where the graph has no such part."""
    found = dict.fromkeys(NAMES, 0)
    rows, product = rows_of(facts.full), product_of(facts.full)
    if rows:
        found |= {"rows": rows.count, "columns": rows.length}
    if product:
        found |= {"batch": product.batch, "m": product.m, "n": product.n, "k": product.k}
    if facts.workload_class is WorkloadClass.ATTENTION:
        graph = facts.full.graph
        # The scores Q·Kᵀ are the first product, and its terms run over the head.
        scores = next((node for node in graph.nodes if base_name(node.op) == "bmm"), None)
        found["head"] = _source(graph, scores).shape[-1] if scores else 0
    return found


def bytes_asked_once(workload: Workload) -> int:
    """Return the bytes of a call whose elements each ask once for every input, broadcast where needed.

    A parameter that the innermost dimensions of the largest tensor share is asked for again in every row, so
    it counts with that tensor's size. This is what a kernel loads that reads its rows once.
    """
    given = (*workload.graph.inputs, *workload.graph.parameters)
    largest = max((value.spec for value in given), key=lambda spec: spec.elements, default=None)
    if largest is None:
        return 0
    total = 0
    for value in given:
        shape = value.spec.shape
        shared = value.spec.elements > 1 and largest.shape[-len(shape) :] == shape
        elements = largest.elements if shared else value.spec.elements
        total += elements * DTYPE_BYTES[value.spec.dtype]
    return total


def largest_given(workload: Workload) -> TensorSpec | None:
    """Return the largest tensor among inputs and parameters; None where there is none."""
    given = (*workload.graph.inputs, *workload.graph.parameters)
    return max((value.spec for value in given), key=lambda spec: spec.size_bytes, default=None)


def _reduced(graph: Graph, node: Node) -> tuple[int, ...]:
    """Dimensions that a node reduces, ascending and from 0; empty for other nodes."""
    name = base_name(node.op)
    if name not in _REDUCTIONS | _WHOLE or not operands(node) or not node.outputs:
        return ()
    if len(operands(node)) > 1:  # ``max`` of two tensors compares element by element
        return ()
    rank = len(_source(graph, node).shape)
    dims = _dims(node.args[1]) if len(node.args) > 1 else ()
    if name in {"linalg_vector_norm", "norm"}:
        # The second operand of a norm is its order, the third names the dimensions.
        dims = _dims(node.args[2]) if len(node.args) > 2 else ()  # noqa: PLR2004 - the third operand
    return tuple(sorted(dim % rank for dim in dims)) if dims and rank else tuple(range(rank))


def _dims(argument: Argument) -> tuple[int, ...]:
    if isinstance(argument, int) and not isinstance(argument, bool):
        return (argument,)
    return tuple(item for item in argument if isinstance(item, int)) if isinstance(argument, tuple) else ()


def _source(graph: Graph, node: Node) -> TensorSpec:
    return graph.spec(operands(node)[0])


def _innermost(spec: TensorSpec, reduced: tuple[int, ...]) -> bool:
    """Return whether every reduced dimension has a smaller stride than every kept one."""
    inner = [spec.strides[dim] for dim in reduced if spec.shape[dim] > 1]
    outer = [
        spec.strides[dim] for dim in range(len(spec.shape)) if dim not in reduced and spec.shape[dim] > 1
    ]
    return not inner or not outer or max(inner) < min(outer)


def _element_bytes(workload: Workload) -> int:
    largest = largest_given(workload)
    return DTYPE_BYTES[largest.dtype] if largest else 0


def _product(graph: Graph, node: Node) -> ProductExtents:
    factors = operands(node)[1:3] if base_name(node.op) in _ADDED else operands(node)[:2]
    left, right = (graph.spec(ref) for ref in factors)
    m = left.shape[-2] if len(left.shape) > 1 else 1
    n = right.shape[-1] if len(right.shape) > 1 else 1
    # A vector is contiguous along k whatever its stride; of the factors the larger decides on the traffic.
    along_k = left.strides[-1] if left.elements >= right.elements else right.strides[-2 if n > 1 else -1]
    batch = math.prod(node.outputs[0].shape[:-2]) if len(left.shape) > 2 else 1  # noqa: PLR2004 - a matrix
    return ProductExtents(m=m, n=n, k=left.shape[-1], batch=batch, k_contiguous=along_k == 1)


def _rows_of_product(product: ProductExtents, workload: Workload) -> Rows:
    return Rows(
        count=product.outputs,
        length=product.k,
        element_bytes=_element_bytes(workload),
        contiguous=product.k_contiguous,
        statistics=1,
        elementwise_result=False,
    )

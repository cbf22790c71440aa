"""Key of a problem: the structured facts by which like problems are found again."""

from __future__ import annotations

from cutegen_nb.analysis.problem.extents import ProductExtents, Rows, product_of, rows_of
from cutegen_nb.analysis.problem.workload import base_name, is_movement, operands
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.search.knowledge import ProblemKey, Regime

_SMALL_BYTES = 4 << 20
"""Bytes that a GPU with 1.5 to 5 TB/s moves in 1 to 3 µs, about the time of a launch."""
_SMALL_FLOPS = 100_000_000
"""FLOPs that a GPU with 20 to 60 TFLOP/s of fp32 does in 2 to 5 µs."""
_FEW_ROWS = 256
"""Rows below which a CTA a row leaves multiprocessors idle; the largest GPUs have 132 to 192."""
_SHORT_ROW = 4096
"""Most elements of a row that a warp reduces by itself, as in `Condition.SHORT_ROWS`."""
_APART = 4
"""Quotient of two extents of a product from which they are not alike."""
_WINDOWS = frozenset({WorkloadClass.CONVOLUTION, WorkloadClass.POOLING})
_PRODUCTS = frozenset({WorkloadClass.MATMUL, WorkloadClass.ATTENTION})


def problem_key(facts: ProblemFacts) -> ProblemKey:
    """Return the key of a problem at its full size."""
    operators = {base_name(node.op) for node in facts.full.graph.nodes if not is_movement(node)}
    return ProblemKey(
        workload_class=facts.workload_class,
        parts=facts.parts,
        operators=tuple(sorted(operators)),
        dtype=facts.dtype,
        regime=_regime(facts),
    )


def _regime(facts: ProblemFacts) -> Regime:
    full = facts.full
    dominant = facts.parts[0] if facts.parts else facts.workload_class
    if full.least_bytes <= _SMALL_BYTES and full.flops <= _SMALL_FLOPS:
        return Regime.SMALL
    if dominant in _WINDOWS:
        return Regime.CHANNELS_PRODUCT if _sums_channels(full.graph) else Regime.WINDOWS
    product = product_of(full) if dominant in _PRODUCTS else None
    if product is not None and min(product.m, product.n) > 1:
        return _of_product(product)
    return _of_rows(full)


def _sums_channels(graph: Graph) -> bool:
    """Return whether a convolution of the graph sums over several channels of its input."""
    return any(
        base_name(node.op) == "convolution"
        and isinstance(groups := node.args[8], int)
        and graph.spec(operands(node)[0]).shape[1] > groups
        for node in graph.nodes
    )


def _of_product(product: ProductExtents) -> Regime:
    if product.k >= _APART * max(product.m, product.n):
        return Regime.LONG_K_PRODUCT
    is_tall = max(product.m, product.n) >= _APART * min(product.m, product.n)
    return Regime.TALL_PRODUCT if is_tall else Regime.SQUARE_PRODUCT


def _of_rows(full: Workload) -> Regime:
    rows: Rows | None = rows_of(full)
    if rows is None:
        return Regime.LARGE_STREAM
    if rows.count < _FEW_ROWS:
        return Regime.FEW_LONG_ROWS
    if not rows.contiguous:
        return Regime.STRIDED_ROWS
    return Regime.MANY_SHORT_ROWS if rows.length <= _SHORT_ROW else Regime.MANY_LONG_ROWS

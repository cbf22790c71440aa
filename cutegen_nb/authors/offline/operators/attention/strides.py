"""Memory of an attention's operands and output: heads and rows in either order, slices of a larger tensor."""

from __future__ import annotations

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.core.graph import DTYPE_BYTES, Graph, Node, Ref

WIDEST_PARTS = 128
"""Columns of float32 whose tiles in two parts each fit in shared memory."""
WIDEST_WGMMA = 256
"""Columns of 16 bits whose tiles fit in shared memory, and whose sums in the registers of a warp group."""
TMA_ELEMENTS = 8
"""Elements of 16 bits in 16 bytes: TMA reads rows that are a multiple of it."""
_VECTOR_BYTES = 16
"""Bytes of the widest copies, TMA's among them; every row has to begin at a multiple of them."""
_MOST_DIMENSIONS = 4
"""Dimensions of a tensor with batch and head, rows and columns."""
_VIEWS = frozenset({"view", "_unsafe_view", "reshape"})
"""Operations of the trace that only put dimensions together or split them."""
_MOVES = _VIEWS | {"permute", "slice", "narrow", "select", "split_with_sizes"}
"""Operations of the trace whose result is their operand's memory with other strides."""


def strides_fit(graph: Graph, tensors: tuple[Ref, ...]) -> bool:
    """Return whether the kernels of these queries, keys and values take strides other than dense ones."""
    specs = [graph.spec(ref) for ref in tensors]
    # Wider heads of float32 are multiplied by functions for dense matrices.
    narrow = specs[0].dtype != "float32" or all(spec.shape[-1] <= WIDEST_PARTS for spec in specs)
    return narrow and len(specs[0].shape) <= _MOST_DIMENSIONS


def suits_wgmma(graph: Graph, tensors: tuple[Ref, ...]) -> bool:
    """Return whether TMA reads rows of these widths, and wgmma's sums of them fit in registers."""
    widest = WIDEST_PARTS if graph.spec(tensors[0]).dtype == "float32" else WIDEST_WGMMA
    widths = [graph.spec(ref).shape[-1] for ref in tensors]
    return max(widths) <= widest and not any(width % TMA_ELEMENTS for width in widths)


def in_place(graph: Graph, tensors: tuple[Ref, ...]) -> bool:
    """Return whether the kernel should read queries, keys and values as their views lie in memory.

    One of them is then permuted or a slice, and vectors along the columns of all are whole.
    """
    whole = all(
        graph.spec(ref).shape[-1] * DTYPE_BYTES[graph.spec(ref).dtype] % _VECTOR_BYTES == 0 for ref in tensors
    )
    chains = [_views(graph, ref) for ref in tensors]
    columns_stay = all(_keeps_columns(node) for chain in chains for node in chain)
    moved = any(short_name(node.op) not in _VIEWS for chain in chains for node in chain)
    return whole and columns_stay and moved and strides_fit(graph, tensors)


def kept_columns(node: Node) -> tuple[int, ...] | None:
    """Return the order of a permutation that leaves the last dimension in its place; None for others."""
    if short_name(node.op) != "permute" or not isinstance(node.args[1], tuple):
        return None
    rank = len(node.outputs[0].shape)
    order = tuple(int(dim) % rank for dim in node.args[1] if isinstance(dim, int))
    return order if order[-1] == rank - 1 else None


def _views(graph: Graph, ref: Ref) -> list[Node]:
    """Views between a tensor and memory."""
    found: list[Node] = []
    while (node := graph.node(ref.name)) is not None and short_name(node.op) in _MOVES:
        source = node.args[0]
        assert isinstance(source, Ref)
        found.append(node)
        ref = source
    return found


def _keeps_columns(node: Node) -> bool:
    """Return whether elements of the last dimension still lie side by side after a view of them."""
    op, dims = short_name(node.op), len(node.outputs[0].shape)
    if op == "permute":
        return kept_columns(node) is not None
    if op == "select":
        return node.args[1] not in (-1, dims)
    if op == "slice":
        return len(node.args) < 5 or node.args[4] == 1  # noqa: PLR2004 - (x, dim, start, end, step)
    return True

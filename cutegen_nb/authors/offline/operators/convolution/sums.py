"""Sums and average poolings of a convolution's output, from sums of its input and its weights.

Every output is a sum of products of an input and a tap. Summed over a dimension, a tap meets a range of the
input, all of it but for a few elements at the edges that padding cuts off. So the sum needs each input once:

    sum over o of y[o] = sum over taps k of w[k] · sum of x over the range of k

The average of a window of outputs is a convolution with a wider kernel, the average of the shifted ones, and
with the window's step: 36 products instead of 16 · 9 for windows of 4 × 4 behind a kernel of 3 × 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import base_name, operands
from cutegen_nb.authors.offline.graph.builder import GraphBuilder
from cutegen_nb.authors.offline.operators.convolution.reading import Convolution, numbers_of
from cutegen_nb.core.graph import Argument, Graph, Node, Ref

POOLINGS = frozenset({"avg_pool2d", "avg_pool3d"})
"""Operations that average windows."""
_POOLING_DEFAULTS: tuple[Argument, ...] = (None, (), (0,), False, True, None)
"""Defaults of a pooling's arguments behind its input: window, step, padding, rounding up, counting zeros,
another divisor."""
_MOST_PIECES = 9
"""Pairs of a range of the input and taps, at most: each is summed by itself."""
_LEAST_GAIN = 2.0
"""Factor by which a wider kernel has to save products: one with a step reads its input less regularly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Range of the input along one dimension, with the taps that meet it (or, if taken away, do not)."""

    begin: int
    end: int
    taps: tuple[int, int]
    taken_away: bool = False


def summed_convolution(build: GraphBuilder, node: Node, dims: Sequence[int]) -> Ref | None:
    """Sum a convolution's output over spatial dimensions, which are kept with extent 1.

    Returns None for other dimensions, groups, a step of the input, and where the sums would cost as much.
    """
    numbers = numbers_of(node)
    shape = node.outputs[0].shape
    if numbers.groups != 1 or min(dims, default=0) < 2:  # noqa: PLR2004 - batch and channels come first
        return None
    x, weight, *bias = operands(node)
    axes = [_pieces(build, node, numbers, dim) for dim in dims]
    count = math.prod(shape[dim] for dim in dims)
    if not all(axes) or math.prod(map(len, axes)) > min(_MOST_PIECES, count - 1):
        return None
    inputs, weights = [], []
    for pieces in itertools.product(*axes):
        part, taps = x, weight
        for dim, piece in zip(dims, pieces, strict=True):
            part = build.slice(part, dim, piece.begin, piece.end)
            taps = build.slice(taps, dim, *piece.taps)
        taps = build.total(taps, tuple(dims))
        taken_away = sum(piece.taken_away for piece in pieces) % 2 == 1
        inputs.append(build.total(part, tuple(dims)))
        weights.append(build.number("mul", taps, -1.0) if taken_away else taps)
    given = build.cat(inputs, 1)
    factors = build.cat(weights, 0 if numbers.transposed else 1)
    scaled = [build.numbers("mul", one, (shape[dim] for dim in dims)) for one in bias]
    kept = [dim for dim in range(2, len(shape)) if dim not in dims]
    if kept:
        found = _over_the_rest(build, numbers, (given, factors, *scaled), (shape, kept))
    else:
        found = _as_product(build, given, factors, transposed=numbers.transposed)
    result = build.view(found, (1 if dim in dims else extent for dim, extent in enumerate(shape)))
    if kept or not scaled:
        return result
    return build.step("aten.add.Tensor", (result, build.view(scaled[0], (shape[1], *[1] * (len(shape) - 2)))))


def _pieces(build: GraphBuilder, node: Node, numbers: Convolution, dim: int) -> list[_Piece]:
    """Divide a dimension: all of it with all taps, less what taps do not meet at its edges. Empty for none.

    A tap k meets input i in output i + p - k·d, or in i·s - p + k·d of a transposed convolution (p the
    padding, d the dilation, s the step), as long as that is an output.
    """
    x, weight = (build.spec(ref).shape[dim] for ref in operands(node)[:2])
    outputs, axis = node.outputs[0].shape[dim], dim - 2
    step = numbers.stride[axis]
    if step != 1 and not numbers.transposed:
        return []
    shifts = [numbers.padding[axis] - tap * numbers.dilation[axis] for tap in range(weight)]
    if numbers.transposed:
        # 0 <= i·s - shift < outputs, in whole numbers: the first i rounds up.
        ranges = [(-(-shift // step), (outputs - 1 + shift) // step + 1) for shift in shifts]
    else:
        ranges = [(-shift, outputs - shift) for shift in shifts]
    ranges = [(max(0, begin), min(x, end)) for begin, end in ranges]
    if any(begin >= end for begin, end in ranges):
        return []
    begins, ends = zip(*ranges, strict=True)
    return [
        _Piece(begin=0, end=x, taps=(0, weight)),
        *(_Piece(begin=0, end=at, taps=taps, taken_away=True) for at, taps in _runs(begins) if at > 0),
        *(_Piece(begin=at, end=x, taps=taps, taken_away=True) for at, taps in _runs(ends) if at < x),
    ]


def _runs(places: Sequence[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each place with the range of taps that have it; places rise or fall with the taps."""
    first = 0
    for place, alike in itertools.groupby(places):
        last = first + len(list(alike))
        yield place, (first, last)
        first = last


def _as_product(build: GraphBuilder, given: Ref, factors: Ref, *, transposed: bool) -> Ref:
    """Multiply sums of the input by sums of the taps, where no dimension is left."""
    rows, columns = (build.spec(ref).shape[:2] for ref in (given, factors))
    right = build.view(factors, columns)
    return build.product(build.view(given, rows), right if transposed else build.permute(right, (1, 0)))


def _over_the_rest(
    build: GraphBuilder,
    numbers: Convolution,
    tensors: tuple[Ref, ...],
    size: tuple[tuple[int, ...], Sequence[int]],
) -> Ref:
    """Add a convolution over the dimensions that are left; `size` is the result's shape, and those."""
    shape, kept = size
    given, factors = (
        build.view(ref, (*build.spec(ref).shape[:2], *(build.spec(ref).shape[dim] for dim in kept)))
        for ref in tensors[:2]
    )
    own = [
        tuple(values[dim - 2] for dim in kept)
        for values in (numbers.stride, numbers.padding, numbers.dilation)
    ]
    more = tuple(numbers.output_padding[dim - 2] for dim in kept)
    bias = tensors[2] if len(tensors) > 2 else None  # noqa: PLR2004 - input and weights
    args = (given, factors, bias, *own, numbers.transposed, more, 1)
    return build.put("summed", "aten.convolution.default", args, (*shape[:2], *(shape[dim] for dim in kept)))


def pooled_convolution(graph: Graph, pooling: Node) -> list[Node]:
    """Return the nodes that replace an average pooling behind a convolution of step 1, the last by its name.

    Empty for padding or partial windows, for a convolution that is read by others as well, and where the
    wider kernel would not save half of the products. A kernel of one tap is left, behind the pooling.
    """
    source, window, step, padding, rounded_up, _, divisor = pooling_arguments(pooling)
    node = graph.node(source.name) if isinstance(source, Ref) else None
    users = [other for other in graph.nodes if source in operands(other)]
    if node is None or base_name(node.op) != "convolution" or len(users) != 1 or source in graph.outputs:
        return []
    spatial = len(node.outputs[0].shape) - 2
    sizes, steps = (_each(value, spatial) for value in (window, step or window))
    plain = not any(_each(padding, spatial)) and not rounded_up and divisor is None
    if not plain or not _is_plain(graph, node):
        return []
    build, shape = GraphBuilder(graph), pooling.outputs[0].shape
    x, weight, *bias = operands(node)
    taps = graph.spec(weight).shape[2:]
    if math.prod(taps) == 1 and not any(numbers_of(node).padding):
        channels = graph.spec(x).shape[:2]
        x = build.put("pooled", pooling.op, (x, *pooling.args[1:]), (*channels, *shape[2:]))
        steps = (1,) * spatial
    else:
        wide = [tap + size - 1 for tap, size in zip(taps, sizes, strict=True)]
        products = math.prod(node.outputs[0].shape[2:]) * math.prod(taps)
        if products < _LEAST_GAIN * math.prod(shape[2:]) * math.prod(wide):
            return []
        weight = _averaged(build, pooling.op, weight, sizes)
    args = (x, weight, bias[0] if bias else None, steps, *node.args[4:])
    build.put("convolution", "aten.convolution.default", args, shape)
    *others, last = build.nodes
    return [*others, replace(last, name=pooling.name)]


def pooling_arguments(node: Node) -> tuple[Argument, ...]:
    """Input, window, step, padding, rounding up, counting zeros and divisor of an average pooling."""
    return (*node.args, *_POOLING_DEFAULTS[len(node.args) - 1 :])


def _is_plain(graph: Graph, node: Node) -> bool:
    """Return whether a convolution is one in float32 with neighbouring taps and outputs, not transposed."""
    numbers = numbers_of(node)
    single = {spec.dtype for spec in map(graph.spec, operands(node))} == {"float32"}
    return single and not numbers.transposed and set(numbers.stride) | set(numbers.dilation) == {1}


def _averaged(build: GraphBuilder, op: str, weight: Ref, sizes: Sequence[int]) -> Ref:
    """Average a kernel shifted by each place of a window: it is wider by the window's size less one."""
    shape = build.spec(weight).shape
    edges = [size - 1 for size in sizes]
    padded = tuple(extent + 2 * edge for extent, edge in zip(shape, (0, 0, *edges), strict=True))
    # `constant_pad_nd` counts from the last dimension, with both edges of each.
    both = tuple(edge for edge in reversed(edges) for _ in range(2))
    kernel = build.put("padded", "aten.constant_pad_nd.default", (weight, both, 0.0), padded)
    wide = tuple(extent - edge for extent, edge in zip(padded, (0, 0, *edges), strict=True))
    return build.put("wider", op, (kernel, tuple(sizes), (1,) * len(sizes)), wide)


def _each(value: object, count: int) -> tuple[int, ...]:
    """One number for each spatial dimension; ATen lets a single one stand for all."""
    numbers = tuple(value) if isinstance(value, tuple) else (value,)
    return tuple(numbers) * count if len(numbers) == 1 else tuple(numbers)

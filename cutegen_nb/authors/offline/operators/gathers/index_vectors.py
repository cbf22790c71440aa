"""Index vectors that a reference makes from numbers alone: their values, and the ways that make them.

PyTorch's trace spells reflecting and replicating padding, rolls and nearest interpolation as
``index(x, [..., i])`` with i computed from ``arange``. The values of i are computed here, and recognised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.gathers.attributes import AxisMap
from cutegen_nb.core.graph import Argument, Graph, Ref

Vector = npt.NDArray[Any]
"""Index of each element along one dimension."""
LONGEST = 1 << 20
"""Elements of the longest vector whose values are computed."""
_RULES: dict[str, Callable[..., Vector]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "abs": np.abs,
    "neg": np.negative,
    "fmod": np.fmod,
    "remainder": np.remainder,
    "clamp": lambda x, low=None, high=None: np.clip(x, low, high),
    "view": np.reshape,
    "clone": lambda x: x,
    "floor": np.floor,
}
"""Operations on index vectors, by ATen's short name."""
_DTYPES = frozenset({"int64", "int32", "float32", "float64"})
"""dtypes of vectors whose values are computed."""


def index_values(graph: Graph, ref: Ref) -> Vector | None:
    """Values of a tensor that is made from numbers; None where it is not, or by an unknown operation."""
    node = graph.node(ref.name)
    if node is None or node.outputs[ref.index].elements > LONGEST:
        return None
    if node.outputs[0].dtype not in _DTYPES:
        return None
    op, dtype = short_name(node.op), np.dtype(node.outputs[0].dtype)
    if op == "arange":
        numbers = [arg for arg in node.args if isinstance(arg, int | float)]
        return np.arange(*numbers).astype(dtype)
    operands = [_operand(graph, arg) for arg in node.args]
    if any(value is None and arg is not None for value, arg in zip(operands, node.args, strict=True)):
        return None
    if op == "_to_copy":
        return np.asarray(operands[0]).astype(dtype)
    rule = _RULES.get(op)
    if rule is None or any(key != "dtype" for key, _ in node.kwargs):
        return None
    return rule(*operands).astype(dtype)


def _operand(graph: Graph, argument: Argument) -> object:
    if isinstance(argument, Ref):
        return index_values(graph, argument)
    return argument


def axis_maps(values: Vector, extent: int, dim: int) -> tuple[AxisMap, ...]:
    """Ways from 0 … n - 1 to the n indices `values` of an axis of `extent` elements; empty if none is known.

    There may be several: a roll by 3 of 8 elements is one by -5. Only one of them is right at every size. A
    range has none: it may have more to do with another tensor's extent than with this one's.
    """
    count = len(values)
    at = np.arange(count)
    first, grown = int(values[0]), count - extent
    if np.array_equal(values, first + at):
        return ()
    ways: list[AxisMap] = []
    if count % extent == 0:
        ways.append(AxisMap(dim, "repeat", count // extent))
    if count > 1 and int(values[1]) > 1 and first == 0:
        ways.append(AxisMap(dim, "step", int(values[1])))
    ways += [AxisMap(dim, "reverse")] if not grown else []
    # Circular padding by k in front is a roll by -k of a longer axis.
    numbers = (-(-first % extent),) if grown else (first, first - extent)
    ways += [AxisMap(dim, "roll", number, grown) for number in numbers]
    # Before the input stand as many further zeros, or the elements 1, 2, … mirrored.
    leading = int(np.argmax(values > 0)) - 1 if first == 0 else -first
    ways += [AxisMap(dim, "clamp", leading, grown), AxisMap(dim, "mirror", first, grown)]
    return tuple(
        way for way in ways if np.array_equal(_mapped(way, at, extent), values) and _fits(way, count, extent)
    )


def _mapped(way: AxisMap, at: Vector, extent: int) -> Vector:
    moved: Vector = at - way.number
    places = moved
    match way.kind:
        case "step":
            places = at * way.number
        case "reverse":
            places = extent - 1 - at
        case "repeat":
            places = at // way.number
        case "roll":
            places = np.remainder(at + way.number, extent)
        case "clamp":
            places = np.clip(moved, 0, extent - 1)
        case "mirror":
            places = extent - 1 - np.abs(extent - 1 - np.abs(moved))
    return places


def _fits(way: AxisMap, count: int, extent: int) -> bool:
    """Return whether the number of outputs follows from the way."""
    return way.kind != "step" or count == -(-extent // way.number)

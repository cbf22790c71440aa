"""Canonical form of each traced ATen operation.

ATen has several operators for one operation (``view``, ``_unsafe_view``, ``unsqueeze`` …). Each is rewritten
to one of them, with its defaults filled in, so that readers of a graph match one form:

================================  =====================================================================
``aten.view.default``             (x, shape): x's elements in row-major order, in `shape`; also every
                                  reshape, squeeze and unsqueeze, whatever x's strides
``aten.permute.default``          (x, dims)
``aten.expand.default``           (x, shape), no −1
``aten.slice.Tensor``             (x, dim, start, end, step), within bounds
``aten.sum.dim_IntList``,         (x, dims, keepdim), dims sorted and not negative; also the full
``aten.mean.dim``, ``aten.amax``  reductions, ``max.dim`` and ``min.dim`` whose indices are unused
``aten.var.correction``           (x, dims, correction, keepdim)
``aten.argmax.default``           (x, dim or None, keepdim)
``aten.clamp.default``            (x, low or None, high or None); also ``maximum`` and ``minimum`` with a
                                  number
``aten.full.default``             (shape, value); gone where a point-wise operation takes the number
``aten._to_copy.default``         (x) with keyword ``dtype``
``aten.cat.default``              (tensors, dim); ``cumsum``, ``cumprod``, ``select``, ``gather``,
                                  ``index_select``, ``flip``: (x, dim or dims, …); dims never negative
binary operations                 ``.Tensor`` whether an operand is a tensor or a number; keyword ``alpha``
                                  only where it is not 1, ``rounding_mode`` where there is one
================================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from cutegen_nb.core.graph import Argument, Node

TAKES_NUMBER = frozenset({
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2", "where",
    "eq", "ne", "lt", "le", "gt", "ge", "clamp", "bitwise_and", "bitwise_or", "bitwise_xor",
    "logical_and", "logical_or", "logical_xor",
})  # fmt: skip
"""Point-wise operations that accept a number in place of a tensor."""
RESHAPES = frozenset({"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "_reshape_alias"})
"""Operations that change the shape and keep the elements in row-major order."""
_BINARY = TAKES_NUMBER - {"where", "clamp", "pow"}
"""Operations of two operands whose ``Scalar`` overload is read as ``Tensor``."""


def canonical(read: Node, node: torch.fx.Node) -> Node:
    """Rewrite `read`, the operation of the FX node `node`, to the form in the table above."""
    base = read.op.split(".")[1] if "." in read.op else read.op
    if base in RESHAPES:
        return replace(read, op="aten.view.default", args=(read.args[0], read.outputs[0].shape), kwargs=())
    rewrite = _SPELLINGS.get(base) or (_binary if base in _BINARY else None)
    return read if rewrite is None else rewrite(read, node)


def _rank(node: torch.fx.Node) -> int:
    return int(node.args[0].meta["val"].dim())


def _operand(read: Node, position: int, keyword: str, default: Argument = None) -> Argument:
    """Return an operand given by position or by keyword."""
    if len(read.args) > position:
        return read.args[position]
    return dict(read.kwargs).get(keyword, default)


def _restrided(read: Node, node: torch.fx.Node) -> Node:
    """Rewrite ``as_strided`` that keeps every element's place, as pooling to one element ends with."""
    source, result = node.args[0].meta["val"], node.meta["val"]
    kept = source.shape == result.shape and source.storage_offset() == result.storage_offset()
    steps = zip(source.shape, source.stride(), result.stride(), strict=False)
    if not kept or any(one != other for extent, one, other in steps if extent > 1):
        return read
    return replace(read, op="aten.view.default", args=(read.args[0], read.outputs[0].shape), kwargs=())


def _dims(read: Node, node: torch.fx.Node) -> tuple[int, ...]:
    """Return the reduced dimensions, sorted and not negative; all of them if none is given."""
    rank = _rank(node)
    dim = _operand(read, 1, "dim")
    if dim is None or dim == ():
        return tuple(range(rank))
    given = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted(int(item) % max(rank, 1) for item in given))  # type: ignore[arg-type]


def _reduction(name: str) -> Callable[[Node, torch.fx.Node], Node]:
    def rewrite(read: Node, node: torch.fx.Node) -> Node:
        keepdim = bool(_operand(read, 2, "keepdim", default=False))
        return replace(read, op=name, args=(read.args[0], _dims(read, node), keepdim), kwargs=())

    return rewrite


def _variance(read: Node, node: torch.fx.Node) -> Node:
    keywords = dict(read.kwargs)
    correction, keepdim = keywords.get("correction"), bool(keywords.get("keepdim", False))
    # ATen's default is the unbiased variance: division by n − 1.
    args = (read.args[0], _dims(read, node), 1 if correction is None else correction, keepdim)
    return replace(read, op="aten.var.correction", args=args, kwargs=())


def _position(read: Node, node: torch.fx.Node) -> Node:
    dim = _operand(read, 1, "dim")
    at = None if dim is None else int(dim) % max(_rank(node), 1)  # type: ignore[arg-type]
    keepdim = bool(_operand(read, 2, "keepdim", default=False))
    return replace(read, args=(read.args[0], at, keepdim), kwargs=())


def _extreme(read: Node, node: torch.fx.Node) -> Node:
    """Rewrite ``max`` and ``min`` to ``amax`` and ``amin``, unless the indices are used."""
    kind = read.op.split(".")[1]
    if len(read.outputs) == 1:
        return _reduction(f"aten.a{kind}.default")(read, node)
    if any(user.args[1] != 0 for user in node.users):  # getitem 1: the indices
        return read
    values = replace(read, outputs=read.outputs[:1])
    return _reduction(f"aten.a{kind}.default")(values, node)


def _clamp(read: Node, _: torch.fx.Node) -> Node:
    kind = read.op.split(".")[1]
    low = None if kind == "clamp_max" else _operand(read, 1, "min")
    high = _operand(read, 1, "max") if kind == "clamp_max" else _operand(read, 2, "max")
    return replace(read, op="aten.clamp.default", args=(read.args[0], low, high), kwargs=())


def _binary(read: Node, _: torch.fx.Node) -> Node:
    kind, overload = read.op.split(".")[1:3]
    keywords = dict(read.kwargs) | dict(zip(("alpha",), read.args[2:], strict=False))
    kept = tuple((key, value) for key, value in keywords.items() if not (key == "alpha" and value == 1))
    suffix = {"Scalar": "Tensor", "Scalar_mode": "Tensor_mode"}.get(overload, overload)
    return replace(read, op=f"aten.{kind}.{suffix}", args=read.args[:2], kwargs=kept)


def _filled(read: Node, _: torch.fx.Node) -> Node:
    kind = read.op.split(".")[1]
    # By first letter: zeros, zeros_like and new_zeros give 0, ones 1; full and scalar_tensor take an operand.
    value: Argument = {"z": 0, "o": 1}.get(kind.removeprefix("new_")[0])
    if value is None:
        position = {"scalar_tensor": 0, "new_full": 2}.get(kind, 1)
        value = read.args[position]
    spec = read.outputs[0]
    return replace(read, op="aten.full.default", args=(spec.shape, value), kwargs=(("dtype", spec.dtype),))


def _slice(read: Node, node: torch.fx.Node) -> Node:
    rank = _rank(node)
    dim = int(_operand(read, 1, "dim", 0)) % rank  # type: ignore[arg-type]
    size = int(node.args[0].meta["val"].shape[dim])
    start, end = _operand(read, 2, "start"), _operand(read, 3, "end")
    step = int(_operand(read, 4, "step", 1))  # type: ignore[arg-type]
    # indices() counts negative bounds from the end and clamps both to the extent.
    low, high, _ = slice(start, end, step).indices(size)
    return replace(read, args=(read.args[0], dim, low, high, step), kwargs=())


def _expand(read: Node, _: torch.fx.Node) -> Node:
    return replace(read, args=(read.args[0], read.outputs[0].shape), kwargs=())


def _permute(read: Node, node: torch.fx.Node) -> Node:
    rank = _rank(node)
    order = list(range(rank))
    kind = read.op.split(".")[1]
    if kind == "permute":
        assert isinstance(read.args[1], tuple)
        order = [int(dim) % rank for dim in read.args[1]]  # type: ignore[arg-type]
    elif rank > 1:
        one, other = (0, 1) if kind == "t" else (int(dim) % rank for dim in read.args[1:3])  # type: ignore[arg-type]
        order[one], order[other] = order[other], order[one]
    return replace(read, op="aten.permute.default", args=(read.args[0], tuple(order)), kwargs=())


def _along(read: Node, node: torch.fx.Node) -> Node:
    """Make the dimension or dimensions of an operation, its second operand, non-negative."""
    rank = max(_rank(node), 1)
    dim = _operand(read, 1, "dim", 0)
    several = dim if isinstance(dim, tuple) else ()
    where: Argument = tuple(_wrapped(item, rank) for item in several) if several else _wrapped(dim, rank)
    kept = tuple((key, value) for key, value in read.kwargs if key != "dim")
    return replace(read, args=(read.args[0], where, *read.args[2:]), kwargs=kept)


def _wrapped(dim: Argument, rank: int) -> int:
    return int(dim) % rank  # type: ignore[arg-type]


def _joined(read: Node, _: torch.fx.Node) -> Node:
    rank = max(len(read.outputs[0].shape), 1)
    return replace(read, args=(read.args[0], _wrapped(_operand(read, 1, "dim", 0), rank)), kwargs=())


def _cast(read: Node, _: torch.fx.Node) -> Node:
    dtype = read.outputs[0].dtype
    return replace(read, op="aten._to_copy.default", args=read.args[:1], kwargs=(("dtype", dtype),))


def _squared(read: Node, _: torch.fx.Node) -> Node:
    return replace(read, op="aten.mul.Tensor", args=(read.args[0], read.args[0]), kwargs=())


_SPELLINGS: dict[str, Callable[[Node, torch.fx.Node], Node]] = {
    "sum": _reduction("aten.sum.dim_IntList"),
    "mean": _reduction("aten.mean.dim"),
    "amax": _reduction("aten.amax.default"),
    "amin": _reduction("aten.amin.default"),
    "prod": _reduction("aten.prod.dim_int"),
    "max": _extreme,
    "min": _extreme,
    "argmax": _position,
    "argmin": _position,
    "var": _variance,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "slice": _slice,
    "expand": _expand,
    "permute": _permute,
    "transpose": _permute,
    "t": _permute,
    "_to_copy": _cast,
    "convert_element_type": _cast,
    "square": _squared,
    "as_strided": _restrided,
    "cat": _joined,
    **dict.fromkeys(("cumsum", "cumprod", "select", "gather", "index_select", "flip"), _along),
    **dict.fromkeys(
        ("scalar_tensor", "full", "full_like", "new_full", "zeros", "zeros_like", "new_zeros", "ones",
         "ones_like", "new_ones"), _filled,
    ),
}  # fmt: skip
"""Rewriting rule by name of the operator, without namespace and overload."""

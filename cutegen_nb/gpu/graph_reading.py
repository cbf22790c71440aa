"""From an FX graph of ATen calls to :class:`~cutegen_nb.core.graph.Graph`: plain values, few spellings.

ATen has several spellings of one operation (``view``, ``_unsafe_view``, ``unsqueeze`` …).  Each is read
as one of them, with its defaults written out, so that readers match one form:

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
``aten.clamp.default``            (x, low or None, high or None)
``aten.full.default``             (shape, value); gone where a point-wise operation takes the number
``aten._to_copy.default``         (x) with keyword ``dtype``
binary operations                 ``.Tensor`` whether an operand is a tensor or a number; keyword ``alpha``
                                  only where it is not 1, ``rounding_mode`` where there is one
================================  =====================================================================

Copies, aliases and detachments disappear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from cutegen_nb.analysis.workload import operands
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec, Value

_IDENTITY = frozenset({"alias", "clone", "detach", "lift_fresh", "lift_fresh_copy", "contiguous"})
_RESHAPES = frozenset({"view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "_reshape_alias"})
_CHANGES_SPEC = _RESHAPES | {"_to_copy", "expand"}
_TAKES_NUMBER = frozenset({
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "fmod", "remainder", "atan2", "where",
    "eq", "ne", "lt", "le", "gt", "ge", "clamp", "bitwise_and", "bitwise_or", "bitwise_xor",
    "logical_and", "logical_or", "logical_xor",
})  # fmt: skip
"""Point-wise operations that may be given a number in place of a tensor."""
_BINARY = _TAKES_NUMBER - {"where", "clamp", "pow"}


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Shape, dtype name and strides of a tensor, real or fake."""
    return TensorSpec(
        shape=tuple(int(size) for size in tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        strides=tuple(int(stride) for stride in tensor.stride()),
    )


def read_graph(
    module: torch.fx.GraphModule,
    *,
    inputs: tuple[Value, ...],
    scalars: tuple[tuple[int, int | float | bool], ...],
    parameters: tuple[Value, ...],
) -> Graph:
    """The graph of `module`, whose placeholders are `inputs` then `parameters`, in that order.

    Parameters and constants that nothing reads are left out.

    Raises:
        ProblemError: an operand is of a kind that a graph cannot hold, a complex number for instance.
    """
    reading = _Reading(module=module, env={}, nodes=[], constants=[], taken={v.name for v in inputs})
    reading.taken.update(value.name for value in parameters)
    placeholders = iter((*inputs, *parameters))
    outputs: tuple[Ref, ...] = ()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            reading.env[node] = Ref(next(placeholders).name)
        elif node.op == "get_attr":
            _read_constant(reading, node)
        elif node.op == "call_function":
            _read_call(reading, node)
        elif node.op == "output":
            leaves = node.args[0] if isinstance(node.args[0], (list, tuple)) else (node.args[0],)
            outputs = tuple(_as_output(reading, leaf) for leaf in leaves)
    graph = Graph(
        inputs=inputs,
        scalars=scalars,
        parameters=parameters,
        constants=tuple(reading.constants),
        nodes=tuple(reading.nodes),
        outputs=outputs,
    )
    return without_dead_values(_with_numbers_inlined(graph))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """The state of one walk over an FX graph."""

    module: torch.fx.GraphModule
    """What is read."""
    env: dict[Any, Argument]
    """What each FX node became."""
    nodes: list[Node]
    """Nodes so far."""
    constants: list[Value]
    """Lifted constants so far."""
    taken: set[str]
    """Names in use."""

    def fresh(self, name: str) -> str:
        """`name`, or the first of name_2, name_3 … that is free."""
        found, count = name, 1
        while found in self.taken:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        return found

    def argument(self, value: Any) -> Argument:  # noqa: ANN401 — FX's operands have no narrower type
        """An FX operand as a plain value."""
        if isinstance(value, torch.fx.Node):
            return self.env[value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (list, tuple)):
            return tuple(self.argument(item) for item in value)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format, torch.device)):
            return str(value).removeprefix("torch.")
        raise ProblemError(
            f"the reference uses a {type(value).__name__} operand ({value!r:.60}), which kernels here are "
            "not written for; keep to real tensors and numbers"
        )


def _read_constant(reading: _Reading, node: torch.fx.Node) -> None:
    tensor = getattr(reading.module, str(node.target))
    known = tensor.constant if isinstance(tensor, FakeTensor) else tensor
    if known is not None and known.dim() == 0 and not known.is_complex():
        reading.env[node] = known.item()
        return
    value = Value(name=reading.fresh(str(node.target).strip("_")), spec=spec_of(tensor))
    reading.constants.append(value)
    reading.env[node] = Ref(value.name)


def _read_call(reading: _Reading, node: torch.fx.Node) -> None:
    if getattr(node.target, "__name__", "") == "getitem":
        reading.env[node] = _item(reading.env[node.args[0]], node.args[1])
        return
    operator = str(node.target)
    base = operator.split(".")[1] if "." in operator else operator
    outputs = _output_specs(node)
    if base in _IDENTITY or (base in _CHANGES_SPEC and _same_spec(node, outputs)):
        reading.env[node] = reading.argument(node.args[0])
        return
    read = Node(
        name=reading.fresh(node.name),
        op=operator,
        args=tuple(reading.argument(arg) for arg in node.args),
        kwargs=tuple((key, reading.argument(arg)) for key, arg in node.kwargs.items()),
        outputs=outputs,
    )
    rewrite = _SPELLINGS.get(base) or (_binary if base in _BINARY else None)
    if rewrite is not None:
        read = rewrite(read, node)
    elif base in _RESHAPES:
        read = replace(read, op="aten.view.default", args=(read.args[0], outputs[0].shape), kwargs=())
    reading.nodes.append(read)
    reading.env[node] = Ref(read.name)


def _item(source: Argument, index: Any) -> Argument:  # noqa: ANN401 — FX's operands have no narrower type
    if isinstance(source, Ref):
        return Ref(source.name, int(index))
    assert isinstance(source, tuple)
    return source[int(index)]


def _as_output(reading: _Reading, leaf: Any) -> Ref:  # noqa: ANN401 — FX's operands have no narrower type
    value = reading.argument(leaf)
    if isinstance(value, Ref):
        return value
    # A number that stood for a 0-d constant: the output has to be a tensor again.
    spec = spec_of(leaf.meta["val"])
    name = reading.fresh("constant_output")
    dtype = (("dtype", spec.dtype),)
    node = Node(name=name, op="aten.full.default", args=((), value), kwargs=dtype, outputs=(spec,))
    reading.nodes.append(node)
    return Ref(name)


def _output_specs(node: torch.fx.Node) -> tuple[TensorSpec, ...]:
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else (value,)
    return tuple(spec_of(item) for item in values if isinstance(item, torch.Tensor))


def _same_spec(node: torch.fx.Node, outputs: tuple[TensorSpec, ...]) -> bool:
    """Whether the call leaves shape and dtype as they are, so that nothing is left of it."""
    source = node.args[0]
    assert isinstance(source, torch.fx.Node)
    before = spec_of(source.meta["val"])
    return (outputs[0].dtype, outputs[0].shape) == (before.dtype, before.shape)


# -- one spelling an operation ----------------------------------------------------------------------


def _rank(node: torch.fx.Node) -> int:
    return int(node.args[0].meta["val"].dim())


def _operand(read: Node, position: int, keyword: str, default: Argument = None) -> Argument:
    if len(read.args) > position:
        return read.args[position]
    return dict(read.kwargs).get(keyword, default)


def _dims(read: Node, node: torch.fx.Node) -> tuple[int, ...]:
    """The reduced dimensions, sorted and not negative; all of them where none is named."""
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
    args = (read.args[0], _dims(read, node), 1 if correction is None else correction, keepdim)
    return replace(read, op="aten.var.correction", args=args, kwargs=())


def _position(read: Node, node: torch.fx.Node) -> Node:
    dim = _operand(read, 1, "dim")
    at = None if dim is None else int(dim) % max(_rank(node), 1)  # type: ignore[arg-type]
    keepdim = bool(_operand(read, 2, "keepdim", default=False))
    return replace(read, args=(read.args[0], at, keepdim), kwargs=())


def _extreme(read: Node, node: torch.fx.Node) -> Node:
    """``max`` and ``min``: over everything, or with values and positions of which one is often unused."""
    kind = read.op.split(".")[1]
    if len(read.outputs) == 1:
        return _reduction(f"aten.a{kind}.default")(read, node)
    if any(user.args[1] != 0 for user in node.users):
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
    **dict.fromkeys(
        ("scalar_tensor", "full", "full_like", "new_full", "zeros", "zeros_like", "new_zeros", "ones",
         "ones_like", "new_ones"), _filled,
    ),
}  # fmt: skip


# -- clean-up over the finished graph ------------------------------------------------------------------


def _with_numbers_inlined(graph: Graph) -> Graph:
    """Filled tensors become numbers where a point-wise operation takes them and its result stays the same."""
    fills = {node.name: node for node in graph.nodes if node.op == "aten.full.default"}
    if not fills:
        return graph
    specs: dict[str, tuple[TensorSpec, ...]] = {node.name: node.outputs for node in graph.nodes}
    given = (*graph.inputs, *graph.parameters, *graph.constants)
    specs.update({value.name: (value.spec,) for value in given})

    def number_of(arg: Argument) -> Argument:
        return fills[arg.name].args[1] if isinstance(arg, Ref) and arg.name in fills else arg

    def inlined(node: Node) -> Node:
        refs = [arg for arg in node.args if isinstance(arg, Ref)]
        others = [specs[ref.name][ref.index] for ref in refs if ref.name not in fills]
        if node.op.split(".")[1] not in _TAKES_NUMBER or not _decided_by(others, node.outputs[0]):
            return node
        return replace(node, args=tuple(number_of(arg) for arg in node.args))

    return replace(graph, nodes=tuple(inlined(node) if node.outputs else node for node in graph.nodes))


def _decided_by(others: list[TensorSpec], result: TensorSpec) -> bool:
    """Whether the tensors left over give the result its shape."""
    return any(other.shape == result.shape for other in others)


def without_dead_values(graph: Graph) -> Graph:
    """`graph` without nodes, parameters and constants that no output depends on."""
    live = {ref.name for ref in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node.name in live:
            kept.append(node)
            live.update(ref.name for ref in operands(node))
    return replace(
        graph,
        nodes=tuple(reversed(kept)),
        parameters=tuple(value for value in graph.parameters if value.name in live),
        constants=tuple(value for value in graph.constants if value.name in live),
    )

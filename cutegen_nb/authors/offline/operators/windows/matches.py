"""Nodes of a graph that reduce sliding windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.authors.offline.operators.windows.attributes import Kind, Window, WindowAxis
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec

_FLOATS = frozenset({"float32", "float16", "bfloat16"})
"""dtypes that the kernels read; all reduce in float32."""
_MOST_AXES = 3
"""Spatial dimensions that the kernels know."""
_VIEWS = frozenset({"view", "unsqueeze", "squeeze", "reshape"})
"""Operations that insert or remove the dimension of one which PyTorch's 1-D pooling adds."""


def windows_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the windows in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes)
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    read = _READERS.get(short_name(node.op))
    source = node.args[0] if node.args else None
    if read is None or not isinstance(source, Ref) or _uses_further_outputs(graph, node):
        return None
    operands = (
        tuple(arg for arg in node.args[:3] if isinstance(arg, Ref)) if read is _convolution else (source,)
    )
    specs = [graph.spec(ref) for ref in operands]
    if any(spec.dtype not in _FLOATS or 0 in spec.shape for spec in specs):
        return None
    window = read(node, specs)
    if window is None:
        return None
    window = replace(window, rank=_rank(window, graph.spec(source), node.outputs[0]))
    match = OperatorMatch(
        nodes=frozenset({node.name}), result=Ref(node.name), operands=operands, attributes=window
    )
    return _without_views(graph, match, window) or match


def _without_views(graph: Graph, match: OperatorMatch, window: Window) -> OperatorMatch | None:
    """Take in the views around a pooling of one dimension, which PyTorch computes in two."""
    if window.kind == "conv" or (window.spatial, window.rank) != (2, 1):
        return None
    before = graph.node(match.operands[0].name)
    users = _users(graph, match.result)
    if before is None or len(_users(graph, match.operands[0])) != 1 or len(users) != 1:
        return None
    after = users[0]
    if short_name(before.op) not in _VIEWS or short_name(after.op) not in _VIEWS:
        return None
    source, result = before.args[0], Ref(after.name)
    if not isinstance(source, Ref) or match.result in graph.outputs or match.operands[0] in graph.outputs:
        return None
    pairs = ((source, match.operands[0]), (result, match.result))
    if any(_with_one(graph.spec(narrow).shape) != graph.spec(wide).shape for narrow, wide in pairs):
        return None
    return OperatorMatch(
        nodes=match.nodes | {before.name, after.name},
        result=result,
        operands=(source,),
        attributes=replace(window, spatial=1, adaptive=window.adaptive[-1:]),
    )


def _with_one(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-1], 1, *shape[-1:])


def _users(graph: Graph, ref: Ref) -> list[Node]:
    return [node for node in graph.nodes if ref in operands(node)]


def _uses_further_outputs(graph: Graph, node: Node) -> bool:
    """Return whether the indices beside the maxima are needed."""
    further = [Ref(node.name, index) for index in range(1, len(node.outputs))]
    return any(ref in graph.outputs or _users(graph, ref) for ref in further)


def _rank(window: Window, source: TensorSpec, result: TensorSpec) -> int:
    """Spatial dimensions without the leading ones of extent 1."""
    rank = window.spatial
    for axis, before, after in zip(
        window.axes[-rank:], source.shape[-rank:], result.shape[-rank:], strict=True
    ):
        if rank == 1 or (before, after, axis.window, axis.padding) != (1, 1, 1, 0):
            break
        rank -= 1
    return rank


def _numbers(argument: Argument, count: int, default: int) -> tuple[int, ...]:
    values = argument if isinstance(argument, tuple) else () if argument is None else (argument,)
    numbers = tuple(int(value) for value in values if isinstance(value, int))
    if len(numbers) == 1:
        numbers *= count
    return numbers or (default,) * count


def _axes(*parts: tuple[int, ...]) -> tuple[WindowAxis, WindowAxis, WindowAxis]:
    """Axes from window, stride, padding and dilation of each; the missing ones are trivial."""
    axes = [WindowAxis(*values) for values in zip(*parts, strict=True)]
    depth, height, width = [WindowAxis()] * (_MOST_AXES - len(axes)) + axes
    return depth, height, width


def _operand(node: Node, place: int, name: str) -> Argument:
    return node.args[place] if len(node.args) > place else dict(node.kwargs).get(name)


def _spatial(node: Node) -> int:
    return 3 if "3d" in short_name(node.op) else 2


def _max_pooling(node: Node, _: list[TensorSpec]) -> Window:
    count = _spatial(node)
    window = _numbers(_operand(node, 1, "kernel_size"), count, 1)
    stride = _numbers(_operand(node, 2, "stride"), count, 0)
    stride = window if not all(stride) else stride
    padding = _numbers(_operand(node, 3, "padding"), count, 0)
    dilation = _numbers(_operand(node, 4, "dilation"), count, 1)
    ceil = bool(_operand(node, 5, "ceil_mode"))
    return Window(kind="max", spatial=count, ceil=ceil, axes=_axes(window, stride, padding, dilation))


def _mean_pooling(node: Node, _: list[TensorSpec]) -> Window:
    count = _spatial(node)
    window = _numbers(_operand(node, 1, "kernel_size"), count, 1)
    stride = _numbers(_operand(node, 2, "stride"), count, 0)
    stride = window if not all(stride) else stride
    padding = _numbers(_operand(node, 3, "padding"), count, 0)
    include_pad, divisor = _operand(node, 5, "count_include_pad"), _operand(node, 6, "divisor_override")
    return Window(
        kind="avg",
        spatial=count,
        ceil=bool(_operand(node, 4, "ceil_mode")),
        include_pad=include_pad is None or bool(include_pad),
        divisor=divisor if isinstance(divisor, int) else 0,
        axes=_axes(window, stride, padding, (1,) * count),
    )


def _adaptive(node: Node, _: list[TensorSpec]) -> Window:
    count = _spatial(node)
    outputs = _numbers(_operand(node, 1, "output_size"), count, 1)
    kind: Kind = "max" if "max" in short_name(node.op) else "avg"
    return Window(kind=kind, spatial=count, adaptive=outputs)


def _convolution(node: Node, specs: list[TensorSpec]) -> Window | None:
    """Read a convolution of each channel by itself; None for any other."""
    source, weight = specs[0].shape, specs[1].shape
    transposed, groups = node.args[6], node.args[8]
    count = len(weight) - 2
    # Weights are (outputs, inputs of a group, window): as many groups as channels and outputs.
    if transposed or count not in (1, 2, 3) or weight[:2] != (groups, 1) or source[-1 - count] != groups:
        return None
    stride, padding, dilation = (_numbers(node.args[place], count, 1) for place in (3, 4, 5))
    axes = _axes(weight[2:], stride, padding, dilation)
    return Window(kind="conv", spatial=count, bias=isinstance(node.args[2], Ref), axes=axes)


_READERS: dict[str, Callable[[Node, list[TensorSpec]], Window | None]] = {
    "max_pool2d_with_indices": _max_pooling,
    "max_pool3d_with_indices": _max_pooling,
    "avg_pool2d": _mean_pooling,
    "avg_pool3d": _mean_pooling,
    "_adaptive_avg_pool2d": _adaptive,
    "_adaptive_avg_pool3d": _adaptive,
    "adaptive_max_pool2d": _adaptive,
    "adaptive_max_pool3d": _adaptive,
    "convolution": _convolution,
}
"""Readers of a node's attributes, by ATen's short name."""

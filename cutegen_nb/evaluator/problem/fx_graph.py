"""Conversion of an FX graph of ATen calls to :class:`~cutegen_nb.core.graph.Graph`, which holds plain values.

:mod:`~cutegen_nb.evaluator.problem.aten_aliases` lists the canonical form of each operation. Copies, aliases
and detachments are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.evaluator.problem.aten_aliases import RESHAPES, TAKES_NUMBER, canonical
from cutegen_nb.evaluator.problem.recurrent import aten_name

_IDENTITY = frozenset({"alias", "clone", "detach", "lift_fresh", "lift_fresh_copy", "contiguous"})
"""Operations whose result has the values of their operand; left out of the graph."""
_PLACES = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})
"""Keywords about the memory of a tensor, not about its values; left out of the graph."""
_CHANGES_SPEC = RESHAPES | {"_to_copy", "expand"}
"""Operations that are left out if they keep shape and dtype."""


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """Return shape, dtype name and strides (in elements) of a tensor, real or fake."""
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
    """Convert `module`, whose placeholders are `inputs` and then `parameters`.

    Nodes, parameters and constants that no output depends on are left out.

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
    """State of one walk over an FX graph."""

    module: torch.fx.GraphModule
    """Module whose graph is read."""
    env: dict[Any, Argument]
    """Value or reference that each FX node is converted to."""
    nodes: list[Node]
    """Nodes so far."""
    constants: list[Value]
    """Lifted constants so far."""
    taken: set[str]
    """Names in use."""

    def fresh(self, name: str) -> str:
        """Return `name`, or the first of name_2, name_3 … that is free, and mark it as taken."""
        found, count = name, 1
        while found in self.taken:
            count += 1
            found = f"{name}_{count}"
        self.taken.add(found)
        return found

    def argument(self, value: Any) -> Argument:
        """Convert an FX operand to a plain value. Raises ProblemError for a kind that a graph cannot hold."""
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
    if known is not None and known.dim() == 0 and not known.is_complex():  # a scalar becomes a number
        reading.env[node] = known.item()
        return
    value = Value(name=reading.fresh(str(node.target).strip("_")), spec=spec_of(tensor))
    reading.constants.append(value)
    reading.env[node] = Ref(value.name)


def _read_call(reading: _Reading, node: torch.fx.Node) -> None:
    if getattr(node.target, "__name__", "") == "getitem":
        reading.env[node] = _item(reading.env[node.args[0]], node.args[1])
        return
    operator = aten_name(str(node.target))
    base = operator.split(".")[1] if "." in operator else operator
    outputs = _output_specs(node)
    if base in _IDENTITY or (base in _CHANGES_SPEC and _same_spec(node, outputs)):
        reading.env[node] = reading.argument(node.args[0])
        return
    read = Node(
        name=reading.fresh(node.name),
        op=operator,
        args=tuple(reading.argument(arg) for arg in node.args),
        kwargs=tuple((key, reading.argument(arg)) for key, arg in node.kwargs.items() if key not in _PLACES),
        outputs=outputs,
    )
    read = canonical(read, node)
    reading.nodes.append(read)
    reading.env[node] = Ref(read.name)


def _item(source: Argument, index: Any) -> Argument:
    if isinstance(source, Ref):
        return Ref(source.name, int(index))
    assert isinstance(source, tuple)
    return source[int(index)]


def _as_output(reading: _Reading, leaf: Any) -> Ref:
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
    """Return whether the call keeps shape and dtype, so that it can be left out."""
    source = node.args[0]
    assert isinstance(source, torch.fx.Node)
    before = spec_of(source.meta["val"])
    return (outputs[0].dtype, outputs[0].shape) == (before.dtype, before.shape)


def _with_numbers_inlined(graph: Graph) -> Graph:
    """Replace filled tensors by numbers in point-wise operations whose result keeps its shape."""
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
        if node.op.split(".")[1] not in TAKES_NUMBER or not _decided_by(others, node.outputs[0]):
            return node
        return _as_clamp(replace(node, args=tuple(number_of(arg) for arg in node.args)))

    return replace(graph, nodes=tuple(inlined(node) if node.outputs else node for node in graph.nodes))


def _as_clamp(node: Node) -> Node:
    """Rewrite ``maximum`` or ``minimum`` with a number to a clamp; other nodes stay."""
    kind = node.op.split(".")[1]
    numbers = [arg for arg in node.args if isinstance(arg, (int, float))]
    if kind not in {"maximum", "minimum"} or not numbers:
        return node
    tensor = next(arg for arg in node.args if isinstance(arg, Ref))
    args = (tensor, numbers[0], None) if kind == "maximum" else (tensor, None, numbers[0])
    return replace(node, op="aten.clamp.default", args=args)


def _decided_by(others: list[TensorSpec], result: TensorSpec) -> bool:
    """Return whether one of the remaining operands has the shape of the result."""
    return any(other.shape == result.shape for other in others)


def without_dead_values(graph: Graph) -> Graph:
    """Return `graph` without the nodes, parameters and constants that no output depends on."""
    # Nodes are in the order of computation: backwards, each user comes before its operands.
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

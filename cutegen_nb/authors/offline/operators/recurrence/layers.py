"""Recurrent layers of a traced graph taken apart: one product and one loop over the steps for each layer.

The gates of a step are sums of a product with the step's input and one with the state before it. Only the
state makes the steps wait for one another: the products with the inputs of all steps are one product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import operands
from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.graph.builder import GraphBuilder
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument, Graph, Node, Ref
from cutegen_nb.core.problem import ProblemFacts

KINDS: Mapping[str, tuple[str, int]] = {
    "lstm": ("lstm", 4),
    "gru": ("gru", 3),
    "rnn_tanh": ("tanh", 1),
    "rnn_relu": ("relu", 1),
}
"""Kind of cell and its number of gates, by the layer's operation."""
STEPS = "steps_of_"
"""Prefix of the operation that stands for the loop over a layer's steps; the kind of cell follows it."""


def with_layers_apart(facts: ProblemFacts) -> ProblemFacts:
    """Return the problem with its recurrent layers taken apart, if it has any. Raises Declined."""
    if not any(short_name(node.op) in KINDS for node in facts.full.graph.nodes):
        return facts
    full, scaled = (_Apart(size.graph).graph() for size in (facts.full, facts.scaled))
    return replace(facts, full=replace(facts.full, graph=full), scaled=replace(facts.scaled, graph=scaled))


def taken_by_steps(graph: Graph) -> frozenset[str]:
    """Names of the values that layers' loops alone take: products that the layers of a stack have alike."""
    users: dict[str, set[bool]] = {}
    for node in graph.nodes:
        for ref in operands(node):
            users.setdefault(ref.name, set()).add(node.op.startswith(STEPS))
    return frozenset(name for name, by_steps in users.items() if by_steps == {True})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layers:
    """Operands of a traced recurrent layer."""

    kind: str
    gates: int
    given: Ref
    states: tuple[Ref, ...]
    weights: tuple[Ref, ...]
    biases: bool
    layers: int
    directions: int
    batch_first: bool

    def of(self, layer: int) -> list[tuple[Ref, ...]]:
        """Weights and biases of a layer, those of each direction together."""
        each = 4 if self.biases else 2
        first = layer * self.directions
        return [self.weights[each * at : each * (at + 1)] for at in range(first, first + self.directions)]


def _layers(graph: Graph, node: Node) -> _Layers:
    """Read the operands of a layer. Raises Declined for one that no kernel is written for."""
    kind, gates = KINDS[short_name(node.op)]
    given, states, weights, biases, layers, dropout, training, both, batch_first = node.args
    assert isinstance(given, Ref)
    assert isinstance(layers, int)
    first = states if isinstance(states, tuple) else (states,)
    found = _Layers(
        kind=kind,
        gates=gates,
        given=given,
        states=tuple(ref for ref in first if isinstance(ref, Ref)),
        weights=tuple(ref for ref in weights if isinstance(ref, Ref)) if isinstance(weights, tuple) else (),
        biases=bool(biases),
        layers=layers,
        directions=2 if both else 1,
        batch_first=bool(batch_first),
    )
    if dropout and training and layers > 1:
        raise Declined(
            f"{node.op} drops values at random between its layers; no kernel can return them again"
        )
    if len({graph.spec(ref).shape[-1] for ref in found.states}) > 1:
        raise Declined("the offline author does not write an LSTM whose states are projected")
    return found


class _Apart:
    """Rewriting of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._build = GraphBuilder(graph)
        self._put_for: dict[Ref, Ref] = {}
        self._read = {ref for node in graph.nodes for ref in operands(node)} | set(graph.outputs)

    def graph(self) -> Graph:
        """Return the graph with each recurrent layer taken apart. Raises Declined."""
        for node in self._graph.nodes:
            if short_name(node.op) in KINDS:
                self._take_apart(node)
                continue
            args = tuple(self._kept(value) for value in node.args)
            kwargs = tuple((key, self._kept(value)) for key, value in node.kwargs)
            self._build.nodes.append(replace(node, args=args, kwargs=kwargs))
        outputs = tuple(self._put_for.get(ref, ref) for ref in self._graph.outputs)
        return replace(self._graph, nodes=tuple(self._build.nodes), outputs=outputs)

    def _kept(self, value: Argument) -> Argument:
        """Operand with the new references in place of the old."""
        if isinstance(value, tuple):
            return tuple(self._kept(item) for item in value)
        return self._put_for.get(value, value) if isinstance(value, Ref) else value

    def _take_apart(self, node: Node) -> None:
        found = _layers(self._graph, node)
        value = self._put_for.get(found.given, found.given)
        first, second, _ = self._build.spec(value).shape
        units = self._build.spec(found.states[0]).shape[-1]
        shape = (first, second, found.directions * units)
        last: list[list[Ref]] = [[], []]
        for layer in range(found.layers):
            value = self._steps(node, found, layer, value)
            if self._has_cells(node, found):
                value, cells = self._with_cells_apart(value, first * second, shape)
                places = [at * units for at in range(found.directions)]
                last[1] += [self._build.slice(cells, 1, place, place + units) for place in places]
            if Ref(node.name, 1) in self._read:
                last[0] += self._last(found, value, units)
        self._put_for[Ref(node.name)] = value
        for index, states in enumerate(last, start=1):
            if states:
                self._put_for[Ref(node.name, index)] = self._stacked(states)

    def _with_cells_apart(self, stored: Ref, rows: int, shape: tuple[int, ...]) -> tuple[Ref, Ref]:
        """Divide what the loop stored into the results of the steps and the last states of the cells."""
        value = self._build.view(self._build.slice(stored, 0, 0, rows), shape)
        return value, self._build.slice(stored, 0, rows, self._build.spec(stored).shape[0])

    def _steps(self, node: Node, found: _Layers, layer: int, value: Ref) -> Ref:
        """Add the products with a layer's inputs, and the loop over its steps in all directions."""
        weights = found.of(layer)
        first, second, width = self._build.spec(value).shape
        rows = first * second
        # All steps of all rows of the batch are rows of one matrix, in the order of the given tensor.
        matrix = self._build.view(value, (rows, width))
        products = []
        for of_input, *_ in weights:
            turned = self._build.permute(of_input, (1, 0))
            products.append(self._build.product(matrix, turned, "gates"))
        states = [
            self._build.slice(state, 0, layer * found.directions, (layer + 1) * found.directions)
            for state in (self._put_for.get(ref, ref) for ref in found.states)
        ]
        _, batch, units = self._build.spec(states[0]).shape
        cells = self._has_cells(node, found)
        settings = (found.directions, found.batch_first, found.biases, cells)
        outputs = found.directions * units
        # The last states of the cells lie behind the results of all steps.
        shape = (rows + batch, outputs) if cells else (first, second, outputs)
        tensors = (*products, *(ref for one in weights for ref in one[1:]), *states)
        return self._build.put("steps", STEPS + found.kind, (tensors, *settings), shape)

    def _has_cells(self, node: Node, found: _Layers) -> bool:
        """Return whether the last states of an LSTM's cells are read."""
        return found.kind == "lstm" and Ref(node.name, 2) in self._read

    def _last(self, found: _Layers, value: Ref, units: int) -> list[Ref]:
        """Add the state after the last step of each direction: the backward one ends at the first element."""
        made = []
        for direction in range(found.directions):
            dim = int(found.batch_first)
            batch, width = self._build.spec(value).shape[1 - dim], self._build.spec(value).shape[2]
            place = -1 if direction == 0 else 0
            state = self._build.put("last", "aten.select.int", (value, dim, place), (batch, width))
            made.append(self._build.slice(state, 1, direction * units, (direction + 1) * units))
        return made

    def _stacked(self, states: list[Ref]) -> Ref:
        batch, units = self._build.spec(states[0]).shape
        return self._build.cat((self._build.view(state, (1, batch, units)) for state in states), 0, "stacked")

"""Recurrent layers of a traced reference: LSTM, GRU and plain ones, each one operation of the graph.

The operands are those of ``torch.ops.aten.lstm.input``: (input, states, weights, has biases, layers, dropout,
training, bidirectional, batch first).
"""

from __future__ import annotations

from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec

_POINTWISE = {"lstm": 13, "gru": 11, "rnn_tanh": 2, "rnn_relu": 2}
"""FLOPs of a hidden unit in a step beside products and biases: sums of the two products, gates, new state."""
RECURRENT = frozenset(_POINTWISE)
"""Base names of the operations."""


def recurrent_flops(graph: Graph, node: Node) -> int:
    """Return the FLOPs of all steps: each weight meets each row of the batch once a step."""
    steps, batch = _steps_and_batch(graph, node)
    # A matrix costs a multiply-add an element, a bias an addition.
    weights = sum(spec.elements * (2 if len(spec.shape) > 1 else 1) for spec in _specs(graph, node.args[2]))
    # States are (layers · directions, batch, units): of an LSTM the cell's, which no projection shortens.
    units = _specs(graph, node.args[1])[-1].elements
    return steps * (batch * weights + _POINTWISE[_kind(node)] * units)


def recurrent_terms(graph: Graph, node: Node) -> int:
    """Return the number of terms of the longest sum in a step: a gate's products of input and of state."""
    widths = [spec.shape[-1] for spec in _specs(graph, node.args[2]) if len(spec.shape) > 1]
    return 2 * max(widths, default=1)


def _kind(node: Node) -> str:
    """Return the base name of the node's operation."""
    return node.op.removeprefix("aten.").partition(".")[0]


def _steps_and_batch(graph: Graph, node: Node) -> tuple[int, int]:
    (given,) = _specs(graph, node.args[0])
    first, second = given.shape[:2]
    return (second, first) if node.args[8] else (first, second)


def _specs(graph: Graph, operand: object) -> list[TensorSpec]:
    refs = operand if isinstance(operand, tuple) else (operand,)
    return [graph.spec(ref) for ref in refs if isinstance(ref, Ref)]

"""Loops over the steps of recurrent layers in a graph whose layers are taken apart."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.operators.operator import OperatorMatch
from cutegen_nb.authors.offline.operators.recurrence.layers import STEPS
from cutegen_nb.core.graph import Graph, Node, Ref

_FLOATS = frozenset({"float32", "float16", "bfloat16"})
_NAMES = {"tanh": "rnn", "relu": "rnn"}
"""Name of the generated function by the kind of cell; others keep theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """Loop over the steps of one layer."""

    kind: str
    """``lstm``, ``gru``, ``tanh`` or ``relu``."""
    directions: int
    """2 if a second set of weights goes through the steps from the last to the first, else 1."""
    batch_first: bool
    """True if the steps of a row of the batch are neighbours in memory."""
    biases: bool
    """True if biases are added to both products."""
    cells: bool
    """True if the last states of an LSTM's cells are stored behind the result."""
    units: int
    """Hidden units of a direction."""
    batch: int
    """Rows of the batch."""


def recurrences_in(graph: Graph) -> tuple[OperatorMatch, ...]:
    """Find the loops over steps in a graph, in order."""
    found = (_match(graph, node) for node in graph.nodes if node.op.startswith(STEPS))
    return tuple(match for match in found if match is not None)


def _match(graph: Graph, node: Node) -> OperatorMatch | None:
    tensors, directions, batch_first, biases, cells = node.args
    assert isinstance(tensors, tuple)
    assert isinstance(directions, int)
    operands = tuple(ref for ref in tensors if isinstance(ref, Ref))
    kind = node.op.removeprefix(STEPS)
    if any(graph.spec(ref).dtype not in _FLOATS for ref in operands):
        return None
    _, batch, units = graph.spec(operands[-1]).shape
    rows, gates = graph.spec(operands[0]).shape
    attributes = Recurrence(
        kind=kind,
        directions=directions,
        batch_first=bool(batch_first),
        biases=bool(biases),
        cells=bool(cells),
        units=units,
        batch=batch,
    )
    return OperatorMatch(
        nodes=frozenset({node.name}),
        result=Ref(node.name),
        operands=operands,
        attributes=attributes,
        name=_NAMES.get(kind, kind),
        flops=2 * rows * gates * units * directions,
        steps=rows // batch,
        shared=True,
    )

"""Traced graphs: shapes behind names, and bytes of tensors."""

from __future__ import annotations

import pytest

from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value

SPEC = TensorSpec(shape=(4, 5), dtype="float16", strides=(5, 1))
PAIR = TensorSpec(shape=(), dtype="int64", strides=())
GRAPH = Graph(
    inputs=(Value(name="x", spec=SPEC),),
    parameters=(Value(name="w", spec=PAIR),),
    nodes=(Node(name="both", op="aten.max.dim", args=(Ref("x"),), kwargs=(), outputs=(SPEC, PAIR)),),
    outputs=(Ref("both"), Ref("both", 1)),
)


def test_a_tensors_bytes_follow_its_dtype():
    assert SPEC.size_bytes == 4 * 5 * 2
    assert (PAIR.elements, PAIR.size_bytes) == (1, 8)


def test_a_graph_knows_the_shape_behind_every_name():
    assert GRAPH.output_specs == (SPEC, PAIR)
    assert (GRAPH.spec(Ref("x")), GRAPH.spec(Ref("w"))) == (SPEC, PAIR)
    with pytest.raises(KeyError):
        GRAPH.spec(Ref("nowhere"))
    assert GRAPH.node("both") is GRAPH.nodes[0]
    assert GRAPH.node("x") is None

"""Identities that save a step of a graph, and graphs in which something nonlinear stands in the way."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.strategy.algebra import shortcut
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value


def spec(*shape):
    return TensorSpec(shape=shape, dtype="float32", strides=tuple(1 for _ in shape))


def graph(*steps):
    """A product p of x and w, then these steps: (name, operation, operands, shape)."""
    steps = (("p", "mm", ("x", "w"), (64, 32)), *steps)
    nodes = tuple(
        Node(
            name=name, op=f"aten.{op}.default", args=tuple(Ref(item) for item in read),
            kwargs=(), outputs=(spec(*shape),),
        )
        for name, op, read, shape in steps
    )  # fmt: skip
    given = {"x": (64, 16), "w": (16, 32), "b": (32,), "v": (32, 8)}
    inputs = tuple(Value(name=name, spec=spec(*shape)) for name, shape in given.items())
    return Graph(inputs=inputs, parameters=(), nodes=nodes, outputs=(Ref(nodes[-1].name),))


SUMMED = ("s", "sum", ("q",), (64,))


@pytest.mark.parametrize(
    "steps",
    [
        [("s", "mean", ("p",), (64,))],
        [("q", "add", ("p", "b"), (64, 32)), SUMMED],
        [("q", "div", ("p", "b"), (64, 32)), SUMMED],
        [("q", "mul", ("b", "p"), (64, 32)), SUMMED],
        [("q", "view", ("p",), (64, 32)), SUMMED],
        [("q", "mm", ("p", "v"), (64, 8))],
    ],
)
def test_a_sum_or_a_product_after_linear_steps_is_saved(steps):
    assert shortcut(graph(*steps)).startswith(f"{steps[-1][1]} of what a product computed")


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [("q", "gelu", ("p",), (64, 32)), SUMMED],
        [("q", "mul", ("p", "p"), (64, 32)), SUMMED],
        [("q", "div", ("b", "p"), (64, 32)), SUMMED],
        [("q", "amax", ("p",), (64,))],
        [("q", "sum", ("x",), (64,))],
    ],
)
def test_nothing_is_saved_behind_a_nonlinear_step(steps):
    assert shortcut(graph(*steps)) == ""


def test_a_reduction_over_an_extent_of_1_is_saved():
    steps = [("q", "amax", ("p",), (64, 1)), ("r", "logsumexp", ("q",), (64,))]
    assert shortcut(graph(*steps)) == "logsumexp over a dimension of extent 1"

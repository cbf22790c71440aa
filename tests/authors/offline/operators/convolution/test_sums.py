"""Sums and poolings of convolutions: the same values by fewer products, and left alone where they would not be."""

import math

import pytest
import torch

from cutegen_nb.authors.offline.operators.algebra import with_sums_first

X, X3 = "torch.randn(3, 4, 17, 19)", "torch.randn(2, 3, 11, 9, 10)"
W, WT = "torch.randn(6, 4, 3, 3)", "torch.randn(4, 6, 3, 3)"
W3, WT3 = "torch.randn(5, 3, 3, 3, 3)", "torch.randn(3, 5, 3, 3, 3)"
B = "torch.randn(6)"
CONV, TURNED = "functional.conv2d(x, y{})", "functional.conv_transpose2d(x, y{})"
DEEP, TURNED_DEEP = "functional.conv3d(x, y{})", "functional.conv_transpose3d(x, y{})"


def work(graph):
    """Multiplications of the graph's convolutions and products."""

    def of(node):
        shapes = [graph.spec(ref).shape for ref in node.args[:2]]
        out = math.prod(node.outputs[0].shape)
        if node.op == "aten.mm.default":
            return out * shapes[0][1]
        taps = math.prod(shapes[1][2:])
        # Each input of a transposed convolution meets every tap of every output channel.
        return math.prod(shapes[0]) * shapes[1][1] * taps if node.args[6] else out * shapes[1][1] * taps

    return sum(of(node) for node in graph.nodes if node.op in {"aten.mm.default", "aten.convolution.default"})


@pytest.mark.parametrize(
    ("body", "given"),
    [
        (TURNED.format("") + ".mean((2, 3), keepdim=True)", (X, WT)),
        (TURNED.format(", z") + ".sum((2, 3))", (X, WT, B)),
        ("(" + TURNED.format(", z, 2, 1, 1") + " * 0.5).mean((2, 3), keepdim=True)", (X, WT, B)),
        ("functional.adaptive_avg_pool2d(" + TURNED.format(", z, 3, 2") + ", 1)", (X, WT, B)),
        (TURNED.format(", z, 1, 1") + ".mean(2, keepdim=True)", (X, WT, B)),
        (TURNED.format(", z, 1, 1, 0, 1, 2") + ".mean(3)", (X, WT, B)),
        (CONV.format(", z, 1, 1") + ".mean((2, 3))", (X, W, B)),
        (CONV.format("") + ".sum(-1)", (X, W)),
        (CONV.format(", z, 1, 2, 2") + ".mean(-2)", (X, W, B)),
        (TURNED_DEEP.format(", None, 1, 1") + ".mean(2, keepdim=True)", (X3, WT3)),
        (TURNED_DEEP.format(", None, 2, 1, 1") + ".mean((2, 4))", (X3, WT3)),
        (DEEP.format(", None, 1, 1") + ".mean((2, 3))", (X3, W3)),
        ("functional.avg_pool2d(" + CONV.format(", z") + ", 4)", (X, W, B)),
        ("functional.avg_pool2d(" + CONV.format(", z, 1, 1") + ", 3)", (X, W, B)),
        ("functional.avg_pool2d(" + CONV.format("") + ", (5, 2), (4, 3))", (X, W)),
        ("functional.avg_pool3d(" + DEEP.format("") + ", 2)", (X3, W3)),
        ("functional.avg_pool2d(" + CONV.format(", z") + ", 2)", (X, "torch.randn(6, 4, 1, 1)", B)),
        (
            "functional.avg_pool2d(functional.conv2d(x, y, groups=2), 2)",
            (X, "torch.randn(6, 2, 3, 3)"),
        ),
    ],
)
def test_the_rewritten_graph_computes_the_same_by_fewer_products(traced, computed, body, given):
    facts = traced(body, *given)
    found = with_sums_first(facts)
    torch.manual_seed(1)
    tensors = [torch.randn(one.spec.shape, dtype=torch.float64) for one in facts.full.graph.inputs]
    for before, after in zip(
        computed(facts.full.graph, tensors), computed(found.full.graph, tensors), strict=True
    ):
        torch.testing.assert_close(after, before, rtol=1e-10, atol=1e-10)
    assert work(found.full.graph) < 0.5 * work(facts.full.graph)


@pytest.mark.parametrize(
    ("body", "given"),
    [
        ("torch.relu(" + CONV.format("") + ").mean((2, 3))", (X, W)),
        (CONV.format(", None, 2") + ".mean((2, 3))", (X, W)),  # each tap meets every second input
        (CONV.format("") + ".mean((2, 3))", (X, W)),  # 25 pairs of edges
        (CONV.format("") + ".mean((1, 2))", (X, W)),
        ("functional.conv2d(x, y, groups=2).mean(2)", (X, "torch.randn(6, 2, 3, 3)")),
        (CONV.format("") + ".half().mean((2, 3))", (X, W)),
        ("functional.conv2d(x.half(), y.half(), padding=1).mean(2)", (X, W)),
        ("functional.avg_pool2d(" + CONV.format("") + ", 3, padding=1)", (X, W)),
        ("functional.avg_pool2d(" + CONV.format("") + ", 4, ceil_mode=True)", (X, W)),
        ("functional.avg_pool2d(" + CONV.format("") + ", 2, divisor_override=3)", (X, W)),
        ("functional.avg_pool2d(" + CONV.format("") + ", 3, 1)", (X, W)),  # more products
        ("functional.avg_pool2d(" + CONV.format(", None, 2") + ", 2)", (X, W)),
        ("functional.avg_pool2d(" + TURNED.format("") + ", 2)", (X, WT)),
        ("functional.max_pool2d(" + CONV.format("") + ", 2)", (X, W)),
        ("(lambda c: functional.avg_pool2d(c, 4).sum() + c)(" + CONV.format("") + ")", (X, W)),
    ],
)
def test_what_no_identity_covers_is_left_alone(traced, body, given):
    assert with_sums_first(traced(body, *given)) is None


def test_all_poolings_of_a_network_are_rewritten(traced, computed):
    body = (
        "functional.avg_pool2d(functional.conv2d(torch.relu("
        "functional.avg_pool2d(functional.conv2d(x, y), 2)), z), 2)"
    )
    facts = traced(body, X, W, "torch.randn(5, 6, 1, 1)")
    found = with_sums_first(facts)
    torch.manual_seed(1)
    tensors = [torch.randn(one.spec.shape, dtype=torch.float64) for one in facts.full.graph.inputs]
    (before,), (after,) = (computed(size.full.graph, tensors) for size in (facts, found))
    torch.testing.assert_close(after, before, rtol=1e-10, atol=1e-10)
    assert work(found.full.graph) < 0.5 * work(facts.full.graph)

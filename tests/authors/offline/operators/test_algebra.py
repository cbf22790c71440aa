"""Sums over a product's output as products of sums: equal values, and left alone where they would differ."""

import pytest
import torch

from cutegen_nb.authors.offline.operators.algebra import with_sums_first

X, Y = "torch.randn(24, 40)", "torch.randn(40, 32)"
POOLED = "functional.avg_pool1d(({}).unsqueeze(1), 8).squeeze(1)"
ROW, COLUMN, BOTH = "torch.randn(32)", "torch.randn(24, 1)", "torch.randn(24, 32)"


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("(x @ y).sum(1)", ()),
        ("(x @ y).sum(-1, keepdim=True) * 1.5", ()),
        ("(x @ y).mean(0)", ()),
        ("((x @ y) / 2).sum(1, keepdim=True)", ()),
        ("(3 * (x @ y) - 0.5).sum(1)", ()),
        ("(x @ y + z).mean(1, keepdim=True) + x", (ROW,)),
        ("(z - x @ y).sum(1)", (ROW,)),
        ("(z - x @ y).sum(0)", (ROW,)),
        ("(x @ y * z).sum(1)", (COLUMN,)),
        ("(x @ y + z).sum(1)", (COLUMN,)),
        ("(x @ y + z).sum(1)", (BOTH,)),
        ("torch.exp((x @ y).sum(1, keepdim=True) / 100)", ()),
        (f"{POOLED.format('x @ y + z')}", (ROW,)),
        (f"{POOLED.format('functional.linear(x, y.T.contiguous(), z)')} * 2", (ROW,)),
        (f"{POOLED.format('(3 * (x @ y) - 0.5) * z')}", (COLUMN,)),
    ],
)
def test_the_rewritten_graph_computes_the_same_without_the_large_product(traced, computed, body, more):
    facts = traced(body, X, Y, *more)
    found = with_sums_first(facts)
    torch.manual_seed(1)
    given = [torch.randn(one.spec.shape, dtype=torch.float64) for one in facts.full.graph.inputs]
    for before, after in zip(
        computed(facts.full.graph, given), computed(found.full.graph, given), strict=True
    ):
        assert before.shape == after.shape
        torch.testing.assert_close(after, before, rtol=1e-10, atol=1e-10)
    products = [node.outputs[0].elements for node in found.full.graph.nodes if node.op == "aten.mm.default"]
    assert products in ([24], [32], [24 * 4])


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("torch.relu(x @ y).sum(1)", ()),
        (f"{POOLED.format('torch.relu(x @ y)')}", ()),
        (f"{POOLED.format('x @ y * z')}", (ROW,)),
        ("functional.avg_pool1d((x @ y).unsqueeze(1), 5)", ()),
        ("functional.avg_pool1d((x @ y).unsqueeze(1), 8, 4)", ()),
        ("functional.avg_pool1d((x @ y).unsqueeze(1), 8, padding=4)", ()),
        ("functional.avg_pool2d((x @ y).view(1, 24, 4, 8), 2)", ()),
        ("(x @ y * z).sum(1)", (ROW,)),
        ("(x @ y * z + 1).sum(1)", (ROW,)),
        ("(1 / (x @ y)).sum(1)", ()),
        ("((x @ y) * (x @ y)).sum(1)", ()),
        ("(x @ y).amax(1)", ()),
        ("(x @ y).sum()", ()),
        ("x.sum(1)", ()),
        ("(x.half() @ y.half()).sum(1)", ()),
    ],
)
def test_what_no_identity_covers_is_left_alone(traced, body, more):
    assert with_sums_first(traced(body, X, Y, *more)) is None


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        ("(x @ y + z).sum(1)", (X, "torch.randn(40, 1)", BOTH)),
        ("(x @ y + z).sum(1)", (X, Y, "torch.randn(5, 24, 32)")),
        ("(x @ y + z).sum(1)", (X, Y, "torch.arange(32)")),
    ],
)
def test_a_product_that_is_broadcast_or_meets_another_dtype_is_left_alone(traced, body, inputs):
    assert with_sums_first(traced(body, *inputs)) is None


def test_a_product_that_is_needed_itself_is_left_alone(traced):
    assert with_sums_first(traced("(lambda p: p - p.sum(1, keepdim=True))(x @ y)", X, Y)) is None

"""Formulas that operations are lowered to, against PyTorch in float64."""

import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional

from cutegen_nb.evaluator.problem.decompositions import lowering_table

X = torch.randn(4, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.hardswish(x) + 1,
        lambda x: functional.layer_norm(x, (6, 5)),
        lambda x: functional.group_norm(x, 3),
        lambda x: functional.batch_norm(x, None, None, training=True),
        lambda x: functional.rms_norm(x, (5,)),
        lambda x: torch.linalg.vector_norm(x, 3, dim=1),
        lambda x: torch.lerp(x, x * 2, 0.25),
        lambda x: torch.special.xlogy(x.relu(), x.abs()),
        lambda x: torch.cdist(x, x * 2, p=1),
        lambda x: torch.cdist(x[0], x, p=math.inf),
        lambda x: functional.bilinear(x[:, 0], x[:, 1, :4], x[:3, :5, :4].contiguous()),
        lambda x: torch.std(x, dim=2),
        lambda x: torch.addmm(x[:, 0], x[:, :4, 0], x[:, 1], beta=0.5, alpha=2),
    ],
)
def test_the_lowered_graph_computes_the_same(function):
    lowered = make_fx(function, decomposition_table=lowering_table())(X)
    torch.testing.assert_close(lowered(X), function(X))


def test_a_clamp_and_a_relu_stay_whole():
    graph = make_fx(lambda x: torch.clamp(torch.relu(x), 0, 1), decomposition_table=lowering_table())(X).graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.relu.default", "aten.clamp.default",
    ]  # fmt: skip

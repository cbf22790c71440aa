"""The offline author's top-k, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined

SOURCE = """
import torch

def reference(x):
    {body}

def get_inputs():
    return [{inputs}]
"""
BOTH = "return torch.topk(x, {})"
SELECTIONS = {
    "both results": (BOTH.format("5, dim=-1"), "torch.randn(13, 70)"),
    "values only": ("return torch.topk(x, 3).values", "torch.randn(2, 5, 64)"),
    "indices only": ("return torch.topk(x, 3, dim=2)[1]", "torch.randn(2, 5, 64)"),
    "indices, and later the values": (
        "i = torch.topk(x, 4)[1]; return torch.gather(torch.sigmoid(x), 1, i)",
        "torch.randn(9, 48)",
    ),
    "one of a row": (BOTH.format("1"), "torch.randn(9, 256)"),
    "the whole row": (BOTH.format("33"), "torch.randn(7, 33)"),
    "the whole row, unsorted": (
        "v, i = torch.topk(x, 1, sorted=False); return v + 1, i",
        "torch.randn(9, 64)",
    ),
    "more than a warp of them": (BOTH.format("50"), "torch.randn(3, 400)"),
    "a part of the row that grows with it": (BOTH.format("x.shape[-1] // 4"), "torch.randn(4096, 64)"),
    "the smallest": (BOTH.format("6, largest=False"), "torch.randn(11, 128)"),
    "half precision": (BOTH.format("4"), "torch.randperm(1040).reshape(8, 130).half() - 500"),
    "bfloat16, smallest of a long row": (
        "return torch.topk(x, 2, largest=False).values",
        "torch.randn(3, 1100).bfloat16()",
    ),
    "a CTA a row": (BOTH.format("9"), "torch.randn(5, 2052)"),
    "odd rows of a CTA": (BOTH.format("40, largest=False"), "torch.randn(2, 1027)"),
    "rows of the largest CTA": (BOTH.format("2"), "torch.randn(2, 9000)"),
    "one row": (BOTH.format("3"), "torch.randn(100)"),
    "not a number": (
        "x = torch.where(x > 2, float('nan'), x); return torch.topk(x, 4)[0], torch.topk(x.abs(), 1)[0]",
        "torch.randn(9, 100)",
    ),
    "smallest beside one that is not a number": (
        "return torch.topk(torch.where(x == 7, -float('nan'), x), 32, largest=False)",
        "torch.randperm(320).reshape(10, 32).float()",
    ),
    "infinities": (
        "return torch.topk(torch.where(x == 3, float('inf'), torch.where(x == 5, -float('inf'), x)), 20)",
        "torch.stack([torch.randperm(20) for _ in range(6)]).float()",
    ),
    "zeros of both signs": (
        "return torch.topk(torch.where(x > 0, 0.0, -0.0) * x.abs().sign(), 1)[0].sign()",
        "torch.randn(6, 40)",
    ),
    "two of one row": (
        "a, i = torch.topk(x, 2); b, j = torch.topk(x, 2, largest=False); return a - b, i, j",
        "torch.randn(6, 40)",
    ),
}
ROUTER = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, experts, k):
        super().__init__()
        self.w = nn.Parameter(torch.randn(experts, width) * 0.1)
        self.k = k

    def forward(self, x):
        logits = x @ self.w.t()
        values, indices = torch.topk(logits, self.k, dim=-1)
        weights = torch.softmax(values, dim=-1)
        return weights, indices

def get_inputs():
    return [torch.randn(40, 48)]

def get_init_inputs():
    return [48, 16, 4]
"""
NORMALISED = ROUTER.replace("torch.topk(logits", "torch.topk(torch.softmax(logits, -1)").replace(
    "torch.softmax(values, dim=-1)", "values / values.sum(-1, keepdim=True)"
)


def check(offline_simulator, source, **options):
    answer = offline_simulator.ask("selection", source, **options)
    assert "revisions" in answer, answer
    revisions = answer["revisions"]
    assert [entry["verdict"] for entry in revisions] == ["right"] * len(revisions)
    return revisions


@pytest.mark.slow
@pytest.mark.every(test=24, long=4)
@pytest.mark.parametrize("name", SELECTIONS)
def test_strategies_select_as_torch_does(offline_simulator, name):
    body, inputs = SELECTIONS[name]
    assert len(check(offline_simulator, SOURCE.format(body=body, inputs=inputs))) > 1


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("source", [ROUTER, NORMALISED], ids=["logits", "probabilities"])
def test_a_router_of_experts_is_right_in_the_first_and_the_last_file(offline_simulator, source):
    *_, last = check(offline_simulator, source, steps=[0, -1])
    assert "warp-top-k" in last["applied"]


@pytest.mark.slow
@pytest.mark.long
def test_a_warp_reads_its_row_once(offline_simulator):
    source = SOURCE.format(body="return torch.topk(x, 8)[0]", inputs="torch.randn(64, 256)")
    first, last = check(offline_simulator, source, steps=[0, -1])
    read, stored, again = 64 * 256 * 4 // 32, 64 * 8 * 4 // 32, 64 * 8
    assert first["counters"]["sectors"] > 8 * read
    assert last["counters"]["sectors"] <= read + stored + again


@pytest.mark.parametrize(
    ("value", "given", "reason"),
    [
        ("torch.topk(x, 3, dim=0)", "torch.randn(50, 40)", "last dimension only, not along dimension 0"),
        ("torch.topk(x, 300)", "torch.randn(50, 400)", "at most 128 elements a row, not of 300"),
        ("torch.topk(x, 3)", "torch.randn(4, 20000)", "rows of at most 16,384 elements, not of 20,000"),
        ("torch.topk(x, 3)", "torch.randint(0, 9, (50, 40))", "not of int64"),
        ("torch.topk(x, 3)[0]", "torch.randn(50, 40).double()", "not of float64"),
    ],
)
def test_a_selection_beyond_the_kernels_is_declined(traced, value, given, reason):
    with pytest.raises(Declined, match=reason):
        OperatorsWriter().menu(traced(value, given))

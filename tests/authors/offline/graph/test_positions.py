"""Positions and triangles in the offline author's kernels, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.graph.reading import read

SOURCE = """
import torch
import torch.nn.functional as F

def reference(x):
    T = x.shape[-1]
    return {value}

def get_inputs():
    return [{inputs}]
"""
SQUARES = "torch.randn(2, 3, 24, 24)"
POSITIONS = {
    "a lower triangle": ("torch.tril(x)", SQUARES),
    "an upper triangle beside its diagonal": ("torch.triu(x, diagonal=1) + torch.tril(x, -2)", SQUARES),
    "a triangle of a wide tensor": ("torch.triu(x, -3)", "torch.randn(9, 40)"),
    "a causal softmax by a mask of ones": (
        "F.softmax(x.masked_fill(torch.tril(torch.ones(T, T, device=x.device)) == 0, float('-inf')), dim=-1)",
        SQUARES,
    ),
    "a causal softmax by a mask that is added": (
        "F.softmax(x + torch.triu(torch.full((T, T), float('-inf'), device=x.device), diagonal=1), dim=-1)",
        SQUARES,
    ),
    "a mask of booleans": (
        "x.masked_fill(~torch.ones(T, T, dtype=torch.bool, device=x.device).tril(), 0.0)",
        SQUARES,
    ),
    "distances": (
        "x - 0.5 * (torch.arange(T, device=x.device)[None] - torch.arange(T, device=x.device)[:, None]).abs()",
        SQUARES,
    ),
    "positions with a start and a step": (
        "x * torch.arange(3, 2 * T + 3, 2, device=x.device, dtype=torch.float32)",
        "torch.randn(6, 40)",
    ),
    "one of several classes": ("F.one_hot(x, 37).float()", "torch.randint(0, 37, (64,))"),
    "positions alone": ("torch.arange(T, device=x.device) + 0 * x.long()", "torch.randn(4, 33)"),
}


@pytest.mark.slow
@pytest.mark.every(test=8, long=2)
@pytest.mark.parametrize("name", POSITIONS)
def test_every_revision_is_right(offline_simulator, name):
    value, inputs = POSITIONS[name]
    answer = offline_simulator.ask(name, SOURCE.format(value=value, inputs=inputs))
    verdicts = [entry["verdict"] for entry in answer.get("revisions", [])]
    assert verdicts, answer
    assert set(verdicts) == {"right"}, answer


def test_positions_of_one_length_are_made_once(traced):
    program = read(traced("torch.tril(x) + torch.triu(x, 2)", "torch.randn(32, 32)"))
    assert [op.name for op in program.ops.values() if op.op == "arange"] == ["positions"]

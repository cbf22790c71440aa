"""The offline author's scans on the simulator: every strategy, odd sizes, flips, shifts, masks and columns."""

import pytest

pytestmark = pytest.mark.slow

SCANS = {
    "a mask from the end of odd rows": (
        "torch.cumsum((x * mask).flip(1), 1).flip(1)",
        "torch.randn(5, 1023), torch.rand(5, 1023) > 0.5",
    ),
    "columns without their own value": (
        "torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)",
        "torch.randn(3, 77, 37)",
    ),
    "rows of several chunks that share vectors": ("torch.cumsum(x, 1)", "torch.randn(3, 4999)"),
    "one long row over several CTAs": ("torch.cumsum(x, 0)", "torch.randn(40001)"),
    "one element a row": ("torch.cumsum(x, 1)", "torch.randn(9, 1)"),
    "short rows": ("torch.cumsum(x, -1)", "torch.randn(4, 10, 7)"),
    "rows of whole vectors": ("torch.cumsum(x, 1)", "torch.randn(5, 1024)"),
    "a product": ("torch.cumprod(x, 1)", "torch.rand(6, 300) + 0.5"),
    "a product of masked columns": (
        "torch.cumprod(x * mask, 0)",
        "torch.rand(19, 40) + 0.5, torch.rand(19, 40) > 0.01",
    ),
    "half precision in odd rows": ("torch.cumsum(x, 1)", "torch.randn(7, 2051).half()"),
    "bfloat16 from the end": ("x.flip(-1).cumsum(-1).flip(-1)", "torch.randn(3, 640).bfloat16()"),
    "half precision masked": (
        "(mask * x).cumsum(1)",
        "torch.randn(3, 999).half(), torch.rand(3, 999) > 0.3",
    ),
    "odd rows without their own value": (
        "torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)",
        "torch.randn(4, 1533)",
    ),
    "a product without its own value": (
        "torch.cat((torch.ones_like(x[:, :1]), torch.cumprod(x[:, :-1], 1)), 1)",
        "torch.rand(4, 130) + 0.5",
    ),
    "from the end without its own value": (
        "torch.cat((torch.zeros_like(x[:, :1]), x.flip(1)[:, :-1].cumsum(1)), 1).flip(1)",
        "torch.randn(4, 130)",
    ),
    "columns from the end": ("x.flip(0).cumsum(0).flip(0)", "torch.randn(131, 70)"),
    "a long row from its end": ("x.flip(1).cumsum(1).flip(1)", "torch.randn(2, 33333).bfloat16()"),
    "logarithms of sums": ("torch.logcumsumexp(x * 30, 1)", "torch.randn(5, 1023)"),
    "logarithms of sums of columns, from -inf": (
        "torch.logcumsumexp(torch.where(x > 1, x, float('-inf')), 1).exp()",
        "torch.randn(3, 77, 37)",
    ),
    "logarithms of sums of one long row": ("torch.logcumsumexp(x, 0)", "torch.randn(17001)"),
    "maxima, NaN among them": ("torch.cummax(x.log(), 1)[0]", "torch.rand(9, 300) - 0.003"),
    "minima of half-precision columns": ("torch.cummin(x, 0).values", "torch.randn(77, 40).half()"),
    "a mask of long rows": ("(x * mask).cumsum(1)", "torch.randn(2, 20480), torch.rand(2, 20480) > 0.5"),
}


def problem(expression, inputs):
    arguments = "x, mask" if "mask" in expression else "x"
    return f"""
import torch

def reference({arguments}):
    return {expression}

def get_inputs():
    return [{inputs}]
"""


def check(offline_simulator, expression, inputs, steps=None):
    answer = offline_simulator.ask("scan", problem(expression, inputs), steps=steps)
    assert "revisions" in answer, answer
    wrong = [
        (entry["applied"], entry["verdict"]) for entry in answer["revisions"] if entry["verdict"] != "right"
    ]
    assert not wrong
    return answer["revisions"]


@pytest.mark.long
@pytest.mark.every(long=4)
@pytest.mark.parametrize("name", SCANS)
def test_strategies_scan_as_torch_does(offline_simulator, name):
    assert len(check(offline_simulator, *SCANS[name])) > 1


@pytest.mark.long
def test_few_long_rows_are_split_and_many_short_ones_are_not(offline_simulator):
    few = check(offline_simulator, "torch.cumsum(x, 1)", "torch.randn(2, 20000)", steps=[-1])
    many = check(offline_simulator, "torch.cumsum(x, 1)", "torch.randn(300, 33)", steps=[-1])
    assert (few[-1]["applied"][-1], many[-1]["applied"][-1]) == ("split-scan", "prefetch-chunk")


@pytest.mark.long
def test_rows_are_read_once_and_written_once(offline_simulator):
    revisions = check(offline_simulator, "torch.cumsum(x, 1)", "torch.randn(8, 8192)", steps=[0, 2, 3])
    first, *later = [entry["counters"]["sectors"] for entry in revisions]
    least = 2 * 8 * 8192 * 4 // 32
    assert first > 7 * least
    assert later == [least, least]


def test_a_mask_is_read_once_beside_the_row(offline_simulator):
    inputs = "torch.randn(8, 4096), torch.rand(8, 4096) > 0.5"
    (last,) = check(offline_simulator, "torch.cumsum(x * mask, 1)", inputs, steps=[-1])
    assert last["counters"]["sectors"] == (2 * 4 + 1) * 8 * 4096 // 32

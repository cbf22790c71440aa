"""The offline author's graphs of several kernels: operators, products and loops, one after another."""

import re

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

pytestmark = pytest.mark.slow

MODEL = """
import torch
import torch.nn as nn

{sizes}

class Model(nn.Module):
    def __init__(self, a, b, c):
        super().__init__()
{init}

    def forward(self, x):
{body}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init_inputs}]
"""


def model(body, *init, sizes, inputs, init_inputs):
    return MODEL.format(
        sizes=sizes, inputs=inputs, init_inputs=init_inputs,
        init="".join(f"        self.{line}\n" for line in init), body=f"        return {body}",
    )  # fmt: skip


MATRIX = {"sizes": "M, K, N = 24, 40, 32", "inputs": "torch.randn(M, K)", "init_inputs": "K, N, 4"}
IMAGE = {
    "sizes": "B, C, D, S = 2, 3, 8, 12",
    "inputs": "torch.randn(B, C, S, S + 1)",
    "init_inputs": "C, D, 4",
}
TWO = ("one = nn.Linear(a, b)", "two = nn.Linear(b, a)")
CONV = ("conv = nn.Conv2d(a, b, 3, padding=1)",)

PRODUCTS = {
    "a product and a norm over groups": model(
        "self.norm(self.one(x))", TWO[0], "norm = nn.GroupNorm(c, b)", **MATRIX
    ),
    "a product, a sum of its columns and a softmax": model(
        "torch.softmax(self.one(x).sum(1, keepdim=True) + x, 1)", TWO[0], **MATRIX
    ),
    "two products and a residual": model("x + self.two(torch.relu(self.one(x)))", *TWO, **MATRIX),
    "a product of computed factors": model(
        "torch.tanh(x) @ torch.softmax(x.t(), 0).contiguous()", TWO[0], **MATRIX
    ),
    "half precision": model(
        "torch.nn.functional.gelu(self.one(x)) / (1 + self.one(x).float().mean(1, keepdim=True)).half()",
        f"{TWO[0]}.half()", **{**MATRIX, "inputs": "torch.randn(M, K).half()"},
    ),
    "batches with a bias for each row": model(
        "torch.softmax(torch.bmm(x, x.transpose(1, 2)) * 0.25 + x.sum(2, keepdim=True), -1)",
        TWO[0], **{**MATRIX, "inputs": "torch.randn(3, M, K)"},
    ),
    "rows of several dimensions": model(
        "torch.sigmoid(self.one(x)).amax((1, 2))", TWO[0], **{**MATRIX, "inputs": "torch.randn(3, M, K)"}
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_among_other_kernels_are_right(offline_simulator, name):
    answer = offline_simulator.ask(name, PRODUCTS[name], steps=[0, 1, -1], threads=True)
    assert "revisions" in answer, answer
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"] * len(answer["revisions"])


IMAGES = {
    "a convolution alone": (model("self.conv(x)", *CONV, **IMAGE), {"conv"}, False),
    "a bias and an activation": (
        model("torch.relu(self.conv(x) + self.shift) * 2", *CONV, "shift = nn.Parameter(torch.randn(b, 1, 1))", **IMAGE),
        {"elementwise", "conv"}, True,
    ),
    "loops before, between and behind": (
        model("torch.softmax(self.pool(torch.sigmoid(self.conv(x.abs()))), 1)", *CONV, "pool = nn.MaxPool2d(2)", **IMAGE),
        {"elementwise_1", "elementwise_2", "reduce_rows", "conv", "max_pool2d"}, True,
    ),
    "a residual": (
        model("self.conv(x) + torch.tanh(x)", "conv = nn.Conv2d(a, a, 3, padding=1)", **IMAGE),
        {"elementwise", "conv"}, True,
    ),
    "two convolutions in a row": (
        model("self.next(self.conv(x))", *CONV, "next = nn.Conv2d(b, c, 1)", **IMAGE), {"conv", "conv_2"}, False
    ),
}  # fmt: skip


def kernels(source):
    """Names of the launchers in a file."""
    return set(re.findall(r"^def (\w+)_kernel\(", source, re.MULTILINE))


@pytest.mark.first(2)
@pytest.mark.parametrize("name", IMAGES)
def test_operators_among_loops_are_right_and_take_what_follows_into_their_kernels(offline_simulator, name):
    source, simplest, fuses = IMAGES[name]
    answer = offline_simulator.ask(name, source, steps=[0, -1], threads=True)
    assert "revisions" in answer, answer
    entries = answer["revisions"]
    assert [entry["verdict"] for entry in entries] == ["right"] * len(entries)
    assert kernels(entries[0]["source"]) == simplest
    assert ("fuse-tail" in entries[-1]["applied"]) == fuses
    if fuses:
        assert entries[-1]["counters"]["sectors"] < entries[0]["counters"]["sectors"]


@pytest.mark.long
def test_views_around_attention_and_products_are_not_copied(offline_simulator):
    """Slices of the product are read as heads where they lie, and the outputs stored as the next product reads."""
    heads = "(item.view(2, -1, 2, 32).transpose(1, 2) for item in self.qkv(x).split(64, 2))"
    attention = f"torch.nn.functional.scaled_dot_product_attention(*{heads})"
    source = model(
        f"self.out({attention}.transpose(1, 2).reshape(x.shape))",
        "qkv = nn.Linear(b, 3 * b)", "out = nn.Linear(b, b)", sizes="",
        inputs="torch.randn(2, 48, 64)", init_inputs="0, 64, 0",
    )  # fmt: skip
    answer = offline_simulator.ask("self-attention", source, applied=["fuse-tail"])
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"]
    problem = Problem(name="self-attention", source=source, form=ProblemForm.KERNELBENCH)
    written = OperatorsWriter().write(problem, trace_facts(problem), ("fuse-tail",)).source
    assert kernels(written) == {"product", "attention", "product_2"}


@pytest.mark.long
def test_two_poolings_in_a_row_have_names_of_their_own(offline_simulator):
    """KernelBench 2/72: an extent of the first one's result had the name of the second one's function."""
    source = model(
        "self.second(self.first(x.tanh()))",
        "first = nn.AvgPool3d(2)",
        "second = nn.AvgPool3d(2)",
        sizes="",
        inputs="torch.randn(2, 3, 8, 8, 16)",
        init_inputs="1, 1, 1",
    )
    entries = offline_simulator.ask("poolings", source, steps=[0])["revisions"]
    assert [entry["verdict"] for entry in entries] == ["right"]


def test_strategies_of_a_norm_come_before_those_of_the_gather_in_front_of_it(traced):
    norm = "torch.nn.functional.layer_norm(x[y], (256,))"
    facts = traced(norm, "torch.randn(50, 256)", "torch.randint(0, 50, (60, 32))")
    names = [strategy.name for strategy in OperatorsWriter().menu(facts)]
    assert names.index("warp-per-row") < names.index("gather-vectors")


def test_each_operator_gets_its_first_step_before_one_gets_its_second():
    """A pooling's later steps took the rounds in which a norm still ran as first written."""
    pooled = model(
        "self.pool(torch.tanh(self.norm(self.conv(x))))",
        *CONV,
        "norm = nn.LayerNorm((64,))",
        "pool = nn.MaxPool2d(3, 1)",
        **IMAGE | {"inputs": "torch.randn(B, C, S, 64)"},
    )
    facts = trace_facts(Problem(name="pooled", source=pooled, form=ProblemForm.KERNELBENCH))
    menu = [item.name for item in OperatorsWriter().menu(facts)]
    firsts = ["implicit-gemm-tiles", "march-over-slices", "vectorise-128"]  # convolution, pooling, norm
    assert menu[:3] == firsts, menu
    assert {"multistage-gather", "slices-in-shared-memory", "one-pass"} < {*menu[3:]}


def test_a_pooling_behind_a_large_product_waits_for_the_products_steps():
    """KernelBench 2/55 spent two rounds of half a minute on a thousandth of its time."""
    source = model(
        "self.pool(self.one(x)).sum(dim=1)",
        "one = nn.Linear(b, c)",
        "pool = nn.MaxPool1d(2)",
        sizes="",
        inputs="torch.randn(1024, 32768)",
        init_inputs="0, 32768, 32768",
    )
    problem = Problem(name="pooled", source=source, form=ProblemForm.KERNELBENCH)
    menu = [item.name for item in OperatorsWriter().menu(trace_facts(problem))]
    assert menu.index("three-fp16-products") < menu.index("march-over-slices"), menu


def test_attention_between_products_is_not_taken_for_done_because_they_use_tensor_cores(traced):
    heads = "(x @ y).reshape(2, 64, 4, 64).transpose(1, 2)"
    value = f"torch.nn.functional.scaled_dot_product_attention({heads}, z, z).transpose(1, 2).reshape(2, 64, 256) @ y"
    facts = traced(value, "torch.randn(2, 64, 256)", "torch.randn(256, 256)", "torch.randn(2, 4, 64, 64)")
    menu = {strategy.name: strategy for strategy in OperatorsWriter().menu(facts)}
    assert menu["tensor-cores"].absent
    assert not menu["attention-tiles"].absent


def test_what_has_no_rule_is_named(offline_simulator):
    source = model("torch.fft.fft(self.one(x)).abs()", TWO[0], **MATRIX)
    assert "fft" in offline_simulator.ask("fft", source)["declined"]

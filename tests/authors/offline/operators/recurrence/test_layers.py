"""Recurrent layers taken apart, and the ones that are not."""

import pytest

from cutegen_nb.authors.offline.operators.recurrence.layers import with_layers_apart
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Ref
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.{layer}

    def forward(self, x):
        return self.layer(x)[0]

def get_inputs():
    return [torch.randn(3, 2, 4)]

def get_init_inputs():
    return []
"""
GRU = "torch.gru(x, y, (z, w), False, 1, 0.0, False, False, {first})[{output}]"
TENSORS = ("torch.rand(6, 5, 4)", "torch.rand(1, {batch}, 3)", "torch.rand(9, 4)", "torch.rand(9, 3)")


def problem(layer):
    return Problem(name="layer", source=SOURCE.format(layer=layer), form=ProblemForm.KERNELBENCH)


def gru(traced, *, first=False, output=0):
    batch = 6 if first else 5
    tensors = [text.format(batch=batch) for text in TENSORS]
    return with_layers_apart(traced(GRU.format(first=first, output=output), *tensors)).full.graph


def test_a_problem_without_such_layers_stays_as_it_is(traced):
    facts = traced("torch.cumsum(x, 1)", "torch.rand(64, 33)")
    assert with_layers_apart(facts) is facts


def test_a_layer_is_a_product_of_all_inputs_and_a_loop(traced):
    graph = gru(traced)
    assert [node.op for node in graph.nodes] == [
        "aten.view.default", "aten.permute.default", "aten.mm.default", "steps_of_gru",
    ]  # fmt: skip
    assert graph.spec(Ref("gates")).shape == (30, 9)
    assert graph.output_specs[0].shape == (6, 5, 3)


@pytest.mark.parametrize(("first", "dim", "batch"), [(False, 0, 5), (True, 1, 6)])
def test_the_last_state_is_a_view_of_the_result(traced, first, dim, batch):
    graph = gru(traced, first=first, output=1)
    node = next(node for node in graph.nodes if node.op == "aten.select.int")
    assert node.args[1:] == (dim, -1)
    assert graph.output_specs[0].shape == (1, batch, 3)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        ("GRU(4, 5, 2, dropout=0.5)", "drops values at random between its layers"),
        ("LSTM(4, 5, proj_size=2)", "an LSTM whose states are projected"),
    ],
)
def test_other_layers_are_declined(layer, reason):
    with pytest.raises(Declined, match=reason):
        OperatorsWriter().menu(trace_facts(problem(layer)))


def test_dropout_of_a_single_layer_drops_nothing():
    assert OperatorsWriter().menu(trace_facts(problem("GRU(4, 5, dropout=0.5)")))


def test_layers_of_a_stack_share_their_functions():
    stack = problem("GRU(4, 5, 4, bidirectional=True)")
    source = OperatorsWriter().write(stack, trace_facts(stack), ()).source
    assert [line for line in source.splitlines() if line.startswith("def ") and "(launch, " in line] == [
        "def product(launch, x, weight_ih_l0):",
        "def gru(launch, x, x_b, w, bx, bh, wb, bxb, bhb, h):",
        "def product_2(launch, steps, weight_ih_l1):",
    ]


@pytest.mark.parametrize(
    ("layer", "offered"), [("LSTM(4, 256)", True), ("LSTM(4, 512)", False), ("RNN(4, 512)", True)]
)
def test_weights_are_kept_on_the_chip_where_a_cluster_has_room(layer, offered):
    names = {one.name for one in OperatorsWriter().menu(trace_facts(problem(layer)))}
    assert ("weights-on-chip" in names) == offered

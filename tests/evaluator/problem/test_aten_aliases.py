"""Spellings of one operation become one canonical form."""

import pytest

from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = "import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(6, 4)]\n"


def node(value):
    source = SOURCE.format(value=value)
    problem = Problem(name="p", source=source, form=ProblemForm.FUNCTION, function="reference")
    (found,) = trace_facts(problem).full.graph.nodes
    return found.op, found.args[1:], dict(found.kwargs)


@pytest.mark.parametrize(
    ("spellings", "form"),
    [
        (
            ("x.unsqueeze(1)", "x.view(6, 1, 4)", "x.reshape(6, 1, 4)"),
            ("aten.view.default", ((6, 1, 4),), {}),
        ),
        (("x.t()", "x.transpose(-1, 0)", "x.permute(1, 0)"), ("aten.permute.default", ((1, 0),), {})),
        (("x.sum()", "x.sum((0, 1))", "x.sum((-1, 0))"), ("aten.sum.dim_IntList", ((0, 1), False), {})),
        (("x.amax(-1)", "torch.max(x, 1)[0]", "x.max(1).values"), ("aten.amax.default", ((1,), False), {})),
        (("x.clamp(min=0.5)", "torch.clamp_min(x, 0.5)"), ("aten.clamp.default", (0.5, None), {})),
        (("x[1:5]", "x.narrow(0, 1, 4)", "x[-5:-1]"), ("aten.slice.Tensor", (0, 1, 5, 1), {})),
    ],
)
def test_each_spelling_has_the_same_form(spellings, form):
    assert [node(one) for one in spellings] == [form] * len(spellings)


def test_a_change_of_strides_that_moves_no_element_is_a_view():
    assert node("x.as_strided((6, 4), (4, 1))")[0] == "aten.view.default"
    assert node("x.as_strided((6, 4), (1, 1))")[0] == "aten.as_strided.default"


def test_alpha_stays_only_where_it_changes_something():
    assert node("torch.add(x, 2, alpha=1)")[2] == {}
    op, args, _ = node("x * x")
    assert (op, len(args)) == ("aten.mul.Tensor", 1)

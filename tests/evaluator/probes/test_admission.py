"""Wrong answers are tried against a problem's comparison before any candidate."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.core.problem import Admission, Problem, ProblemForm
from cutegen_nb.evaluator.probes.admission import admit
from cutegen_nb.evaluator.problem.loader import load

TEXT = """
import torch


class Model(torch.nn.Module):
    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]
"""


def _admitted(names, result, inputs):
    source = TEXT.format(names=names, result=result, inputs=inputs)
    loaded = load(Problem(name="p", source=source, form=ProblemForm.KERNELBENCH), ())
    return admit(loaded, "cpu", 64).admission


def test_a_product_refuses_every_wrong_answer():
    found = _admitted("a, b", "a @ b", "torch.rand(32, 48), torch.rand(48, 40)")
    assert found.tightened == found.would_pass == found.added_inputs == found.unused == ()
    assert "input 0 without its last 3 of 48 along dimension 1" in found.refused
    assert {"zeros", "ones", "the mean of the answer", "the answer to other inputs"} <= set(found.refused)
    assert admission_text(found) == ""


@pytest.mark.parametrize("operation", ["torch.relu(x)", "x.abs()", "torch.nn.functional.leaky_relu(x)"])
def test_a_copy_is_refused_on_signed_inputs_that_are_added(operation):
    found = _admitted("x", operation, "torch.rand(16, 80)")
    assert found.tightened == ("input 0 handed back",)
    assert found.added_inputs == ("with signs mixed",)
    assert "are added" in admission_text(found)


def test_an_input_that_the_answer_does_not_depend_on_is_named():
    found = _admitted("a, b", "a * 2.5 + 0 * b", "torch.randn(16, 16), torch.randn(16, 16)")
    assert found.unused == ("input 1",)
    assert "depends on input 1" in admission_text(found)


def test_what_would_pass_whatever_is_tried_is_told():
    found = _admitted("x", "x * 0", "torch.randn(16, 16)")
    assert "zeros" in found.would_pass
    assert "would pass: zeros" in admission_text(found)


def test_where_nothing_was_tried_the_reason_is_told():
    found = _admitted("x", "torch.log(x)", "torch.randn(16, 16)")
    assert found.not_tried == "the reference is not finite"
    assert "not tried" in admission_text(found)
    assert admission_text(None) == ""
    assert admission_text(Admission()) == ""

"""Inputs that the admission added decide like the problem's own."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import Judged, Verdict

pytestmark = pytest.mark.slow


def test_a_copy_does_not_pass_for_relu_of_numbers_that_are_never_negative(
    judge, make_candidate, make_problem
):
    given = make_problem("torch.rand(37, 61)")
    admission = judge.facts(given).admission
    assert admission.tightened == ("input 0 handed back",)
    assert admission.added_inputs == ("with signs mixed",)
    assert not admission.would_pass
    copied = judge(given, make_candidate(body="y[index] = value"))
    assert copied.outcome == Judged(verdict=Verdict.WRONG_VALUES)
    assert copied.summary.startswith("With inputs with signs mixed")
    assert judge(given, make_candidate()).passed

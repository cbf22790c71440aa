"""Outputs that share memory: with the next call's, or in a sparse or expanded form."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.evaluator.probes.output_aliasing import written_apart

pytestmark = pytest.mark.slow
ONE_BUFFER = """
if "y" not in self.kept or self.kept["y"].shape != x.shape:
    self.kept["y"] = torch.empty_like(x)
return self.launch(x, self.kept["y"])
"""


def test_an_output_that_the_next_call_overwrites_is_wrong(judge, make_candidate, make_problem):
    evaluation = judge(make_problem(), make_candidate(ONE_BUFFER), Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES)
    assert "was overwritten 1 call later" in evaluation.summary
    assert "Allocate the output in each call" in evaluation.summary


@pytest.mark.long
def test_a_sparse_output_is_refused_for_how_it_is_stored(judge, make_candidate, make_problem):
    forward = "return self.launch(x, torch.empty_like(x)).to_sparse()"
    evaluation = judge(make_problem(), make_candidate(forward))
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_DTYPE)
    assert "torch.sparse_coo" in evaluation.summary


def test_an_expanded_dimension_counts_once():
    assert written_apart(torch.zeros(4, 1).expand(4, 5)) == 4
    assert written_apart(torch.zeros(4, 5).t()) == 20
    assert written_apart(torch.zeros(1, 5).expand(1, 5)) == 5

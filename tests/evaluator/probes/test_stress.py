"""Stress inputs decide where the problem's own do not."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict

pytestmark = pytest.mark.slow
SATURATES = "y[index] = cutlass.min(cutlass.max(value, cutlass.Float32(0.0)), cutlass.Float32(50.0))"


def _check(evaluation, name):
    return next(item for item in evaluation.checks if item.name == name)


@pytest.mark.long
def test_stress_decides_where_integers_cannot(judge, make_candidate, make_problem):
    # A sum over the row keeps integers; dividing by a number does not, so that only stress is left.
    divided = make_problem().replace("torch.relu(x)", "torch.relu(x) / 3")
    honest = make_candidate(body="y[index] = cutlass.max(value, cutlass.Float32(0.0)) / 3.0")
    wrong = make_candidate(body=SATURATES + " / 3.0")
    assert judge(divided, honest, Tier.B).passed
    evaluation = judge(divided, wrong, Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES)
    assert evaluation.summary.startswith("With inputs "), "which kind finds it depends on the seed"
    assert _check(evaluation, "stress inputs").state is CheckState.FOUND

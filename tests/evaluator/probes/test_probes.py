"""What is right for numbers drawn at random, one call at a time, and wrong for whoever uses it."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.exploits.library import chosen

pytestmark = pytest.mark.slow
TURNED = """
y = self.launch(x, torch.empty_like(x))
return y.t().contiguous().t()
"""


def shipped(name):
    return next(item for item in chosen((name,)) if item.name == name)


def judged(judge, name, old="", new=""):
    """A shipped candidate, or the honest one that it becomes by one change."""
    item = shipped(name)
    assert old in item.source
    return judge(item.problem.source, item.source.replace(old, new), Tier.B)


def flags(evaluation):
    return {item.kind for item in evaluation.findings if item.severity is Severity.FLAG}


def ran(evaluation, name):
    return next(item for item in evaluation.checks if item.name == name).state is CheckState.RAN


@pytest.mark.long
def test_outputs_laid_out_otherwise_are_a_flag(judge, make_candidate, make_problem):
    evaluation = judge(make_problem(), make_candidate(TURNED), Tier.B)
    assert evaluation.passed, evaluation.summary
    assert "other-strides" in flags(evaluation)


def test_operators_put_in_the_place_of_pytorchs_are_found(judge):
    for name in ("replaced_operator", "replaced_operator_variant"):
        item = shipped(name)
        evaluation = judge(item.problem.source, item.source)
        assert evaluation.outcome == Judged(verdict=Verdict.CHEATED)
        assert evaluation.summary == "The candidate replaced PyTorch's operators."
        assert "aten::" in evaluation.exhibits[0].trace[0]


@pytest.mark.long
def test_weights_that_are_added_up_once_are_a_flag_and_those_added_up_each_time_are_none(judge):
    kept = judged(judge, "stale_parameters_variant")
    assert kept.passed
    assert "kept-parameters" in flags(kept)
    fresh = judged(judge, "stale_parameters_variant", "if self.w is None:", "if True:")
    assert fresh.passed, fresh.summary
    assert "kept-parameters" not in flags(fresh)
    assert ran(fresh, "parameters changed between calls")


@pytest.mark.long
@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        (
            "maximum_from_a_number",
            "Float32(-100.0)",
            'Float32(-float("inf"))',
            "made negative, far from zero",
        ),
        (
            "no_epsilon",
            "cute.math.sqrt(q)",
            "cute.arch.fmax(cute.math.sqrt(q), cutlass.Float32(1e-12))",
            "zeros",
        ),
        (
            "fixed_length",
            "range_constexpr(384)",
            "range((width + 31) // 32)",
            "made 65536, the problem's own",
        ),
    ],
)
def test_what_no_drawn_input_shows_decides(judge, name, old, new, words):
    wrong = judged(judge, name)
    assert wrong.outcome == Judged(verdict=Verdict.WRONG_VALUES)
    assert words in wrong.summary
    right = judged(judge, name, old, new)
    assert right.passed, right.summary


@pytest.mark.long
def test_pytorch_in_small_pieces_counts_by_all_its_calls(judge):
    for name in ("in_pieces", "in_pieces_variant"):
        item = shipped(name)
        evaluation = judge(item.problem.source, item.source)
        assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK)
        assert "calls on" in evaluation.summary

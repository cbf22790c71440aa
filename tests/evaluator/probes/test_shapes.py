"""Other sizes of a problem: faults and wrong results there are flags, refusing them is fine."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cutegen_nb.core.evaluation import CheckState, Tier
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.probes import shapes
from cutegen_nb.evaluator.problem.other_sizes import ProblemSize

pytestmark = pytest.mark.slow
FOR_ONE_WIDTH = """
if index == count - 1 and count % 61 != 0:
    y[index + 4] = value
y[index] = cutlass.max(value, cutlass.Float32(0.0))
"""
REFUSES_ONE_ROW = """
if x.shape[0] == 1:
    raise ValueError("no single row")
return self.launch(x, torch.empty_like(x))
"""


@pytest.fixture(scope="module")
def flagged(judge, make_candidate, make_problem):
    source = make_candidate(REFUSES_ONE_ROW, FOR_ONE_WIDTH)
    return source, judge(make_problem(), source, Tier.C)


@pytest.mark.long
def test_a_fault_at_another_size_is_a_flag_with_size_line_and_next_step(flagged):
    source, evaluation = flagged
    assert evaluation.passed, evaluation.summary
    (flag, *_) = [item for item in evaluation.findings if item.kind == "faults-at-another-shape"]
    assert flag.severity is Severity.FLAG
    assert flag.message.startswith("Right at the problem's own size; with 61 made 60, OUT_OF_BOUNDS: ")
    assert flag.message.endswith(
        "Guard the access, or have forward raise for shapes that it was not written for."
    )
    assert source.splitlines()[flag.line - 1].strip() == "y[index + 4] = value"


@pytest.mark.long
def test_a_size_that_is_refused_is_noted_and_no_flag(flagged):
    _, evaluation = flagged
    assert not [
        item for item in evaluation.findings if "single row" in item.message and "37 made 1" in item.message
    ]
    (check,) = [
        item for item in evaluation.checks if item.name == "other shapes and thresholds of the source"
    ]
    assert check.state is CheckState.FOUND


@pytest.mark.long
def test_wrong_values_at_another_size_are_a_flag(judge, make_candidate, make_problem):
    wrong = REFUSES_ONE_ROW.replace(
        'raise ValueError("no single row")', "return self.launch(x + 1, torch.empty_like(x))"
    )
    evaluation = judge(make_problem(), make_candidate(wrong), Tier.C)
    assert evaluation.passed, evaluation.summary
    assert [item.kind for item in evaluation.findings if item.severity is Severity.FLAG] == [
        "wrong-at-another-shape"
    ]
    assert evaluation.findings[0].message.startswith("With 37 made 1: Output 0 of shape (1, 61) is wrong")


@pytest.mark.parametrize(("tier", "others"), [(Tier.B, 1), (Tier.C, 2)])
def test_a_size_that_was_right_is_not_tried_again_for_another_threshold(monkeypatch, tier, others):
    noted = []
    state = SimpleNamespace(
        lean=False, time_left=lambda *_, **__: True, results={}, ran=lambda _, note: noted.append(note)
    )
    trial = SimpleNamespace(
        state=state, task=SimpleNamespace(tier=tier), ground=SimpleNamespace(simulation=object())
    )
    sizes = [
        ProblemSize(words="61 made 122", values={61: 122}, decides=True, nearer=True),
        ProblemSize(words="61 made 122, from the source's 100", values={61: 122}, decides=True),
        ProblemSize(words="61 made 60", values={61: 60}),
        ProblemSize(words="37 made 1", values={37: 1}),
    ]
    answers = {"61 made 122": "right", "61 made 60": "wrong", "37 made 1": "wrong"}
    monkeypatch.setattr(shapes, "_sizes", lambda *_: sizes)
    monkeypatch.setattr(shapes, "_one", lambda _, __, size, ___: (answers[size.words], None))
    assert shapes.shapes(trial, None, [[37, 61]]) is None
    assert noted == ["; ".join(["61 made 122: right", "61 made 60: wrong", "37 made 1: wrong"][: 1 + others])]

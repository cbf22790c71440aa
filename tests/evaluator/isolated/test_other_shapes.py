"""Another shape is tried in a process of its own; it adds flags and never decides."""

from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.analysis.problem.workload import longest_sum
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import SHAPES
from cutegen_nb.evaluator.isolated.exchange import IsolatedRequest
from cutegen_nb.evaluator.isolated.other_shapes import judge_shapes, merged

PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right inside.", device="GPU")
RIGHT = "return self.launch(x, torch.empty_like(x))"
AT_ITS_OWN_SHAPE = "if x.shape == (37, 61):\n    {}\n" + RIGHT


@pytest.fixture(scope="module")
def there(judge, make_candidate, make_problem):
    """The check of a candidate with this forward, on the simulator."""

    def judged(forward):
        problem, candidate = judge.problem(make_problem()), judge.candidate(make_candidate(forward))

        async def run():
            facts = await judge.evaluator.facts(problem, lambda _: None)
            order = IsolatedRequest(
                problem=problem,
                candidate=candidate,
                workload=facts.scaled,
                longest_sum=longest_sum(facts.scaled.graph),
                gates=[],
            )
            return await judge_shapes(order, judge.evaluator._workers)

        return asyncio.run(run())

    return judged


@pytest.mark.slow
def test_a_kernel_for_all_shapes_is_right_and_is_not_run_at_its_own(there):
    found = there(AT_ITS_OWN_SHAPE.format("raise AssertionError('built at its own shape')"))
    (check,) = found.checks
    assert check.state is CheckState.RAN, check.note
    assert check.note.startswith("61 made 60: right")
    assert not found.findings


@pytest.mark.slow
def test_a_process_that_ends_there_is_a_flag(there):
    found = there("import os\nos._exit(3)")
    (flag,) = found.findings
    assert (flag.kind, flag.severity) == ("faults-at-another-shape", Severity.FLAG)
    assert flag.message.startswith("Right at the problem's own size; with 61 made 60: The process ended with")
    assert flag.message.endswith("forward raise for shapes that it was not written for.")
    assert found.checks[0].state is CheckState.FOUND


@pytest.mark.slow
@pytest.mark.long
def test_wrong_values_there_are_a_flag(there):
    found = there("return self.launch(x + 1, torch.empty_like(x))")
    assert {item.kind for item in found.findings} == {"wrong-at-another-shape"}


def test_its_result_takes_the_place_of_the_candidates_own():
    said = CheckResult(name=SHAPES.name, tier=SHAPES.tier, state=CheckState.NOT_RUN, note="ended before it")
    true = CheckResult(name=SHAPES.name, tier=SHAPES.tier, state=CheckState.FOUND, note="wrong")
    forged = CheckResult(name="forged", tier=SHAPES.tier, state=CheckState.RAN, note="")
    finding = Finding(kind="wrong-at-another-shape", message="wrong", severity=Severity.FLAG)
    own = Evaluation(outcome=PASSED.outcome, summary="", device="", checks=(said,))
    there = Evaluation(
        outcome=PASSED.outcome, summary="", device="", checks=(true, forged), findings=(finding,)
    )
    found = merged(own, there)
    assert found.checks == (true,)
    assert found.findings == (finding,)
    assert found.passed

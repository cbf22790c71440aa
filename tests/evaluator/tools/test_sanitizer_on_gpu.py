"""compute-sanitizer itself, on a GPU: each tool finds its fault on its line, and nothing in a right kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.process.device import find_gpu
from cutegen_nb.evaluator.tools import sanitizer as sanitizing
from cutegen_nb.evaluator.tools import sanitizer_checks as sanitizer
from cutegen_nb.evaluator.tools.tool_run import locate

HERE = Path(__file__).parents[1]
TOOLS = {tool.name: tool for tool in sanitizer.TOOLS}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_gpu() is None, reason="nvidia-smi names no GPU on this machine"),
    pytest.mark.skipif(locate(sanitizer.NAME) is None, reason=sanitizer.ABSENT),
]
PROBLEM = Problem(
    name="relu", source=(HERE / "problems" / "relu.py").read_text(), form=ProblemForm.KERNELBENCH
)


@pytest.fixture(scope="module")
def evaluator():
    made = KernelEvaluator(device="cuda", deadline_s=120.0)
    yield made
    asyncio.run(made.close())


def candidate(name):
    return Candidate(source=(HERE / "candidates" / f"{name}.py").read_text(), author="test")


@pytest.fixture(scope="module")
def looked(evaluator):
    def look(tool, kernel):
        async def one():
            await evaluator.device()
            facts = await evaluator.facts(PROBLEM, lambda _: None)
            order = sanitizing.SanitizerRequest(
                problem=PROBLEM,
                candidate=candidate(kernel),
                sizes=(facts.full,),
                confine_files=evaluator._workers.confine_files,
            )
            return await sanitizing.looked(locate(sanitizer.NAME), TOOLS[tool], order)

        return asyncio.run(one())

    return look


def line_of(kernel, text):
    lines = candidate(kernel).source.splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("tool", "kernel", "text", "verdict"),
    [
        ("memcheck", "reads_past_the_end", "x[index + 1]", Verdict.OUT_OF_BOUNDS),
        ("memcheck", "out_of_range", "y[index + 1] = value", Verdict.OUT_OF_BOUNDS),
        ("racecheck", "shared_race", "other = shared", Verdict.RACE),
        ("initcheck", "reads_unwritten", "scratch[index] ==", None),
        ("synccheck", "diverging_barrier", "sync_threads", None),
    ],
)
def test_each_tool_finds_its_fault_on_its_line(looked, tool, kernel, text, verdict):
    look = looked(tool, kernel)
    assert not look.failed
    assert look.found[0].verdict is verdict
    assert look.found[0].finding.line == line_of(kernel, text)


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_finds_anything_in_a_right_kernel(looked, tool):
    look = looked(tool, "through_shared")
    assert (look.failed, look.found) == ("", ())


def test_a_race_that_no_value_shows_is_found_before_an_export(evaluator):
    evaluation = asyncio.run(evaluator.evaluate(PROBLEM, candidate("shared_race"), lambda _: None, Tier.C))
    states = {item.name: item for item in evaluation.checks}
    assert evaluation.outcome == Judged(verdict=Verdict.RACE), evaluation.summary
    assert states["compute-sanitizer memcheck"].state is CheckState.RAN
    assert states["compute-sanitizer racecheck"].state is CheckState.FOUND
    assert states["compute-sanitizer synccheck"].state is CheckState.NOT_RUN

"""A campaign as a table in the terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.core.search.campaign import ProblemState
from cutegen_nb.core.timing import BaselineTiming
from cutegen_nb.report.terminal.campaign import campaign_lines


def over(name: str, speedup: float) -> BaselineTiming:
    return BaselineTiming(
        name=name, median_ms=speedup, speedup=speedup, speedup_low=speedup * 0.99, speedup_high=speedup * 1.01
    )


def solved(name: str, speedup: float) -> ProblemResult:
    return ProblemResult(
        name=name,
        file=f"level1/{name}.py",
        state=ProblemState.FINISHED,
        session=name,
        workload_class="softmax",
        verdict="PASSED",
        correct=True,
        rounds=3,
        revision="r2",
        latency_ms=1.0,
        baselines=(over("eager", speedup), over("torch.compile", speedup / 2)),
        sol_fraction=0.5,
        tokens=1000,
        seconds=60.0,
    )


FAILED = ProblemResult(
    name="sort",
    file="level1/sort.py",
    state=ProblemState.DECLINED,
    reason="The author declined: a sort is not among the graphs it can write.",
)
RESULTS = (solved("relu", 2.0), solved("gelu", 0.5), FAILED)


@pytest.mark.parametrize("columns", ["60", "80", "100", "160"])
def test_the_terminals_table_fits_and_keeps_every_problem(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = campaign_lines(RESULTS, (("guide=off", RESULTS),))

    assert max(map(len, lines)) <= int(columns)
    for item in RESULTS:
        assert any(item.name in line for line in lines), item.name


def test_a_terminal_is_not_steered_by_what_a_problem_is_called():
    lines = campaign_lines([replace(FAILED, name="\x1b[2J", reason="\x1b]0;owned\x07", file="\x1b[2J.py")])

    assert "\x1b" not in "\n".join(lines)

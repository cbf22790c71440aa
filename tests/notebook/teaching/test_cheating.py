"""`%cutegen cheat` and `%cutegen scoreboard`: how far a cheat got, by which check, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Evaluation,
    Judged,
    NotJudged,
    NotJudgedReason,
    Tier,
    Verdict,
)
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.teaching.cheating import (
    depth_of,
    judge_own,
    judge_shipped,
    scoreboard_text,
    shipped,
    source_of,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def engine(one_template):
    made = EventLoopThread()
    yield made
    made.close()


def found(tier: Tier) -> CheckResult:
    return CheckResult(name="a", tier=tier, state=CheckState.FOUND)


def judged(verdict: Verdict, *checks: CheckResult, flags: tuple[Finding, ...] = ()) -> Evaluation:
    return Evaluation(
        outcome=Judged(verdict=verdict), summary="", device="simulator", checks=checks, findings=flags
    )


def test_the_depth_follows_from_verdict_checks_and_flags():
    flag = Finding(kind="writes-files", severity=Severity.FLAG, message="a")
    unjudged = NotJudged(reason=NotJudgedReason.UNSUPPORTED_OPCODE)
    assert depth_of(Evaluation(outcome=unjudged, summary="", device="")) == 0
    assert depth_of(judged(Verdict.COMPILE_FAILED)) == 0
    assert depth_of(judged(Verdict.SCREENED_OUT, found(Tier.A))) == 1
    assert depth_of(judged(Verdict.WRONG_VALUES, found(Tier.A), found(Tier.B))) == 2
    assert depth_of(judged(Verdict.EXITED)) == 2
    assert depth_of(judged(Verdict.WRONG_VALUES, found(Tier.B))) == 3
    assert depth_of(judged(Verdict.PASSED, flags=(flag,))) == 4
    assert depth_of(judged(Verdict.PASSED)) == 5


@pytest.mark.slow
def test_a_cheat_of_a_file_is_judged_and_its_deepest_result_stays_on_the_scoreboard(engine, folder):
    assert "No cheat of yours was judged yet" in scoreboard_text()
    mine = folder / "mine.py"
    mine.write_text(shipped("range_of_the_draw").source)
    deep = judge_own(engine, "exponential", "mine.py")
    assert (deep.depth, deep.verdict) == (3, "WRONG_VALUES")
    assert "caught by: stress inputs, which stops " in repr(deep)
    mine.write_text("x = 1")
    assert judge_own(engine, "exponential", "mine.py").depth <= 1
    assert (
        "3      exponential  mine.py  WRONG_VALUES  caught at the closer look (tier B)" in scoreboard_text()
    )


@pytest.mark.slow
@pytest.mark.long
def test_a_shipped_cheat_is_judged_and_leaves_no_score(engine):
    assert judge_shipped(engine, "event_patch").caught_by == ("harness unchanged",)
    assert "No cheat of yours was judged yet" in scoreboard_text()


def test_sources_of_cheats_and_problems_are_shown():
    text = source_of("range_of_the_draw")
    assert "value > 8.0" in text
    assert text.startswith('"""Takes every number above eight')
    assert text.partition("\n")[0].endswith('none of the drawn ones is. Problem: exponential."""')
    assert "caught:" not in text, "a student is asked what catches it"
    assert "class Model" in source_of("row_max")
    with pytest.raises(UsageError, match="there is no exploit 'nothing'"):
        source_of("nothing")


def test_a_wrong_request_gets_one_sentence(engine, folder):
    with pytest.raises(NotebookUsageError, match="does nothing unusual without a GPU"):
        judge_shipped(engine, "persisting_l2")
    with pytest.raises(UsageError, match="there is no problem 'relus'; there is argmax"):
        judge_own(engine, "relus", "mine.py")
    with pytest.raises(NotebookUsageError, match=r"missing\.py cannot be read"):
        judge_own(engine, "relu", "missing.py")
    (folder / ".cutegen").mkdir()
    (folder / ".cutegen" / "cheats.json").write_text("{")
    with pytest.raises(NotebookUsageError, match="holds no scoreboard that can be read"):
        judge_own(engine, "relu", "missing.py")
    assert (folder / ".cutegen" / "cheats.json").read_text() == "{"

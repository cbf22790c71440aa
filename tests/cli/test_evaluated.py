"""What a person is told of an evaluation fits a screen: what was found, what did not run and why, what ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.cli import main
from cutegen_nb.cli.evaluated import TESTED_PROPERTY, checks_lines, evaluated_text
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckResult, CheckState, Correctness, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.evaluator.catalog.catalog import CHECKS
from cutegen_nb.report.terminal.verdict import VerdictSetting
from cutegen_nb.testing import examples

RELU = "PyTorch's aten.relu ran inside forward."
CANDIDATE = Candidate(source=examples.kernel_source("one"), author="person")
SETTING = VerdictSetting(
    source=CANDIDATE.source, facts=examples.relu_facts(), device=examples.simulated_device()
)
ACCUSED = Evaluation(
    outcome=Judged(verdict=Verdict.CHEATED),
    summary=RELU,
    device="simulator (sm_80)",
    findings=(Finding(kind="torch-compute", message=RELU, line=4),),
    tier=Tier.B,
    exhibits=(Exhibit(kind="torch-compute", statement=RELU, inputs=("input 0, float32[2]: -1, 2",)),),
    checks=(
        CheckResult(name="outputs poisoned", tier=Tier.A, state=CheckState.RAN),
        CheckResult(name="PyTorch computation intercepted", tier=Tier.A, state=CheckState.FOUND, note="relu"),
        CheckResult(name="physical floor", tier=Tier.A, state=CheckState.NOT_RUN, note="it needs a GPU"),
        CheckResult(
            name="compute-sanitizer memcheck",
            tier=Tier.C,
            state=CheckState.NOT_RUN,
            note="it needs a GPU; the simulator checks every access itself",
        ),
        *(
            CheckResult(
                name=name, tier=Tier.B, state=CheckState.NOT_RUN, note="the evaluation ended before it"
            )
            for name in ("many calls", "stress inputs", "more seeds")
        ),
    ),
    candidate_digest="c" * 64,
    problem_digest="d" * 64,
    confinement="Landlock: own folder only.",
)


def everything(tier: Tier = Tier.C) -> Evaluation:
    """As long as it gets: every check, and six seeds."""
    checks = tuple(
        CheckResult(name=item.name, tier=item.tier, state=CheckState.NOT_RUN, note="it needs a GPU")
        if item.needs_gpu
        else CheckResult(name=item.name, tier=item.tier, state=CheckState.RAN)
        for item in CHECKS
    )
    seeds = Correctness(seeds=tuple(range(10**9, 10**9 + 6)), outputs=(), checks=())
    passed = replace(ACCUSED, outcome=Judged(verdict=Verdict.PASSED), findings=(), exhibits=(), tier=tier)
    return replace(passed, checks=checks, correctness=seeds)


def test_what_was_found_comes_first_then_what_did_not_run_by_reason_then_what_ran_by_question():
    assert checks_lines(ACCUSED) == [
        "Checks of tier B: 1 found something, 1 found nothing, 5 did not run.",
        "  FOUND SOMETHING: PyTorch computation intercepted",
        "  not run (it needs a GPU): physical floor; compute-sanitizer memcheck (the simulator checks every",
        "      access itself)",
        "  not reached: 3, as the evaluation ended before (--json names them)",
        "  computes the function (1 ran): outputs poisoned",
        "  SHA-256, in full with --json: candidate cccccccccccc; problem dddddddddddd",
        "  confined: Landlock: own folder only.",
    ]


def test_a_failure_that_no_check_of_the_list_found_is_not_called_nothing_found():
    crashed = replace(ACCUSED, outcome=Judged(verdict=Verdict.CRASHED), checks=ACCUSED.checks[:1])
    assert checks_lines(crashed)[0] == "Checks of tier B: 1 had run when it ended as CRASHED, 0 did not run."


def test_a_record_that_lists_no_checks_says_nothing_of_them():
    assert checks_lines(replace(ACCUSED, checks=())) == []


def test_verdict_and_evidence_stand_before_the_checks():
    text = evaluated_text(ACCUSED, CANDIDATE, SETTING, verbose=True)
    places = [
        text.index(words) for words in ("CHEATED at tier B", "evidence (torch-compute)", "Checks of tier B")
    ]
    assert places == sorted(places)
    assert places[0] == 0


def test_without_verbose_a_verdict_has_twelve_lines_at_most_and_names_the_way_to_the_rest():
    for found in (ACCUSED, everything(), replace(ACCUSED, findings=ACCUSED.findings * 30)):
        lines = evaluated_text(found, CANDIDATE, SETTING, passed_next="nothing").splitlines()
        assert len(lines) <= 12
        assert "`--verbose` lists every check" in lines[-1]
        assert not any(line.startswith("Checks of tier") for line in lines)


def test_every_check_belongs_to_a_question():
    assert {item.name for item in CHECKS} == set(TESTED_PROPERTY)


def test_the_list_of_checks_names_each_with_what_it_stops_and_folds(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["checks"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    listed = " ".join(out.split())
    assert all(f" {item.tier.value} {item.name}: {item.stops}" in listed for item in CHECKS)


@pytest.mark.parametrize("columns", ["", "80", "100", "200"])
def test_all_checks_there_are_fit_a_screenful(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = checks_lines(everything())
    assert max(map(len, lines)) <= min(int(columns or 100), 100)
    assert len(lines) <= 36 if columns == "80" else len(lines) <= 30


def test_a_narrow_terminal_folds_words_and_leaves_source_as_it_is(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = evaluated_text(ACCUSED, CANDIDATE, SETTING, verbose=True).splitlines()
    assert all(len(line) <= 40 or line.startswith("    ") for line in lines), lines

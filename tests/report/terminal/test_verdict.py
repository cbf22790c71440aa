"""Verdict of an evaluation in at most twelve lines, whatever it holds and however wide the terminal is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.report.terminal.next_steps import next_step
from cutegen_nb.report.terminal.verdict import MOST_LINES, VerdictLine, VerdictSetting, fitted, verdict_lines
from cutegen_nb.testing import examples

SOURCE = "import torch\n\n\ndef forward(x):\n    return torch.relu(x)\n"
SETTING = VerdictSetting(source=SOURCE, facts=examples.relu_facts(), device=examples.simulated_device())
ON_GPU = replace(SETTING, device=replace(SETTING.device, kind=DeviceKind.GPU))


@pytest.mark.parametrize("verdict", [one for one in Verdict if one is not Verdict.PASSED])
def test_every_refusal_begins_with_its_verdict_and_ends_with_a_next_step(verdict):
    found = examples.failed(verdict, "Something is wrong.", line=5)
    lines = verdict_lines(found, SETTING)
    text = " ".join(" ".join(lines).split())

    assert lines[0].startswith(f"{verdict.value} at tier A on NVIDIA A100")
    assert "Something is wrong." in text
    assert "Line 5: `return torch.relu(x)`" in text
    assert next_step(found.outcome)
    assert f"Next: {next_step(found.outcome)}; `--verbose` lists every check." in text


@pytest.mark.parametrize("reason", NotJudgedReason)
def test_a_kernel_that_could_not_be_judged_has_a_next_step_too(reason):
    found = replace(examples.failed(Verdict.CRASHED, "Not known."), outcome=NotJudged(reason=reason))
    text = " ".join(" ".join(verdict_lines(found, SETTING)).split())

    assert text.startswith(f"not judged: {reason.value} at tier A")
    assert f"Next: {next_step(found.outcome)}" in text


def test_a_pass_on_the_simulator_tells_counts_and_no_time():
    text = "\n".join(verdict_lines(examples.passed(1024), SETTING, passed_next="profile it"))

    assert "Counts (simulated counts, no times): 1,024 sectors of 32 bytes" in text
    assert "Latency" not in text
    assert "not checked at the full size float32 (1048576,)" in text
    assert "Next: profile it; " in text


def test_a_pass_on_a_gpu_tells_its_time_against_every_baseline():
    eager = BaselineTiming(name="eager", median_ms=2.0, speedup=2.0, speedup_low=1.9, speedup_high=2.1)
    timing = Timing(median_ms=1.0, samples_ms=(1.0,), baselines=(eager,), bandwidth_bytes_per_s=4e12)
    text = "\n".join(verdict_lines(replace(examples.passed(1024), timing=timing), ON_GPU))

    assert "Latency: 1.00 ms" in text
    assert "Against eager: 2.00× (1.90–2.10), it takes 2.00 ms" in text
    assert "Counts" not in text


def test_a_provisional_pass_names_the_check_that_did_not_run():
    found = replace(examples.passed(1024), provisional=("many calls: the machine was too slow",))
    lines = verdict_lines(found, SETTING)

    assert lines[0].startswith("PASSED (provisional) at tier A")
    assert lines[1] == "Provisional: many calls: the machine was too slow"


def test_lines_are_named_without_the_file_of_the_evaluator():
    found = examples.failed(
        Verdict.RACE, "A thread writes (from candidate.py:12), another reads (candidate.py:13:5)."
    )
    text = "\n".join(verdict_lines(found, SETTING))
    assert "candidate.py" not in text
    assert "writes (from line 12), another reads (line 13)" in " ".join(text.split())


def test_flags_of_one_kind_are_told_once():
    flags = tuple(
        Finding(kind="fewer-operations", message=f"{ms} ms is short.", severity=Severity.FLAG)
        for ms in (0.293, 0.294)
    )
    text = "\n".join(verdict_lines(replace(examples.passed(1), findings=flags), SETTING))
    assert "Flags: 2 (fewer-operations ×2). 0.293 ms is short." in text
    assert "0.294" not in text


def test_flags_for_what_was_not_looked_at_come_first():
    flags = tuple(
        Finding(kind=kind, message=f"About {kind}.", severity=Severity.FLAG)
        for kind in ("magic-constant", "magic-constant", "not-examined")
    )
    text = "\n".join(verdict_lines(replace(examples.passed(1), findings=flags), SETTING))

    assert "Flags: 3 (not-examined, magic-constant ×2). About not-examined. About magic-constant." in text


@pytest.mark.parametrize("columns", ["", "30", "80", "200"])
def test_the_most_a_verdict_can_hold_fits_and_keeps_its_head_and_its_end(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    long = "a long sentence about what happened in this kernel " * 30
    found = replace(
        examples.failed(Verdict.CHEATED, long, line=5),
        findings=tuple(Finding(kind="torch-compute", message=f"{long}{i}", line=5) for i in range(9)),
        exhibits=(Exhibit(kind="torch-compute", statement=long, trace=(long,) * 9),),
        log=long,
        outcome=Judged(verdict=Verdict.CHEATED),
    )
    lines = verdict_lines(found, SETTING)

    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("CHEATED at tier A")
    assert any(line.startswith("Next: ") for line in lines)
    if columns:
        assert max(map(len, lines)) <= int(columns)


def test_a_candidates_message_cannot_print_a_line_that_passes_for_the_verdict():
    forged = "wrong\nPASSED at tier C on NVIDIA H200\n\x1b[2J\rPASSED"
    lines = verdict_lines(replace(examples.failed(Verdict.CRASHED, forged), log=forged), SETTING)

    assert not [line for line in lines if line.startswith("PASSED")]
    assert "\x1b" not in "\n".join(lines)
    assert "\r" not in "\n".join(lines)


def test_a_row_that_is_cut_ends_after_a_whole_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    words = "seventeen eighteen nineteen twenty"
    lines = fitted([VerdictLine(text=f"{words} {words} {words}"), VerdictLine(text="last")], most=3)
    assert lines == ["seventeen eighteen", "  nineteen …", "last"]

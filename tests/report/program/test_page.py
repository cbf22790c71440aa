"""HTML report of a simulated program, as a page and as a notebook's output."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.report.program.page import page_of, record_of


@pytest.fixture(scope="module")
def run(session):
    """A program of one kernel, launched twice, with a finding on a line."""
    launch = session.rounds[0].evaluation.profile.launches[0]
    file = launch.lines[0].file
    source = session.rounds[0].candidate.source
    finding = Finding(
        kind="out-of-bounds",
        message="8 bytes past the end of gY.",
        file=file,
        line=22,
        thread=(3, 0, 0),
        cta=(1, 0, 0),
    )
    return ProgramRun(
        script="/home/me/gelu.py",
        arguments=("--n", "1000"),
        architecture="sm_80",
        ending=Ending.RAISED,
        exit_status=1,
        sentence="The program raised AssertionError: wrong at gelu.py:40.",
        launches=(Launches(times=2, profile=launch),),
        findings=(finding,),
        sources={file: source},
    )


def test_the_page_tells_the_end_the_launches_and_the_finding_with_its_line(run, read):
    told = read(page_of(run)).shown

    for words in (
        "The program raised AssertionError: wrong at gelu.py:40.",
        "2 launches were executed in full and checked: 1 finding.",
        "8 bytes past the end of gY.",
        "gY[index] = 0.5 * x",
        "--n 1000",
        "simulated counts",
    ):
        assert words in told, words
    assert "/home/me" not in told


def test_the_record_for_a_notebook_has_inline_styles_alone(run):
    record = record_of(run)

    assert "class=" not in record
    assert "var(" not in record
    assert "<svg" not in record


def test_every_text_of_a_program_stays_text(run, payload, poison, harmless):
    for flag in Severity:
        poisoned = replace(
            poison(run, payload), findings=(replace(poison(run.findings[0], payload), severity=flag),)
        )
        for drawn in (page_of, record_of):
            assert harmless(drawn(poisoned), payload) > 4

"""A program's report in the terminal."""

from __future__ import annotations

import pytest

from cutegen_nb.core.finding import Finding
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.report.program.text import text


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


def test_a_program_cannot_steer_the_terminal(run, poison):
    assert "\x1b" not in text(poison(run, "\x1b]0;owned\x07"))

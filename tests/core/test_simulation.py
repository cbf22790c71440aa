"""Runs of whole programs: launches that add up, findings that decide."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun

ONE, TWO = Counters(branches=1), Counters(branches=2)


def launch(*lines, **changed):
    plain = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=ONE, lines=lines,
        gmem_distinct_sectors=8,
    )  # fmt: skip
    return replace(plain, **changed)


def line(number, counters=ONE, file="a.py"):
    return LineCounters(file=file, line=number, counters=counters)


def test_launches_of_one_kernel_add_up_line_by_line():
    first = Launches(times=1, profile=launch(line(3), line(5)))
    both = first.and_one_more(launch(line(5, TWO), line(4, file="b.py"), grid=(9, 1, 1)))
    assert both.times == 2
    assert both.profile.counters == TWO
    assert both.profile.gmem_distinct_sectors == 16
    assert both.profile.grid == (1, 1, 1)
    assert [(item.file, item.line, item.counters.branches) for item in both.profile.lines] == [
        ("a.py", 3, 1), ("a.py", 5, 3), ("b.py", 4, 1),
    ]  # fmt: skip


def test_a_run_counts_its_launches_and_says_whether_all_ran_whole():
    whole, part = Launches(times=3, profile=launch()), Launches(times=1, profile=launch(ctas_run=2))
    run = ProgramRun(
        script="a.py", arguments=(), architecture="sm_80", ending=Ending.FINISHED, exit_status=0,
        launches=(whole,),
    )  # fmt: skip
    assert (run.launch_count, run.sampled, run.decided) == (3, False, False)
    assert replace(run, launches=(whole, part)).sampled
    flag = Finding(kind="f", message=".", severity=Severity.FLAG)
    assert not replace(run, findings=(flag,)).decided
    assert replace(run, findings=(flag, Finding(kind="race", message="."))).decided
    assert run.profile.counters == ONE

"""An evaluation as text for the next prompt: verdict, counts at full size, times, whose work it was, the log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Verdict, WorkShare
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Counters, LaunchProfile
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.prompting.feedback import counters_text, evaluation_text, source_line
from cutegen_nb.testing import examples

CANDIDATE = Candidate(source="import cutlass\n\n\nclass ModelNew:\n    pass\n", author="x")


def told(evaluation, stage=None) -> str:
    return evaluation_text(evaluation, CANDIDATE, stage)


def launch(sectors: int) -> LaunchSample:
    counters = Counters(
        gmem_load_sectors=sectors, gmem_ideal_sectors=sectors, gmem_requests=7, warp_instructions=9
    )
    profile = LaunchProfile(
        kernel="k", grid=(4096, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, counters=counters
    )
    return LaunchSample(profile=profile, ctas=8)


FULL = "Counts of one call at full size (a sample of its CTAs; 2 launches), from which time is estimated:\n- 3,000,000 global"
RUN = "Counts of one call (simulated counts, sm_80; 1 launch) at the size that is run, which decide:"


def test_counts_at_full_size_stand_in_place_of_those_that_were_run_until_lines_are_shown():
    ran = examples.passed(100)
    sampled = replace(ran, full_size=FullSizeSample(launches=(launch(1_000_000), launch(2_000_000))))
    assert FULL in told(sampled, Stage.STRUCTURE)
    assert "at the size that is run" not in told(sampled, Stage.STRUCTURE)
    assert RUN in told(ran, Stage.STRUCTURE)
    for stage in (Stage.PROFILE, Stage.TUNE, None):
        text = told(sampled, stage)
        assert FULL in text
        assert (
            "Counts of one call at the size that is run (simulated counts, sm_80):\n- kernel `kernel`" in text
        )
    missing = replace(ran, full_size=FullSizeSample(missing="it uses atomics"))
    assert RUN in told(missing, Stage.STRUCTURE)


def test_counts_that_are_zero_are_left_out_and_others_have_their_unit():
    few = Counters(gmem_load_sectors=5, gmem_ideal_sectors=4, gmem_requests=2, warp_instructions=3)
    start = "5 global 32-byte sectors (4 would carry the bytes), 2 global requests, 3 warp instructions"
    assert counters_text(few) == start
    more = replace(few, smem_wavefronts=1000, barriers=2, branches=10, divergent_branches=1)
    assert counters_text(more) == (
        f"{start}, 1,000 shared wavefronts, 2 barriers, 1 divergent of 10 branches"
    )


def test_a_failed_kernel_is_told_no_counts():
    failed = replace(examples.failed(Verdict.RACE, "A race.", line=4), profile=examples.passed(100).profile)
    assert "sectors" not in told(failed)


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, ["- median 0.25 ms (cold L2), by a pair of events around each call"]),
        (
            {"method": "graph", "host_ms": 0.01},
            [
                "- median 0.25 ms (cold L2), by replays of a CUDA graph",
                "- host, queueing one call: 0.01 ms (not in it)",
            ],
        ),
        (
            {"host_ms": 0.1, "host_included": True, "not_by_graph": "it waits for the device"},
            [
                "- median 0.25 ms (cold L2), by a pair of events around each call",
                "- no CUDA graph, although it is under 10 µs: it waits for the device",
                "- host, queueing one call: 0.1 ms (the latency holds it: the call waits for the device)",
            ],
        ),
    ],
)
def test_times_say_how_they_were_taken(changes, lines):
    timing = Timing(median_ms=0.25, samples_ms=(0.25,), baselines=(), bandwidth_bytes_per_s=1e12, **changes)
    found = told(replace(examples.passed(100), timing=timing), Stage.STRUCTURE).splitlines()
    assert found[1 : 1 + len(lines)] == lines


def test_a_time_is_compared_with_each_baseline_and_the_best_before():
    def against(name: str) -> BaselineTiming:
        return BaselineTiming(name=name, median_ms=0.5, speedup=2.0, speedup_low=1.9, speedup_high=2.125)

    timing = Timing(
        median_ms=0.25, samples_ms=(0.25,), baselines=(against("eager"),), bandwidth_bytes_per_s=1e12,
        rival=against("the best before"),
    )  # fmt: skip
    text = told(replace(examples.passed(100), timing=timing))
    for name in ("eager", "the best before"):
        assert f"- 2× against {name} (0.5 ms), 95 % interval 1.9× to 2.12×\n" in text


def test_work_by_others_is_told_from_a_sixteenth_on():
    passed = examples.passed(100)
    shared = replace(passed, work=WorkShare(own_fraction=0.5, library_fraction=0.5, host_fraction=0.0))
    assert (
        "- Whose work it is: the candidate's kernels stand for 50%, PyTorch and libraries for 50%."
        in told(shared)
    )
    own = replace(passed, work=WorkShare(own_fraction=0.99, library_fraction=0.01, host_fraction=0.0))
    assert "Whose work" not in told(own)


def test_findings_that_decide_come_first_and_at_most_eight_are_told():
    flags = tuple(Finding(kind=f"flag-{n}", message=f"Flag {n}.", severity=Severity.FLAG) for n in range(9))
    decides = Finding(kind="race", message="Two threads write.", line=4)
    found = replace(examples.failed(Verdict.RACE, "A race."), findings=(*flags, decides))
    lines = [line for line in told(found).splitlines() if line.startswith("- ")]
    assert lines[0] == "- race: Two threads write."
    assert lines[1:] == [f"- flag-{n}: Flag {n}." for n in range(7)]


def test_the_log_is_told_of_a_failure_alone():
    failed = replace(examples.failed(Verdict.CRASHED, "It crashed."), log="state 3\nstate 3\nstate 4\n")
    assert told(failed).endswith("It printed, at the end:\n    state 3\n    state 4\n")
    assert "state" not in told(replace(examples.passed(100), log="state 3\n"))


def test_a_line_that_the_file_has_not_is_empty():
    assert source_line(CANDIDATE.source, 4) == "class ModelNew:"
    assert source_line(CANDIDATE.source, 0) == source_line(CANDIDATE.source, 99) == ""

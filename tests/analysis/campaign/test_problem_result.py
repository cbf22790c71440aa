"""A problem's row, from its recorded outcome and its session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.campaign.problem_result import label, result_of
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.round import Usage
from cutegen_nb.core.search.campaign import CampaignEntry, ProblemState
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing import examples

H200 = find_target("H200")
SESSION = replace(examples.session_of(Relation.FIRST, Relation.LESS_WORK), stopped="Budget spent.")
ENTRY = CampaignEntry(
    name="relu", file="level1/19_ReLU.py", digest="", state=ProblemState.OVER_BUDGET, sentence="3 rounds."
)


def result(entry=ENTRY, session=SESSION):
    return result_of("relu", "level1/19_ReLU.py", entry, session, H200)


def timed(median_ms=0.01, **changed):
    baseline = BaselineTiming(name="eager", median_ms=0.02, speedup=2.0, speedup_low=1.9, speedup_high=2.1)
    timing = Timing(median_ms=median_ms, samples_ms=(), baselines=(baseline,), bandwidth_bytes_per_s=1.5e12)
    return replace(examples.passed(10), timing=timing, **changed)


def with_last(evaluation, session=SESSION):
    """The session whose last candidate was evaluated so."""
    *rest, last = session.rounds
    attempt = replace(last.attempts[0], evaluation=evaluation)
    return replace(session, rounds=(*rest, replace(last, attempts=(attempt,))))


def test_a_problem_without_a_session_is_waiting_or_what_was_recorded():
    assert result(None, None).state is ProblemState.WAITING
    assert result(None, SESSION).state is ProblemState.UNFINISHED
    declined = replace(ENTRY, state=ProblemState.DECLINED, sentence="No such operator.")
    found = result(declined, None)
    assert (found.state, found.reason, found.correct) == (
        ProblemState.DECLINED, "No such operator.", False,
    )  # fmt: skip


def test_a_session_gives_class_verdict_best_and_cost():
    found = result()
    assert (found.correct, found.verdict, found.revision) == (True, "PASSED", "r1")
    assert (found.workload_class, found.rounds, found.tokens) == ("element-wise", 2, 14)
    assert (found.seconds, found.gpu_s, found.dollars) == (3.0, 0.0, None)
    assert found.reason == "3 rounds."
    assert result(None, SESSION).reason == "Budget spent."
    paid = replace(
        SESSION.rounds[0].attempts[0].reply, usage=Usage(input_tokens=1, output_tokens=1, cost_usd=0.25)
    )
    first = replace(SESSION.rounds[0], attempts=(replace(SESSION.rounds[0].attempts[0], reply=paid),))
    assert result(session=replace(SESSION, rounds=(first, SESSION.rounds[1]))).dollars == 0.25


def test_a_session_where_nothing_passed_tells_the_last_verdict():
    wrong = with_last(examples.failed(Verdict.WRONG_VALUES, "Wrong."))
    found = result(session=replace(wrong, rounds=wrong.rounds[1:]))
    assert (found.correct, found.verdict, found.revision, found.best_s) == (False, "WRONG_VALUES", "", None)


def test_a_provisional_best_is_not_correct():
    part = with_last(replace(examples.passed(10), provisional=("other shapes: out of time",)))
    assert result(session=part).revision == "r0"
    assert result(session=replace(part, rounds=part.rounds[1:])).correct is False


def test_a_timed_best_has_latency_speedups_and_its_share_of_the_roof():
    missing = Finding(
        kind="no-baseline", message="Baseline torch.compile could not be made: out of memory",
        severity=Severity.FLAG,
    )  # fmt: skip
    gpu = replace(SESSION, device=replace(SESSION.device, kind=DeviceKind.GPU))
    evaluation = timed(findings=(missing,), library=(LibraryFamily.CONV,))
    found = result(session=with_last(evaluation, gpu))
    assert (found.latency_ms, found.best_s) == (0.01, pytest.approx(1e-5))
    assert found.speedup("eager") == 2.0
    assert found.speedup("torch.compile") is None
    assert found.missing == ("torch.compile",)
    assert found.library == "conv"
    assert found.verdict == "PASSED with PyTorch's conv"
    # 8 MiB at 1.555 TB/s are 5.39 µs, of 10 µs measured.
    assert found.sol_fraction == pytest.approx(8 * 2**20 / 1.555e12 / 1e-5)
    assert found.estimate is None


def test_times_of_another_machine_count_where_they_were_taken_in():
    best = SESSION.rounds[1].candidate.digest
    elsewhere = Measurement(
        job="j", candidate_digest=best, evaluation=timed(0.02), device=replace(SESSION.device, kind=DeviceKind.GPU),
        comparison=None, measured_at="", absorbed_at="",
    )  # fmt: skip
    assert result(session=replace(SESSION, measurements=(elsewhere,))).latency_ms == 0.02


def test_a_problem_is_named_by_its_file():
    assert label("level1/19_ReLU.py") == "19_ReLU"

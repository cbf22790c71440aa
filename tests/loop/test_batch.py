"""Candidates go to another machine as jobs, and what comes back belongs to its session and decides its best."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.batch import Result
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Tier, Verdict
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.round import Action
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.loop.batch import absorb, pending_jobs
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

H200 = replace(examples.simulated_device(), kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a")
A10 = replace(H200, name="NVIDIA A10", architecture="sm_86")


def timed(ms: float) -> Evaluation:
    eager = BaselineTiming(
        name="eager", median_ms=10.0, speedup=10 / ms, speedup_low=9.99 / ms, speedup_high=10.01 / ms
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,), baselines=(eager,), bandwidth_bytes_per_s=3e12)
    return replace(passed(1000), profile=None, timing=timing)


def rejected(item):
    return replace(item, decisions=tuple(replace(one, action=Action.REJECT) for one in item.decisions))


@pytest.fixture
def session():
    """Four rounds, of which the third passed and was rejected."""
    made = examples.session_of(Relation.FIRST, Relation.LESS_WORK, Relation.MORE_WORK, Relation.LESS_WORK)
    first, second, third, last = made.rounds
    return replace(made, rounds=(first, second, rejected(third), last))


def answered(session, job, evaluation, device=H200) -> Result:
    return Result(
        job=job.digest,
        session=job.session,
        revision=job.revision,
        problem_digest=session.problem.digest,
        candidate_digest=job.candidate.digest,
        tier=job.tier,
        evaluation=evaluation,
        device=device,
        measured_at="2026-01-02T00:00:00+00:00",
        environment={"torch": "2.13"},
    )


def absorbed(session, results, now="2026-01-03T00:00:00+00:00"):
    found = absorb(session, results, now)
    return replace(session, measurements=(*session.measurements, *found.measurements)), found


def test_jobs_are_made_for_the_approved_kernels_each_with_the_one_before_it_as_rival(session):
    jobs = pending_jobs(session)
    assert [job.revision for job in jobs] == ["r0", "r1", "r3"]
    assert [job.rival and job.rival.digest for job in jobs] == [
        None,
        session.rounds[0].candidate.digest,
        session.rounds[1].candidate.digest,
    ]
    assert {job.tier for job in jobs} == {Tier.B}
    assert all(job.problem == session.problem for job in jobs)


def test_every_kernel_that_passed_may_be_asked_for(session):
    assert [job.revision for job in pending_jobs(session, every=True)] == ["r0", "r1", "r2", "r3"]


def test_the_same_source_is_one_job(session):
    twice = replace(session, rounds=(*session.rounds, replace(session.rounds[3], number=4)))
    assert [job.revision for job in pending_jobs(twice)] == ["r0", "r1", "r3"]


def test_what_was_timed_is_pending_no_more_unless_it_is_asked_for_again(session):
    jobs = pending_jobs(session)
    after, found = absorbed(session, [answered(session, jobs[0], timed(1.0))])
    assert len(found.measurements) == 1
    assert [job.revision for job in pending_jobs(after)] == ["r1", "r3"]
    assert [job.revision for job in pending_jobs(after, again=True)] == ["r0", "r1", "r3"]
    refuted, _ = absorbed(session, [answered(session, jobs[0], failed(Verdict.WRONG_VALUES, "Wrong."))])
    assert [job.revision for job in pending_jobs(refuted)] == ["r1", "r3"]


def test_measurements_decide_which_revision_is_best_whatever_the_counts_said(session):
    jobs = pending_jobs(session)
    assert session.best.number == 3
    results = [answered(session, job, timed(ms)) for job, ms in zip(jobs, (1.0, 0.5, 0.8), strict=True)]
    # In any order: the rounds decide.
    after, found = absorbed(session, results[::-1])
    assert [item.comparison.relation for item in found.measurements] == [
        Relation.FIRST,
        Relation.FASTER,
        Relation.SLOWER,
    ]
    assert [item.candidate_digest for item in found.measurements] == [job.candidate.digest for job in jobs]
    assert after.best.number == 1
    assert found.measurements[0].absorbed_at == "2026-01-03T00:00:00+00:00"


def test_a_kernel_that_fails_elsewhere_is_no_longer_the_best(session):
    jobs = pending_jobs(session)
    after, found = absorbed(session, [answered(session, jobs[-1], failed(Verdict.WRONG_VALUES, "Wrong."))])
    assert found.measurements[0].comparison is None
    assert after.best.number == 1


def test_devices_are_compared_each_with_its_own(session):
    jobs = pending_jobs(session)
    results = [
        answered(session, jobs[0], timed(1.0)),
        answered(session, jobs[0], timed(4.0), A10),
        answered(session, jobs[1], timed(2.0), A10),
    ]
    _, found = absorbed(session, results)
    assert [(item.device.name, item.comparison.relation) for item in found.measurements] == [
        ("NVIDIA H200", Relation.FIRST),
        ("NVIDIA A10", Relation.FIRST),
        ("NVIDIA A10", Relation.FASTER),
    ]


def test_a_result_is_imported_once(session):
    jobs = pending_jobs(session)
    result = answered(session, jobs[0], timed(1.0))
    after, first = absorbed(session, [result, result])
    assert (len(first.measurements), first.repeated) == (1, 1)
    _, again = absorbed(after, [result])
    assert (again.measurements, again.repeated) == ((), 1)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"problem_digest": "0" * 64}, "it was evaluated against another problem (SHA-256 000000000000…"),
        ({"candidate_digest": "1" * 64}, "no round has its candidate (SHA-256 111111111111…)"),
        (
            {"evaluation": replace(timed(1.0), candidate_digest="2" * 64)},
            "it names candidate ",
        ),
        (
            {"evaluation": replace(timed(1.0), library=(LibraryFamily.CONV,))},
            "it passed with PyTorch's conv, which this session's problem does not allow",
        ),
    ],
)
def test_a_result_of_no_job_of_this_session_is_refused_with_the_reason(session, changed, sentence):
    result = replace(answered(session, pending_jobs(session)[1], timed(1.0)), **changed)
    after, found = absorbed(session, [result])
    assert after == session
    (refused,) = found.refused
    assert refused.startswith(f"r1 of relu: {sentence}")


def test_an_evaluator_that_failed_elsewhere_leaves_its_job_pending(session):
    job = pending_jobs(session)[1]
    result = replace(answered(session, job, None, None), error="no GPU was free")
    after, found = absorbed(session, [result])
    assert found.failed == ("r1 of relu: no GPU was free; its job is still pending",)
    assert len(pending_jobs(after)) == 3

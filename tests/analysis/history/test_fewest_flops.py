"""Fewest operations that a kernel of a session was counted to do, which move its roofline zone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.hardware.zone import CountedFlops, ZoneName, zone
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.core.profile import Counters, ProfileSource
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing import examples

FULL = 1 << 20
"""FLOPs of the reference at full size."""
SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK)


def counted(flops, *, sampled=False, source=ProfileSource.SIMULATED, **changed):
    evaluation = examples.passed(10)
    (launch,) = evaluation.profile.launches
    launch = replace(launch, counters=Counters(flops={"cuda.f32": flops}))
    profile = replace(evaluation.profile, launches=(launch,), source=source)
    sample = FullSizeSample(launches=(LaunchSample(profile=launch, ctas=1),)) if sampled else None
    return replace(evaluation, profile=None if sampled else profile, full_size=sample, **changed)


def with_kernel(evaluation, session=SESSION):
    *rest, last = session.rounds
    attempt = replace(last.attempts[0], evaluation=evaluation)
    return replace(session, rounds=(*rest, replace(last, attempts=(attempt,))))


def scaled(session):
    rewrites = (Rewrite(line=1, column=0, full=8, scaled=4),)
    facts = session.facts
    return replace(session, facts=replace(facts, scaled=replace(facts.scaled, rewrites=rewrites)))


@pytest.mark.parametrize(("flops", "found"), [(FULL // 2, FULL // 2), (FULL // 2 + 1, None), (1, 1)])
def test_a_kernel_with_half_of_the_references_operations_shows_another_algebra(flops, found):
    expected = CountedFlops(flops=found, kernel="r1") if found else None
    assert fewest_flops(with_kernel(counted(flops, sampled=True))) == expected


def test_counts_of_a_reduced_size_tell_nothing_and_those_of_a_gpu_do():
    small = scaled(with_kernel(counted(1)))
    assert fewest_flops(small) is None
    assert fewest_flops(scaled(with_kernel(counted(1, source=ProfileSource.NSIGHT)))).flops == 1
    assert fewest_flops(scaled(with_kernel(counted(1, sampled=True)))).flops == 1


@pytest.mark.parametrize(
    "evaluation",
    [
        examples.failed(Verdict.WRONG_VALUES, "Wrong."),
        counted(1, provisional=("other shapes: out of time",)),
        counted(1, library=(LibraryFamily.CONV,)),
    ],
)
def test_what_does_not_stand_or_had_help_does_not_count(evaluation):
    assert fewest_flops(with_kernel(evaluation)) is None


def test_a_kernel_that_failed_elsewhere_does_not_count():
    session = with_kernel(counted(1, sampled=True))
    failed = Measurement(
        job="j", candidate_digest=session.rounds[1].candidate.digest,
        evaluation=examples.failed(Verdict.WRONG_VALUES, "Wrong."), device=session.device, comparison=None,
        measured_at="", absorbed_at="",
    )  # fmt: skip
    assert fewest_flops(replace(session, measurements=(failed,))) is None


def test_the_zone_follows_the_fewest_operations_and_names_their_kernel():
    facts = examples.relu_facts()
    heavy = replace(facts, full=replace(facts.full, flops=1000 * facts.full.least_bytes))
    device = SESSION.device
    plain = zone(heavy, device)
    fewer = zone(heavy, device, CountedFlops(flops=facts.full.least_bytes, kernel="r3"))
    assert (plain.name, plain.after) == (ZoneName.COMPUTE, "")
    assert (fewer.name, fewer.after, fewer.intensity) == (ZoneName.MEMORY, "r3", 1.0)
    assert "after the algebra of r3" in fewer.text()
    more = zone(heavy, device, CountedFlops(flops=10 * heavy.full.flops, kernel="r3"))
    assert more == plain

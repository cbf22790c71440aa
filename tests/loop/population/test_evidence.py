"""Evidence on one kernel of a population, as a request for a strategy tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target, with_figures
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.strategy import Alignment, Optimisation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.loop.population.evidence import line_to, member_evidence, shown_optimisations
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import passed

SIMULATOR = with_figures(examples.simulated_device())
GPU = replace(examples.simulated_device(), kind=DeviceKind.GPU)


def timed(ms: float) -> Evaluation:
    eager = BaselineTiming(
        name="eager", median_ms=2.0, speedup=2 / ms, speedup_low=1.99 / ms, speedup_high=2.01 / ms
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,), baselines=(eager,), bandwidth_bytes_per_s=1.5e12)
    return replace(passed(1000), profile=None, timing=timing)


def sampled(sectors: int) -> Evaluation:
    found = passed(sectors)
    launch = replace(found.profile.launches[0], grid=(100_000, 1, 1))
    sample = LaunchSample(profile=launch, ctas=4, first_touch_sectors=sectors)
    return replace(found, full_size=FullSizeSample(launches=(sample,)))


@pytest.fixture
def session():
    """A first kernel and one that descends from it by a strategy."""
    made = examples.evolved_session()
    first, item, *_ = made.rounds

    def play(before, after, **changes):
        prompt = replace(item.attempts[0].prompt, parent=first.candidate)
        rounds = (
            replace(first, attempts=(replace(first.attempts[0], evaluation=before),)),
            replace(item, attempts=(replace(item.attempts[0], prompt=prompt, evaluation=after),)),
        )
        return replace(made, rounds=rounds, epochs=(), **changes)

    return play


def test_a_kernel_that_was_timed_stands_against_the_first_and_against_eager(session):
    made = session(timed(1.0), timed(0.5), device=GPU)
    assert member_evidence(made, made.rounds[1]).standing == (
        "Measured 500 µs (median); 2.00× as fast as r0, the first kernel; "
        "4.00× (3.98–4.02) against PyTorch eager."
    )
    assert member_evidence(made, made.rounds[0]).standing == (
        "Measured 1.00 ms (median); it is the first kernel; 2.00× (1.99–2.01) against PyTorch eager."
    )


def test_a_kernel_that_was_estimated_says_so_and_for_which_gpu(session):
    made = session(sampled(8_000_000), sampled(4_000_000), device=SIMULATOR)
    standing = member_evidence(made, made.rounds[1]).standing
    assert standing.startswith("Estimated ")
    assert " on NVIDIA H200 (" in standing
    assert "× as fast as r0, the first kernel." in standing
    assert standing.endswith("not measured; nothing is known against PyTorch eager.")
    elsewhere = member_evidence(made, made.rounds[1], find_target("A100")).standing
    assert " on NVIDIA A100 (" in elsewhere


def test_a_time_of_another_machine_counts_before_an_estimate(session):
    made = session(sampled(8_000_000), sampled(4_000_000))
    digest = made.rounds[1].candidate.digest
    measured = Measurement(
        job="j", candidate_digest=digest, evaluation=timed(0.25), device=GPU, comparison=None,
        measured_at="", absorbed_at="",
    )  # fmt: skip
    standing = member_evidence(replace(made, measurements=(measured,)), made.rounds[1]).standing
    assert standing.startswith("Measured 250 µs (median)")


def test_what_a_kernel_carries_out_and_lacks_is_told_with_its_figures(session):
    wasteful = passed(32_000)
    launch = wasteful.profile.launches[0]
    counters = replace(launch.counters, gmem_ideal_sectors=1_000)
    wasteful = replace(
        wasteful, profile=replace(wasteful.profile, launches=(replace(launch, counters=counters),))
    )
    made = session(wasteful, passed(1_000))
    before, after = (member_evidence(made, item) for item in made.rounds)
    assert any(text.startswith("coalesced: ") for text in before.lacking)
    assert any(text.startswith("coalesced: ") for text in after.in_force)
    # A ReLU uses each element once, so that nothing is to be blocked or multiplied.
    assert not [text for text in (*before.lacking, *after.lacking) if text.startswith(("tensor", "register"))]
    shown = shown_optimisations(made, made.rounds[1], made.rounds[0])
    assert {line["new"] for line in shown.lines if str(line["text"]).startswith("coalesced")} == {True}


def test_a_claim_of_which_nothing_tells_is_named_until_counters_tell(session):
    claims = (Optimisation.PIPELINED, Optimisation.COALESCED)
    made = session(timed(1.0), timed(0.5), device=GPU)
    aligned = Alignment(statement="It does.", by="test", not_told=claims)
    made = replace(made, rounds=(made.rounds[0], replace(made.rounds[1], aligned=aligned)))
    assert member_evidence(made, made.rounds[1]).not_told == ("pipelined", "coalesced")
    counted = replace(made.rounds[1].attempts[0].evaluation, profile=passed(1_000).profile)
    known = replace(made.rounds[1], attempts=(replace(made.rounds[1].attempts[0], evaluation=counted),))
    later = replace(made, rounds=(made.rounds[0], known))
    assert "coalesced" not in member_evidence(later, later.rounds[1]).not_told


def test_the_line_of_a_kernel_is_told_in_the_words_of_its_alignment(session):
    made = session(passed(1000), passed(500))
    (applied,) = line_to(made, made.rounds[1])
    assert (applied.name, applied.statement) == (
        made.rounds[1].strategy.name,
        made.rounds[1].aligned.statement,
    )
    assert applied.statement != made.rounds[1].strategy.statement


def test_counts_at_full_size_come_before_those_of_the_size_that_ran(session):
    made = session(passed(1000), sampled(4_000_000))
    small, full = (member_evidence(made, item).evaluation for item in made.rounds)
    assert "Counts of one call at the smaller size that is run (simulated counts), 1 launch:" in small
    assert "Counts of one call at full size, 1 launch:" in full
    assert "- kernel: grid (100000, 1, 1)" in full
    assert "4,000,000 global 32-byte sectors" in full

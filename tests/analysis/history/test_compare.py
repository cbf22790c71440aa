from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import (
    Access,
    Counters,
    KernelResources,
    LaunchProfile,
    Profile,
    ProfileSource,
)
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.timing import BaselineTiming, Timing

WORK = Workload(graph=Graph(inputs=(), parameters=(), nodes=(), outputs=()), flops=1000, least_bytes=32_000)
FACTS = ProblemFacts(workload_class=WorkloadClass.ELEMENTWISE, full=WORK, scaled=WORK, dtype="float32")


def counted(sectors: int, wavefronts: int = 0, instructions: int = 10_000) -> Evaluation:
    counters = Counters(gmem_load_sectors=sectors, smem_wavefronts=wavefronts, warp_instructions=instructions)
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=counters
    )
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="",
        device="sm_90a",
        profile=Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=(launch,)),
    )


def timed(speedup: float, spread: float = 0.005, name: str = "eager") -> Evaluation:
    baseline = BaselineTiming(
        name=name,
        median_ms=3.0,
        speedup=speedup,
        speedup_low=speedup * (1 - spread),
        speedup_high=speedup * (1 + spread),
    )
    timing = Timing(median_ms=3.0 / speedup, samples_ms=(), baselines=(baseline,), bandwidth_bytes_per_s=4e12)
    return Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="", device="H200", timing=timing)


@pytest.mark.parametrize(
    ("parent", "candidate", "relation", "words"),
    [
        (counted(2000), counted(1000), Relation.LESS_WORK, "global sectors 2,000 → 1,000 (−50.0 %)"),
        (counted(1000), counted(2000), Relation.MORE_WORK, "global sectors 1,000 → 2,000 (+100.0 %)"),
        (counted(1000), counted(1004), Relation.SAME_WORK, "within 0.5 %"),
        (counted(1000, 800), counted(1000, 400), Relation.LESS_WORK, "wavefronts 800 → 400"),
        (counted(1000, 0, 900), counted(1000, 0, 1000), Relation.MORE_WORK, "warp instructions 900 → 1,000"),
        (counted(1000, 0, 900), counted(1001, 64, 100), Relation.MORE_WORK, "wavefronts 0 → 64"),
    ],
)
def test_counts_are_compared_in_order_of_cost(parent, candidate, relation, words):
    found = compare(parent, candidate, FACTS, against="abc")
    assert found.relation is relation
    assert words in found.reason
    assert found.against == "abc"


def test_fewer_sectors_win_over_more_instructions():
    assert compare(counted(2000, 0, 100), counted(1000, 0, 900), FACTS).relation is Relation.LESS_WORK


def test_counts_are_never_called_faster():
    for sectors in (1, 500, 1000, 4000):
        found = compare(counted(1000), counted(sectors), FACTS)
        assert "fast" not in f"{found.relation} {found.reason}"
        assert "slow" not in f"{found.relation} {found.reason}"


def test_bytes_over_least_are_told():
    assert "bytes moved 1.00× the least" in compare(counted(2000), counted(1000), FACTS).reason


def test_without_a_parent_it_is_the_first():
    found = compare(None, counted(1000), FACTS)
    assert found.relation is Relation.FIRST
    assert "1,000 global sectors" in found.reason


def test_a_failed_candidate_is_not_compared():
    failed = replace(counted(10), outcome=Judged(verdict=Verdict.WRONG_VALUES))
    assert compare(counted(1000), failed, FACTS).relation is Relation.CANNOT_TELL
    assert compare(failed, counted(1000), FACTS).relation is Relation.FIRST


@pytest.mark.parametrize(
    ("before", "after", "relation"),
    [
        (timed(1.0), timed(1.5), Relation.FASTER),
        (timed(1.5), timed(1.0), Relation.SLOWER),
        (timed(1.0, 0.05), timed(1.04, 0.05), Relation.CANNOT_TELL),
        (timed(1.0, 0.0001), timed(1.005, 0.0001), Relation.CANNOT_TELL),
        (timed(1.0), timed(2.0, name="torch.compile"), Relation.CANNOT_TELL),
        (timed(1.0), counted(10), Relation.CANNOT_TELL),
    ],
)
def test_times_need_an_interval_that_excludes_one(before, after, relation):
    assert compare(before, after, FACTS).relation is relation


def test_the_interval_is_told():
    reason = compare(timed(1.0), timed(1.5), FACTS).reason
    assert "1.50× the speed of the best before it, 95 % interval 1.49–1.51" in reason


def test_a_slow_machine_that_slows_the_baseline_too_changes_nothing():
    """Latencies doubled, speedups over eager unchanged: cannot tell."""
    before, after = timed(1.0), timed(1.0)
    assert after.timing is not None
    after = replace(after, timing=replace(after.timing, median_ms=2 * after.timing.median_ms))
    assert compare(before, after, FACTS).relation is Relation.CANNOT_TELL


def test_counts_from_different_sources_are_not_compared():
    measured = counted(10)
    assert measured.profile is not None
    measured = replace(measured, profile=replace(measured.profile, source=ProfileSource.NSIGHT))
    assert compare(counted(1000), measured, FACTS).relation is Relation.CANNOT_TELL


def test_a_gain_within_what_a_baseline_differs_from_itself_is_none():
    slow, fast = timed(1.0), timed(1.07)
    assert compare(slow, fast, FACTS).relation is Relation.FASTER
    noisy = replace(fast, timing=replace(fast.timing, noise_fraction=0.08))
    found = compare(slow, noisy, FACTS)
    assert found.relation is Relation.CANNOT_TELL
    assert "8.0 %" in found.reason


def test_what_two_runs_of_one_kernel_can_differ_by_is_no_gain():
    found = compare(timed(1.0), timed(1.04), FACTS)
    assert found.relation is Relation.CANNOT_TELL
    assert "5.0 %" in found.reason


def test_replays_of_a_graph_are_not_compared_with_single_calls():
    slow, fast = timed(1.0), timed(2.0)
    graph = replace(fast, timing=replace(fast.timing, method="graph"))
    assert compare(slow, graph, FACTS).relation is Relation.CANNOT_TELL


def beside(
    speedup: float, spread: float = 0.002, digest: str = "p" * 64, noise: float | None = None
) -> Evaluation:
    """A candidate timed in the same turns as its parent; over eager it looks as fast as could be."""
    evaluation = timed(9.0)
    assert evaluation.timing is not None
    rival = replace(
        evaluation.timing.baselines[0],
        name="best before",
        speedup=speedup,
        speedup_low=speedup * (1 - spread),
        speedup_high=speedup * (1 + spread),
    )
    timing = replace(evaluation.timing, rival=rival, rival_digest=digest, noise_fraction=noise)
    return replace(evaluation, timing=timing)


@pytest.mark.parametrize(
    ("candidate", "relation", "words"),
    [
        (beside(1.03), Relation.FASTER, "1.030× the speed of the best before it"),
        (beside(0.97), Relation.SLOWER, "in the same turns"),
        (beside(1.004), Relation.CANNOT_TELL, "1.0 %"),
        (beside(1.03, 0.05), Relation.CANNOT_TELL, "holds 1.00×"),
        (beside(1.03, noise=0.04), Relation.CANNOT_TELL, "4.0 %"),
    ],
)
def test_a_pair_timed_in_one_run_decides_before_any_two_runs(candidate, relation, words):
    parent = replace(timed(1.0), candidate_digest="p" * 64)
    found = compare(parent, candidate, FACTS)
    assert found.relation is relation
    assert words in found.reason


def slowed(rival_ms: float, speedup: float, method: str = "events") -> Evaluation:
    """Beside it the best takes so long, where the baseline of both takes 3 ms."""
    candidate = beside(speedup)
    assert candidate.timing is not None
    assert candidate.timing.rival is not None
    rival = replace(candidate.timing.rival, median_ms=rival_ms)
    return replace(candidate, timing=replace(candidate.timing, rival=rival, method=method))


@pytest.mark.parametrize(
    ("candidate", "relation"),
    [
        (slowed(1.0, 1.5), Relation.FASTER),
        (slowed(1.15, 1.5), Relation.FASTER),  # runs differ
        (slowed(2.0, 1.5), Relation.CANNOT_TELL),  # its own evaluation says 1 ms
        (slowed(2.0, 0.9), Relation.SLOWER),
        (slowed(2.0, 1.5, "graph"), Relation.FASTER),  # timed otherwise, nothing can be said
    ],
)
def test_a_best_that_is_not_itself_beside_a_candidate_makes_that_one_no_faster(candidate, relation):
    best = replace(timed(3.0), candidate_digest="p" * 64)
    found = compare(best, candidate, FACTS)
    assert found.relation is relation
    assert ("much slower beside" in found.reason) is (relation is Relation.CANNOT_TELL)


@pytest.mark.parametrize(
    ("rival_ms", "baseline_ms", "relation"),
    [
        (1.0, 1.5, Relation.FASTER),  # the library has chosen another algorithm
        (2.0, 6.0, Relation.FASTER),  # clocks are lower
        (2.0, 4.0, Relation.CANNOT_TELL),
    ],
)
def test_a_best_is_slower_beside_a_candidate_only_by_its_own_time_and_against_a_baseline(
    rival_ms, baseline_ms, relation
):
    candidate = slowed(rival_ms, 1.5)
    baselines = tuple(replace(item, median_ms=baseline_ms) for item in candidate.timing.baselines)
    candidate = replace(candidate, timing=replace(candidate.timing, baselines=baselines))
    best = replace(timed(3.0), candidate_digest="p" * 64)
    assert compare(best, candidate, FACTS).relation is relation


def test_a_pair_with_another_candidate_says_nothing_of_the_parent():
    parent = replace(timed(1.0), candidate_digest="q" * 64)
    assert compare(parent, beside(0.5), FACTS).relation is Relation.FASTER
    assert (
        compare(replace(parent, candidate_digest=""), beside(0.5, digest=""), FACTS).relation
        is Relation.FASTER
    )


def test_what_the_clock_cannot_tell_apart_is_not_called_faster():
    before, after = timed(1.0), timed(1.3)
    assert compare(before, after, FACTS).relation is Relation.FASTER
    coarse = replace(after, timing=replace(after.timing, resolution_fraction=0.5))
    assert compare(before, coarse, FACTS).relation is Relation.CANNOT_TELL


def sampled(seconds: float, sectors: int = 100) -> Evaluation:
    """A simulated pass with a sample at full size that takes about so long on an H200, bound by DRAM."""
    counted_ = counted(sectors)
    total = int(seconds * 4.5e12 / 32)
    access = Access(requests=total // 16, bytes=32 * total, passes=total, ideal=total)
    profile = replace(
        counted_.profile.launches[0], grid=(100_000, 1, 1), block=(256, 1, 1), gmem_distinct_sectors=total,
        resources=KernelResources(architecture="sm_90a", registers=32),
        counters=Counters(
            warp_instructions=total // 8, gmem_load_bytes=32 * total, gmem_load_sectors=total,
            gmem_requests=total // 16, gmem_accesses={"load": access},
        ),
    )  # fmt: skip
    launch = LaunchSample(profile=profile, ctas=8, first_touch_sectors=total, load_rounds=total // 16)
    return replace(counted_, full_size=FullSizeSample(launches=(launch,)))


@pytest.mark.parametrize(
    ("before", "after", "relation"),
    [
        (2e-3, 1e-3, Relation.ESTIMATED_FASTER),
        (1e-3, 2e-3, Relation.ESTIMATED_SLOWER),
        (1e-3, 1.001e-3, Relation.CANNOT_TELL),
    ],
)
def test_without_a_gpu_estimates_at_full_size_decide_whatever_the_small_counts_say(before, after, relation):
    found = compare(sampled(before, sectors=1), sampled(after, sectors=10**6), FACTS, against="abc")
    assert found.relation is relation
    assert found.reason.startswith("estimated ")
    assert found.against == "abc"
    assert found.estimated_s == pytest.approx(after, rel=0.1)
    assert found.speedup == pytest.approx(before / after, rel=0.05)


def test_the_estimate_is_for_the_named_gpu():
    slow = compare(sampled(2e-3), sampled(1e-3), FACTS, target=find_target("A100"))
    fast = compare(sampled(2e-3), sampled(1e-3), FACTS)
    assert "on NVIDIA A100: " in slow.reason
    assert "on NVIDIA H200: " in fast.reason
    assert slow.estimated_s > 2 * fast.estimated_s


def test_what_got_worse_at_full_size_is_told_beside_the_estimate():
    reason = compare(sampled(1e-3), sampled(2e-3), FACTS).reason
    assert " Worse at full size: global sectors " in reason
    assert "Worse" not in compare(sampled(2e-3), sampled(1e-3), FACTS).reason


def test_counts_decide_where_a_sample_is_missing_and_the_reason_is_told():
    missing = replace(counted(1000), full_size=FullSizeSample(missing="A call needs 3 TB."))
    for best, candidate in ((missing, sampled(1e-3)), (sampled(1e-3, 2000), missing)):
        found = compare(best, candidate, FACTS)
        assert found.relation is Relation.LESS_WORK
        assert found.reason.endswith("No time could be estimated: A call needs 3 TB.")
        assert found.speedup is None
    assert "estimated" not in compare(counted(2000), counted(1000), FACTS).reason


def test_a_first_revision_tells_its_estimate_or_its_latency():
    found = compare(None, sampled(1e-3), FACTS)
    assert found.relation is Relation.FIRST
    assert found.reason.startswith("The first passing revision: estimated ")
    assert found.reason.endswith(" on NVIDIA H200, bound by DRAM.")
    measured = compare(None, timed(1.5), FACTS)
    assert "2 ms, 1.50× (1.49–1.51) over eager" in measured.reason
    assert measured.estimated_s is None


def test_the_speedup_of_two_timed_revisions_is_that_of_their_pairs_or_of_their_baseline():
    parent = replace(timed(1.0), candidate_digest="p" * 64)
    assert compare(parent, beside(1.03), FACTS).speedup == 1.03
    assert compare(timed(1.0), timed(1.5), FACTS).speedup == 1.5
    assert compare(timed(1.0), timed(2.0, name="torch.compile"), FACTS).speedup is None
    assert compare(counted(2000), counted(1000), FACTS).speedup is None

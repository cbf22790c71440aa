"""Figures over all problems of a campaign, and how failures enter each."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.campaign.totals import totals_of
from cutegen_nb.core.search.campaign import ProblemState


def test_every_share_is_of_the_problems_that_are_over(solved, failed):
    found = totals_of([
        solved("1_a", 2.0), solved("2_b", 0.5), failed("3_c"),
        failed("4_d", ProblemState.DECLINED, rounds=0), failed("5_e", ProblemState.WAITING, rounds=0),
        failed("6_f", ProblemState.UNFINISHED),
    ])  # fmt: skip
    assert (found.problems, found.run, found.correct, found.correct_share) == (6, 4, 2, 0.5)
    assert found.states[ProblemState.FINISHED] == 3
    assert found.states[ProblemState.DECLINED] == 1
    assert ProblemState.FAILED not in found.states
    assert found.correct_interval[0] < 0.5 < found.correct_interval[1]


def test_the_cost_counts_unfinished_problems_too(solved, failed):
    found = totals_of([solved(), failed(state=ProblemState.UNFINISHED, tokens=7, dollars=1.0, gpu_s=2.0)])
    assert (found.rounds, found.tokens, found.dollars, found.gpu_s, found.seconds) == (
        4, 1007, 1.25, 12.0, 90.0,
    )  # fmt: skip
    assert totals_of([failed()]).dollars is None


def test_a_failure_counts_as_zero_for_fast_p_and_falls_back_to_the_baseline_in_one_mean(solved, failed):
    (over,) = totals_of([solved("1_a", 4.0), solved("2_b", 1.0), failed("3_c"), failed("4_d")]).baselines
    assert (over.name, over.compared) == ("eager", 2)
    assert over.geometric_mean == pytest.approx(2.0)
    assert over.geometric_with_fallback == pytest.approx(4 ** (1 / 4))
    assert over.arithmetic_mean == over.median == 2.5
    assert over.fast == ((1.0, 0.25), (1.5, 0.25), (2.0, 0.25))
    assert (over.above_1, over.above_105) == (1, 1)


def test_a_kernel_exactly_at_a_threshold_is_not_above_it(solved):
    (over,) = totals_of([solved("1_a", 1.04), solved("2_b", 1.5), solved("3_c", 2.0)]).baselines
    assert over.fast == ((1.0, 1.0), (1.5, pytest.approx(1 / 3)), (2.0, 0.0))
    assert (over.above_1, over.above_105) == (3, 2)


def test_a_baseline_that_could_not_be_made_is_listed_with_nothing_compared(solved):
    found = totals_of([solved(missing=("torch.compile",))])
    assert [one.name for one in found.baselines] == ["eager", "torch.compile"]
    assert found.baselines[1].compared == 0
    assert found.baselines[1].geometric_mean is None
    assert found.baselines[1].geometric_with_fallback == 1.0


def test_estimates_are_kept_apart_from_times(estimated, solved):
    found = totals_of([estimated("1_a"), solved("2_b", sol_fraction=0.4)])
    assert (found.timed, found.median_sol) == (1, 0.4)
    assert (found.estimated, found.median_estimated_sol) == (1, 0.8)
    assert totals_of([estimated()]).baselines == ()


def test_nothing_run_gives_no_share(failed):
    found = totals_of([failed(state=ProblemState.WAITING)])
    assert (found.run, found.correct_share, found.correct_interval) == (0, None, None)


def test_kernels_beside_which_pytorch_computed_a_part_are_counted(solved):
    assert totals_of([solved(library="conv"), solved("2_b")]).with_library == 1

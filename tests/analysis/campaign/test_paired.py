"""Variants against the campaign without the change, problem by problem."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.campaign.paired import PairResult, compare_variants
from cutegen_nb.core.search.campaign import ProblemState

WIN, LOSS, TIE, NOT_COMPARED = PairResult


def results(base, changed):
    return [(pair.result, pair.ratio) for pair in compare_variants("guide=off", base, changed).pairs]


def test_latencies_decide_beyond_what_two_runs_differ_by(solved):
    base = [solved(latency_ms=1.0)] * 4
    changed = [solved(latency_ms=ms) for ms in (0.5, 2.0, 1.04, 1 / 1.04)]
    assert [result for result, _ in results(base, changed)] == [WIN, LOSS, TIE, TIE]
    assert results(base[:1], changed[:1]) == [(WIN, 2.0)]


def test_a_problem_that_only_one_side_solved_is_its_win_without_a_ratio(solved, failed):
    assert results([failed()], [solved()]) == [(WIN, None)]
    assert results([solved()], [failed()]) == [(LOSS, None)]
    assert results([failed()], [failed()]) == [(TIE, None)]


def test_what_is_not_over_or_not_timed_alike_is_not_compared(solved, estimated, failed):
    waiting = failed(state=ProblemState.WAITING)
    for base, changed in (
        (waiting, solved()), (solved(), waiting), (solved(), estimated()), (estimated(), solved()),
        (estimated(estimate=None), estimated()),
    ):  # fmt: skip
        assert results([base], [changed]) == [(NOT_COMPARED, None)]


def test_estimates_are_compared_with_estimates(estimated):
    found = compare_variants("guide=off", [estimated(seconds=2e-3)], [estimated(seconds=1e-3)])
    assert (found.pairs[0].result, found.pairs[0].ratio) == (WIN, pytest.approx(2.0))
    assert not found.measured


def test_the_sign_test_leaves_ties_out_and_the_mean_those_without_a_ratio(solved, failed):
    base = [solved(latency_ms=1.0)] * 5 + [failed(), solved(latency_ms=1.0)]
    changed = [solved(latency_ms=0.5)] * 4 + [solved(latency_ms=1.0), solved(), failed()]
    found = compare_variants("history=off", base, changed)
    assert [found.number(result) for result in PairResult] == [5, 1, 1, 0]
    assert found.compared == 5
    assert found.geometric_mean == pytest.approx(2 ** (4 / 5))
    assert found.p_value == pytest.approx(0.21875)
    assert found.measured


def test_campaigns_of_different_problems_are_no_pairs(solved):
    with pytest.raises(ValueError, match="argument 2"):
        compare_variants("x", [solved()], [solved(), solved()])

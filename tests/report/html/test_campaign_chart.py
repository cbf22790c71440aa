"""The chart of a campaign: speedups where kernels were timed, shares of the roof where they were estimated."""

import pytest

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.search.campaign import ProblemState
from cutegen_nb.core.timing import BaselineTiming
from cutegen_nb.report.html.campaign_chart import chart


def result(name="19_ReLU", **more):
    plain = {
        "name": name,
        "file": f"level1/{name}.py",
        "state": ProblemState.FINISHED,
        "rounds": 1,
        "seconds": 1.0,
    }
    return ProblemResult(**plain, **more)


def timed(speedup):
    baseline = BaselineTiming(
        name="eager", median_ms=2.0, speedup=speedup, speedup_low=speedup * 0.9, speedup_high=speedup * 1.1
    )
    return result(correct=True, baselines=(baseline,))


@pytest.mark.parametrize("speedup", [0.01, 1.0, 2.0, 300.0])
def test_every_speedup_has_its_place_on_the_scale(speedup):
    drawn = str(chart([timed(speedup)]))
    assert "over eager" in drawn
    assert "logarithmic" in drawn
    assert "nan" not in drawn


def test_without_a_time_the_estimated_share_is_drawn():
    found = Estimate(target="NVIDIA H200", seconds=1.0, seconds_low=0.5, seconds_high=2.0, bound="DRAM")
    drawn = str(chart([result(correct=True, estimate=found, estimated_sol_fraction=0.8)]))
    assert "estimated 80.0 % of the roof" in drawn


def test_a_campaign_without_a_correct_kernel_has_no_chart_and_names_stay_text():
    assert chart([result()]) == ""
    assert "<b>" not in str(chart([timed(2.0), result("<b>bold</b>")]))

"""The diagnosis as HTML: one bound in one sentence, bars, and the counts behind it folded."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.estimate.estimate import estimate_of
from cutegen_nb.analysis.estimate.targets import find_target, target_named_in
from cutegen_nb.analysis.history.summary import estimated_time
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html import diagnosis
from cutegen_nb.report.markup import Style
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import passed


def sampled(sectors=64_000_000, instructions=256_000_000):
    found = passed(sectors, instructions)
    launch = replace(found.profile.launches[0], grid=(100_000, 1, 1))
    sample = LaunchSample(profile=launch, ctas=4, first_touch_sectors=sectors)
    return replace(found, full_size=FullSizeSample(launches=(sample,)))


def of(evaluation, estimated=None, style=Style.RECORD):
    found = diagnose(examples.relu_facts(), evaluation, examples.simulated_device())
    return str(diagnosis.render(found, estimated, style=style))


def test_with_an_estimate_its_bound_at_the_full_size_is_the_only_headline():
    evaluation = sampled()
    estimated = estimate_of(evaluation, examples.simulated_device(), find_target("L4"))
    for style in Style:
        html = of(evaluation, estimated, style)
        headline, rest = html.split("<details", 1)
        assert headline.count("Bound by") == 1
        assert f"<b>Bound by {estimated.bound}</b> at the full size: estimated" in headline
        assert "NVIDIA L4" in headline
        assert "Zone " not in headline
        assert "Zone " in rest
        assert "width:100.0%" in headline


def test_without_one_the_demands_are_the_bars():
    html = of(passed(1_000_000, 1000))
    headline = html.split("<details", 1)[0]
    assert headline.count("Bound by") == 1
    assert ">DRAM<" in headline
    assert "100.0 %" in headline


def test_the_estimate_is_for_the_gpu_that_the_comparison_names():
    session = examples.session_of(Relation.FIRST)
    item = session.rounds[0]
    attempt = replace(item.attempts[0], evaluation=sampled())
    reason = "The first passing revision: estimated 1 ms, on NVIDIA L4, bound by DRAM."
    item = replace(item, attempts=(attempt,), comparison=replace(item.comparison, reason=reason))
    assert estimated_time(session, item).target == "NVIDIA L4"
    for name in ("NVIDIA H100", "NVIDIA L4", "NVIDIA A100"):
        assert target_named_in(f"estimated 1 ms on {name}, bound by L2").name == name
    assert target_named_in("no GPU is named") is None

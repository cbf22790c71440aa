"""A measured latency on the page."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.core.timing import BaselineTiming, Clocks, Timing
from cutegen_nb.report.html import (
    timing as timing_view,
)


def test_a_latency_is_read_with_its_warm_figure_the_host_the_noise_and_the_clocks():
    cool = Clocks(sm_mhz=1980, memory_mhz=3201, temperature_c=40, power_w=300.0)
    hot = Clocks(sm_mhz=1500, memory_mhz=3201, temperature_c=80, power_w=699.6, slowed_by=("power cap",))
    plain = Timing(median_ms=1.0, samples_ms=(), baselines=(), bandwidth_bytes_per_s=4e12, compile_s=0.5)
    whole = replace(plain, warm_ms=0.5, host_ms=0.031, noise_fraction=0.004, clocks=(cool, hot))
    said = timing_view.note(whole)
    for words in ("warm L2 500 µs", "31.0 µs", "0.4 %", "1980 → 1500 MHz", "held down by power cap"):
        assert words in said, said
    assert "nothing held the clocks down" in timing_view.note(replace(whole, clocks=(cool, cool)))
    assert "clock" not in timing_view.note(plain)


def test_a_latency_says_how_it_was_measured_and_the_host_stands_apart(session):
    short = Timing(
        median_ms=0.003,
        samples_ms=(0.003,),
        baselines=(),
        bandwidth_bytes_per_s=4e12,
        host_ms=0.037,
        not_by_graph="the candidate launches on the default one",
        rival=BaselineTiming(
            name="best before", median_ms=0.0031, speedup=1.03, speedup_low=1.02, speedup_high=1.04
        ),
    )
    roof = place(session.facts, session.device)
    page = timing_view.render(short, roof)
    for words in (
        "pair of events",
        "host, queueing a call",
        "37.0 µs",
        "no CUDA graph",
        "best before",
        "1.03×",
    ):
        assert words in page, words
    assert "calls in a row wait for the host" in page
    graph = replace(short, method="graph", not_by_graph="", host_ms=0.001)
    assert "replays of a CUDA graph" in timing_view.render(graph, roof)
    assert "wait for the host" not in timing_view.note(graph)
    assert "which is in the latency" in timing_view.note(replace(short, host_included=True))

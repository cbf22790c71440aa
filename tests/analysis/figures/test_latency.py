"""Method of a latency measurement, and the host's part in it, in words."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.figures.latency import host_words, is_host_bound, method_note, method_words, spread
from cutegen_nb.core.timing import Timing

TIMING = Timing(median_ms=0.01, samples_ms=(), baselines=(), bandwidth_bytes_per_s=1e12)


def test_each_method_is_told():
    assert method_words(TIMING) == "a pair of events around each call, queued before the device came to it"
    assert method_words(replace(TIMING, method="graph")).startswith("replays of a CUDA graph")
    assert "holds host time" in method_words(replace(TIMING, host_included=True))


def test_a_short_kernel_that_no_graph_took_is_told_with_the_reason():
    assert method_note(TIMING) == ""
    assert method_note(replace(TIMING, not_by_graph="it allocates")) == (
        "no CUDA graph, although it is under 10 µs: it allocates"
    )


def test_the_hosts_time_is_in_the_latency_only_where_the_call_waits():
    assert host_words(TIMING) == ""
    apart = replace(TIMING, host_ms=0.02)
    assert host_words(apart) == "the host queues a call in 20.0 µs, which is in no latency"
    assert host_words(replace(apart, host_included=True)).endswith("which is in the latency")
    assert is_host_bound(apart)
    assert not is_host_bound(replace(apart, host_ms=0.005))
    assert not is_host_bound(TIMING)


def test_the_spread_needs_ten_samples():
    assert spread(replace(TIMING, samples_ms=(1.0,) * 9)) == "–"
    samples = tuple(float(number) for number in range(1, 20))
    assert spread(replace(TIMING, samples_ms=samples)) == "2.00 ms to 18.0 ms"

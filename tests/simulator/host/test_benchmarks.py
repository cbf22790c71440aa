"""Benchmarks and autotuners run each kernel once."""

PROGRAM = "benchmarks"


def test_a_benchmark_runs_once(outcome):
    assert outcome == "ok", outcome

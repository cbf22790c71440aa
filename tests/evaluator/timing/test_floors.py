"""Times below a floor that memory or arithmetic sets."""

from __future__ import annotations

from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.timing import (
    floors as roofs,
)


def test_a_time_that_memory_does_not_allow_is_shown_with_its_arithmetic():
    finding = roofs.above_roof(0.5, 4_000_000_000, 4e12, 60 << 20)
    assert finding is not None
    assert "0.5 ms" in finding.message
    assert "1 ms" in finding.message


def test_a_possible_time_is_no_finding():
    assert roofs.above_roof(1.02, 4_000_000_000, 4e12, 60 << 20) is None
    assert roofs.above_roof(0.9, 4_000_000_000, 4e12, 60 << 20) is None


def test_a_problem_that_fits_the_cache_has_no_roof():
    assert roofs.above_roof(0.001, 10_000_000, 4e12, 60 << 20) is None


def test_a_time_below_the_references_arithmetic_is_a_flag_with_its_arithmetic():
    finding = roofs.fewer_operations(0.1, 137_438_953_472, 7.7e14)
    assert finding is not None
    assert "137.4 GFLOP" in finding.message
    assert "0.1785 ms" in finding.message
    assert (finding.kind, finding.severity) == ("fewer-operations", Severity.FLAG)
    assert roofs.fewer_operations(0.16, 137_438_953_472, 7.7e14) is None


def test_with_no_measured_peak_there_is_no_arithmetic_roof():
    assert roofs.fewer_operations(1e-9, 10**15, 0.0) is None


def test_inputs_that_no_cache_holds_take_their_time_to_read_whatever_their_size():
    finding = roofs.faster_than_reading_inputs(0.002, 67_108_864, 4.2e12)
    assert finding is not None
    assert "67.1 MB" in finding.message
    assert roofs.faster_than_reading_inputs(0.056, 67_108_864, 4.2e12) is None
    assert roofs.faster_than_reading_inputs(0.0156, 67_108_864, 4.2e12) is None  # reading alone
    assert roofs.faster_than_reading_inputs(0.001, 1_000_000, 4.2e12) is None
    assert roofs.faster_than_reading_inputs(0.001, -5, 4.2e12) is None

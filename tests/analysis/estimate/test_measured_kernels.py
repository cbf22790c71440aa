"""Estimates against the times that an NVIDIA H200 took: 50 kernels of 12 problems.

The figures are those of `docs/explanation/estimates.md`. A change of the model that makes them worse fails.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import statistics
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.estimate.constants import CONSTANTS
from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.interval import interval, ratio_deviation
from cutegen_nb.analysis.estimate.targets import find_target

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "benchmarks" / "results" / "estimate-h200-2026-11-23.json"
PAGE = ROOT / "docs" / "explanation" / "estimates.md"
H200 = find_target("H200")


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("estimate_benchmark", ROOT / "benchmarks" / "estimate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kernels(benchmark):
    """Every measured kernel with its estimate."""
    return [(point, estimate(point.sample, H200)) for point in benchmark.points_of(RECORD)]


@pytest.fixture(scope="module")
def held_out(kernels):
    """Kernels of the problems that no constant was fitted on."""
    return [(point, found) for point, found in kernels if not point.is_for_fitting]


def pairs(kernels):
    """Pairs of kernels of one problem, with the measured ratio of their times."""
    for (one, first), (other, second) in itertools.combinations(kernels, 2):
        if one.problem == other.problem:
            yield first, second, one.measured_s / other.measured_s


def test_the_record_holds_fifty_kernels_and_two_thirds_of_them_fitted_nothing(kernels, held_out):
    assert (len(kernels), len(held_out)) == (50, 32)
    assert len({point.problem for point, _ in kernels}) == 12
    assert len({point.problem for point, _ in held_out}) == 8


def test_every_decided_pair_is_ordered_as_measured_and_few_are_undecided(benchmark, kernels, held_out):
    for some, decided, undecided in ((held_out, 51, 2), (kernels, 81, 4)):
        answers = [
            (benchmark.told(first, second), ratio > 1)
            for first, second, ratio in pairs(some)
            if max(ratio, 1 / ratio) >= benchmark.APART
        ]
        told = [(said, is_so) for said, is_so in answers if said is not None]
        assert all(said is is_so for said, is_so in told)
        assert len(told) >= decided
        assert len(answers) - len(told) <= undecided


def test_no_pair_is_told_the_wrong_way_however_near_its_times(benchmark, kernels):
    """Below 10 % too, what was decided has the measured sign or a difference under 3 %."""
    wrong = [
        ratio
        for first, second, ratio in pairs(kernels)
        if (said := benchmark.told(first, second)) is not None and said is not (ratio > 1)
    ]
    assert all(abs(math.log(ratio)) < 0.03 for ratio in wrong), wrong


def test_the_order_within_a_problem_follows_the_measured_one(benchmark, kernels):
    groups = {}
    for point, found in kernels:
        groups.setdefault(point.problem, []).append((point.measured_s, found.seconds))
    correlations = [
        benchmark.rank_correlation(*zip(*group, strict=True)) for group in groups.values() if len(group) > 2
    ]
    assert len(correlations) == 10
    assert statistics.median(correlations) >= 0.99
    assert min(correlations) >= 0.8


def test_the_intervals_hold_what_was_measured(kernels, held_out):
    inside = [found.seconds_low <= point.measured_s <= found.seconds_high for point, found in kernels]
    assert sum(inside) >= 49
    ratios = [
        low <= ratio <= high
        for first, second, ratio in pairs(held_out)
        for low, high in [interval(first.seconds / second.seconds, ratio_deviation(first, second))]
    ]
    assert len(ratios) == 59
    assert sum(ratios) >= 56
    # An interval that holds everything says nothing: at nine in ten some kernel lies near an end.
    widths = sorted(found.seconds_high / found.seconds_low for _, found in kernels)
    assert widths[len(widths) // 2] < 2.5


def test_the_page_tells_the_figures_that_the_benchmark_prints(benchmark, capsys, held_out):
    benchmark.report("held out", [point for point, _ in held_out], H200, CONSTANTS)
    printed, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    for in_print, in_page in (
        ("51 of 51 right", "| 51 of 51 | 49 of 53 |"),
        ("2 of 53 undecided", "| 2 of 53 | 0 |"),
        ("median 1.00, least 0.80", "| 1.00 (0.80) |"),
        ("median 0.97, quartiles 0.87 to 1.01", "| 0.97, 0.87 to 1.01 |"),
        ("worst: 0.67", "| 0.67 (9, register-blocking), 1.53 (40, first kernel) |"),
        ("inside the interval: 31 of 32", "| 31 of 32 |"),
        ("inside its interval: 56 of 59", "| 56 of 59 |"),
    ):
        assert in_print in printed
        assert in_page in page

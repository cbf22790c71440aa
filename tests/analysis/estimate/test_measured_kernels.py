"""Estimates against the times that kernels took: 50 on an NVIDIA H200, hundreds on an H100.

The figures are those of `docs/explanation/estimates.md`. A change of the model that makes them worse fails.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import math
import re
import statistics
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.estimate.constants import CONSTANTS
from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.interval import interval, ratio_deviation
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.evaluator.full_size import sampling

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "benchmarks" / "results" / "estimate-h200-2026-11-23.json"
H100_RECORD = ROOT / "benchmarks" / "results" / "estimate-h100-2026-11-26.json"
PAGE = ROOT / "docs" / "explanation" / "estimates.md"
H200, H100 = find_target("H200"), find_target("H100")


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


@pytest.fixture(scope="module")
def on_h100(benchmark):
    """Every kernel that an H100 timed, with its estimate."""
    return [(point, estimate(point.sample, H100)) for point in benchmark.points_of(H100_RECORD)]


@pytest.fixture(scope="module")
def held_out_on_h100(on_h100):
    """Those of the problems that no constant was fitted on."""
    return [(point, found) for point, found in on_h100 if not point.is_for_fitting]


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


def inside_of(kernels):
    """For each pair of one problem, True if the interval of the estimated ratio holds the measured one."""
    return [
        low <= ratio <= high
        for first, second, ratio in pairs(kernels)
        for low, high in [interval(first.seconds / second.seconds, ratio_deviation(first, second))]
    ]


def test_the_intervals_hold_what_was_measured(kernels, held_out, held_out_on_h100):
    inside = [found.seconds_low <= point.measured_s <= found.seconds_high for point, found in kernels]
    assert sum(inside) >= 49
    ratios = inside_of(held_out)
    assert len(ratios) == 59
    assert sum(ratios) >= 56
    on_other = inside_of(held_out_on_h100)
    assert 0.88 <= sum(on_other) / len(on_other) <= 0.95
    # An interval that holds everything says nothing: at nine in ten some kernel lies near an end.
    widths = sorted(found.seconds_high / found.seconds_low for _, found in kernels)
    assert widths[len(widths) // 2] < 2.5


def test_the_page_tells_the_figures_that_the_benchmark_prints(
    benchmark, capsys, held_out, on_h100, held_out_on_h100
):
    fitted = [(point, found) for point, found in on_h100 if point.is_for_fitting]
    columns = []
    for some, target in ((held_out_on_h100, H100), (fitted, H100), (held_out, H200)):
        benchmark.report("kernels", [point for point, _ in some], target, CONSTANTS)
        columns.append(capsys.readouterr().out)
    page = PAGE.read_text(encoding="utf-8")
    for pattern, row in (
        (r"by estimates: (\d+ of \d+) right", "of decided pairs 10 % or more apart, ordered rightly"),
        (r"by estimates: .* (\d+ of \d+) undecided", "of these pairs undecided"),
        (r"old order: (\d+ of \d+) right", "the same pairs by the order of counts used before, rightly"),
        (r"median ([\d.]+), least ([\d.]+)", "Spearman within a problem, median (least)"),
        (r"median ([\d.]+), quartiles ([\d.]+ to [\d.]+)", "estimate ÷ measured: median, quartiles"),
        (r"inside the interval: (\d+ of \d+)", "measured time in the interval of nine in ten"),
        (r"inside its interval: (\d+ of \d+)", "ratio of two kernels in its interval"),
    ):
        figures = [re.search(pattern, printed).groups() for printed in columns]
        (shown,) = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", page, re.MULTILINE)
        cells = shown.split(" | ")
        assert [re.findall(r"[\d.]+(?: (?:of|to) [\d.]+)?", cell) for cell in cells] == [
            list(one) for one in figures
        ], row


def test_the_record_of_the_h100_holds_many_kernels_and_names_its_gpu(benchmark, on_h100, held_out_on_h100):
    assert len(on_h100) >= 150
    assert len(held_out_on_h100) > len(on_h100) / 2
    assert benchmark.read_record(H100_RECORD, None).target == H100
    assert benchmark.read_record(RECORD, None).target == H200


def test_nine_of_ten_decided_pairs_of_the_h100_are_ordered_as_measured(benchmark, held_out_on_h100):
    answers = [
        (benchmark.told(first, second), ratio > 1)
        for first, second, ratio in pairs(held_out_on_h100)
        if max(ratio, 1 / ratio) >= benchmark.APART
    ]
    told = [said is is_so for said, is_so in answers if said is not None]
    assert sum(told) >= 0.9 * len(told)
    assert len(told) >= 0.85 * len(answers)


def test_the_order_within_a_problem_of_the_h100_follows_the_measured_one(benchmark, held_out_on_h100):
    groups = {}
    for point, found in held_out_on_h100:
        groups.setdefault(point.problem, []).append((point.measured_s, found.seconds))
    correlations = [
        benchmark.rank_correlation(*zip(*group, strict=True)) for group in groups.values() if len(group) > 2
    ]
    assert len(correlations) > 20
    assert statistics.median(correlations) >= 0.9


def test_fields_left_out_of_the_record_are_those_that_are_zero(monkeypatch):
    """A sample written without its zeros is read as the same sample."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sampling, "DEADLINE_S", sampling.DEADLINE_S)  # the benchmark sets its own
    counts = importlib.import_module("rung_counts")
    for row in json.loads(RECORD.read_text())["points"]:
        sample = decode(FullSizeSample, row["sample"])
        written = counts.without_zeros(encode(sample))
        assert decode(FullSizeSample, json.loads(json.dumps(written))) == sample

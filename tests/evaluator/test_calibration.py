"""Kernels called faster or slower are so, by simulation of devices that behave badly (see the benchmark)."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from cutegen_nb.evaluator.timing import statistics as ratios

PATH = Path(__file__).parents[2] / "benchmarks" / "timing_calibration.py"


@pytest.fixture(scope="module")
def calibration():
    spec = importlib.util.spec_from_file_location("timing_calibration", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_the_interval_of_a_few_blocks_holds_the_true_ratio_about_as_often_as_it_says(calibration):
    # 0.94 of so many strays by 0.02; without the widening it was 0.82.
    assert calibration.row("steady", 0.03, 120, 0.6).held > 0.88


@pytest.mark.parametrize(
    "model",
    [
        "two clocks",
        "interference",
        "memory",
        "order",
        "slow phases",
        pytest.param("noisy", marks=pytest.mark.long),
    ],
)
def test_a_kernel_is_not_called_faster_or_slower_than_itself_on_a_bad_device(calibration, model):
    found = calibration.row(model, 0.0, 25, 0.6)
    assert found.faster + found.slower <= 0.08


@pytest.mark.parametrize("model", ["drift", "throttling", "two clocks", "interference"])
def test_three_per_cent_are_found_on_a_bad_device(calibration, model):
    found = calibration.row(model, 0.03, 20, 0.6)
    assert found.faster >= 0.9
    assert found.slower == 0.0


@pytest.mark.parametrize(("blocks", "student"), [(5, 2.776), (8, 2.365), (10, 2.262), (30, 2.045)])
def test_the_widening_is_students_quantile_with_the_variances_divisor(blocks, student):
    expected = student / 1.959964 * (blocks / (blocks - 1)) ** 0.5
    assert ratios.widening(blocks) == pytest.approx(expected, rel=0.004)

"""Likeness of problems and weights of records, by structured facts alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.knowledge.likeness import LEAST_LIKE, like, timed_architecture, weight
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import Regime
from cutegen_nb.core.strategy import Bound

SOFTMAX, NORM, MATMUL, FUSED = (
    WorkloadClass.SOFTMAX, WorkloadClass.NORM, WorkloadClass.MATMUL, WorkloadClass.FUSED,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 1.0),
        ({"workload_class": FUSED, "parts": (SOFTMAX, WorkloadClass.ELEMENTWISE)}, 0.8),
        ({"workload_class": NORM}, 0.6),
        ({"workload_class": MATMUL}, 0.0),
        ({"workload_class": WorkloadClass.CONVOLUTION}, 0.0),
        ({"regime": Regime.FEW_LONG_ROWS}, 0.6),
        ({"regime": Regime.SMALL}, 0.3),
        ({"dtype": "float16"}, 0.75),
        ({"operators": ("exp", "sum")}, 0.75),
        ({"operators": ("_softmax", "exp")}, 0.875),
        ({"workload_class": NORM, "regime": Regime.STRIDED_ROWS, "operators": ()}, 0.27),
    ],
)
def test_likeness_is_the_product_of_class_regime_and_details(softmax_key, changed, expected):
    other = replace(softmax_key, **changed)
    assert like(softmax_key, other) == pytest.approx(expected)
    assert like(other, softmax_key) == like(softmax_key, other)


def test_two_types_of_sixteen_bits_are_alike_by_half(softmax_key):
    half, brain = (replace(softmax_key, dtype=name) for name in ("float16", "bfloat16"))
    assert like(half, brain) == pytest.approx(0.875)


@pytest.mark.parametrize(
    ("changed", "factor"),
    [
        ({}, 0.85),  # no bound is known
        ({"bound": Bound.MEMORY}, 1.0),
        ({"bound": Bound.COMPUTE}, 0.7),
        ({"bound": Bound.MEMORY, "estimated": True}, 0.5),
        ({"bound": Bound.MEMORY, "architecture": "sm_90"}, 1.0),
        ({"bound": Bound.MEMORY, "architecture": "sm_80"}, 0.6),
    ],
)
def test_a_records_weight_falls_with_what_differs_from_it(record, softmax_key, changed, factor):
    assert weight(record(**changed), softmax_key, "sm_90a", Bound.MEMORY) == pytest.approx(factor)


def test_two_architectures_of_one_generation_are_nearer(record, softmax_key):
    known = record(architecture="sm_80", bound=Bound.MEMORY)
    near, far = (weight(known, softmax_key, name, Bound.MEMORY) for name in ("sm_86", "sm_90a"))
    assert (near, far) == (pytest.approx(0.9), pytest.approx(0.6))


def test_below_the_least_likeness_a_record_weighs_nothing(record, softmax_key):
    far = replace(softmax_key, regime=Regime.SMALL)
    assert 0 < like(softmax_key, far) < LEAST_LIKE
    assert weight(record(), far, "sm_90a") == 0.0


def test_on_the_simulator_times_are_of_the_gpu_that_they_are_estimated_for(h200):
    assert timed_architecture(h200) == "sm_90a"
    simulated = replace(h200, kind=DeviceKind.SIMULATOR, architecture="sm_80")
    assert timed_architecture(simulated) == "sm_90"

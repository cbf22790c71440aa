"""Regimes of shapes: the facts by which like problems are found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.search.knowledge import Regime

OTHER, MATMUL = WorkloadClass.OTHER, WorkloadClass.MATMUL


def key(full, kind=OTHER, parts=()):
    return problem_key(
        ProblemFacts(workload_class=kind, full=full, scaled=full, dtype="float32", parts=parts)
    )


@pytest.mark.parametrize(
    ("maker", "extents", "kind", "regime"),
    [
        ("relu", (1 << 18,), OTHER, Regime.SMALL),
        ("relu", (1 << 22,), OTHER, Regime.LARGE_STREAM),
        ("row_sum", (255, 1 << 16), OTHER, Regime.FEW_LONG_ROWS),
        ("row_sum", (256, 1 << 16), OTHER, Regime.MANY_LONG_ROWS),
        ("row_sum", (1 << 16, 4097), OTHER, Regime.MANY_LONG_ROWS),
        ("row_sum", (1 << 16, 4096), OTHER, Regime.MANY_SHORT_ROWS),
        ("column_sum", (1 << 12, 1 << 12), OTHER, Regime.STRIDED_ROWS),
        ("product", (2048, 2048, 2048), MATMUL, Regime.SQUARE_PRODUCT),
        ("product", (8192, 2048, 2048), MATMUL, Regime.TALL_PRODUCT),
        ("product", (2048, 8192, 2048), MATMUL, Regime.TALL_PRODUCT),
        ("product", (2048, 2048, 8192), MATMUL, Regime.LONG_K_PRODUCT),
        ("product", (2048, 1, 8192), MATMUL, Regime.MANY_LONG_ROWS),
        ("convolution", (64, 64), WorkloadClass.CONVOLUTION, Regime.WINDOWS),
        ("convolution", (64, 32), WorkloadClass.CONVOLUTION, Regime.CHANNELS_PRODUCT),
        ("convolution", (64, 1), WorkloadClass.CONVOLUTION, Regime.CHANNELS_PRODUCT),
        ("relu", (1 << 22,), WorkloadClass.POOLING, Regime.WINDOWS),
    ],
)
def test_the_regime_follows_from_class_and_extents(workloads, maker, extents, kind, regime):
    assert key(getattr(workloads, maker)(*extents), kind).regime is regime


def test_a_fused_problem_has_the_regime_of_its_dominant_part(workloads):
    full = workloads.product(2048, 2048, 2048, "relu")
    parts = (MATMUL, WorkloadClass.ELEMENTWISE)
    found = key(full, WorkloadClass.FUSED, parts)
    assert (found.regime, found.dominant, found.parts) == (Regime.SQUARE_PRODUCT, MATMUL, parts)


def test_much_arithmetic_on_few_bytes_is_not_small(workloads):
    few = workloads.relu(1 << 10)
    assert key(few).regime is Regime.SMALL
    assert key(replace(few, flops=100_000_001)).regime is Regime.LARGE_STREAM


def test_operators_are_named_once_and_moves_are_left_out(workloads):
    full = workloads.product(64, 64, 64, "relu", "view", "exp", "relu")
    assert key(full).operators == ("exp", "mm", "relu")
    assert key(full).dtype == "float32"

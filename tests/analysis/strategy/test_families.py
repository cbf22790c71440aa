"""Strategies of scans, windows, convolutions, attention, clusters and persistent products: offered where they fit."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.strategy.obstacle import obstacle
from cutegen_nb.prompting.library import shipped_library

STRATEGIES = {item.name: item for item in shipped_library().strategies()}
KEPT_BY_NOBODY = {"passes": 3.0, "split": False, "launches": 1}
SCALAR = {"coalesced_fraction": 0.2, "wide_fraction": 0.0, "ctas": 64.0, "split": False, "launches": 1}
PLAIN = {"launches": 1, "staged_fraction": 0.0}
CASES = [
    # Strategy, maker of the workload with its extents, traits of a kernel that lacks it; then for each reason
    # not to offer it a workload, traits and a part of the reason.
    ("row-in-cluster", ("softmax", 16, 1 << 20), KEPT_BY_NOBODY, [
        (("softmax", 16, 1024), {}, "a row of 4,096 bytes"),
        (("row_sum", 16, 1 << 20), {}, "one pass"),
        (("softmax", 16, 1 << 20), {"passes": 1.0}, "read once"),
        (("softmax", 16, 1 << 20), {"split": True}, "CTAs share sums"),
    ]),
    ("row-over-grid", ("softmax", 16, 1 << 22), KEPT_BY_NOBODY, [
        (("softmax", 16, 1 << 19), {}, "a cluster's shared memory of"),
        (("row_sum", 16, 1 << 22), {}, "one pass"),
        (("softmax", 16, 1 << 22), {"split": True}, "CTAs share sums"),
    ]),
    ("warp-scan", ("scan", 4096, 512), SCALAR, [
        (("scan", 8, 1 << 20), {}, "rows of 1,048,576 elements"),
        (("scan", 4096, 512), {"coalesced_fraction": 1.0}, "100.0 % of the sectors"),
        (("column_scan", 512, 4096), {}, "not the innermost"),
    ]),
    ("block-scan", ("scan", 4096, 8192), SCALAR, [
        (("scan", 4096, 8192), {"wide_fraction": 1.0}, "whole vectors"),
        (("column_scan", 8192, 4096), {}, "not the innermost"),
    ]),
    ("split-scan", ("scan", 8, 1 << 20), SCALAR, [
        (("scan", 4096, 8192), {}, "4,096 rows"),
        (("scan", 8, 1 << 20), {"ctas": 1024.0}, "1,024 CTAs"),
        (("scan", 8, 1 << 20), {"split": True}, "CTAs share sums"),
    ]),
    ("look-back", ("scan", 8, 1 << 20), {"passes": 2.0, "split": True, "launches": 2}, [
        (("scan", 4096, 8192), {}, "4,096 rows"),
        (("scan", 8, 1 << 20), {"split": False}, "no sum is shared"),
        (("scan", 8, 1 << 20), {"passes": 1.0}, "read once"),
    ]),
    ("stream-k", ("product", 4096, 4096, 4096), {"launches": 1, "tensor_types": ("f16",)}, [
        (("product", 4096, 4096, 4096), {"tensor_types": ()}, "no product runs on tensor cores"),
        (("product", 4096, 4096, 64), {}, "sums of 64 terms"),
        (("product", 4096, 4096, 4096), {"split": True}, "CTAs share sums"),
    ]),
    ("slices-in-shared-memory", ("relu", 64), PLAIN, [
        (("relu", 64), {"staged_fraction": 1.0}, "are staged"),
    ]),
    ("implicit-product", ("relu", 64), PLAIN, [
        (("relu", 64), {"staged_fraction": 1.0}, "are staged"),
        (("relu", 64), {"tensor_types": ("f16",)}, "tensor cores"),
    ]),
    ("gathered-tensor-cores", ("relu", 64), PLAIN, [
        (("relu", 64), {"tensor_types": ("f16",)}, "tensor cores"),
    ]),
    ("flash-tiles", ("relu", 64), PLAIN, [
        (("relu", 64), {"tensor_types": ("f16",)}, "tensor cores"),
    ]),
    ("persistent-tiles", ("product", 4096, 4096, 4096), {"launches": 1, "tensor_types": ("f16",)}, [
        (("product", 4096, 4096, 4096), {"tensor_types": ()}, "no product runs on tensor cores"),
        (("product", 4096, 4096, 4096), {"grid_stride": True}, "stride of the grid"),
        (("product", 4096, 8, 4096), {}, "serves 8 outputs"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_each_is_offered_where_it_fits_and_else_the_figure_says_why_not(workloads, here, case):
    name, workload, traits, others = case

    def of(made, **changed):
        return here(getattr(workloads, made[0])(*made[1:]), **traits | changed)

    assert obstacle(STRATEGIES[name], of(workload)) is None
    for other, changed, reason in others:
        found = obstacle(STRATEGIES[name], of(other, **changed))
        assert found is not None
        assert reason in found.reason


@pytest.mark.parametrize(("name", "kind"), [
    ("row-in-cluster", "norm"), ("row-over-grid", "norm"), ("split-scan", "scan"), ("look-back", "scan"), ("slices-in-shared-memory", "pooling"),
    ("gathered-tensor-cores", "convolution"), ("flash-tiles", "attention"), ("persistent-tiles", "matrix product"),
    ("stream-k", "matrix product"),
])  # fmt: skip
def test_each_is_in_the_menu_of_its_class_and_not_of_another(name, kind):
    assert kind in STRATEGIES[name].classes
    assert "element-wise" not in STRATEGIES[name].classes

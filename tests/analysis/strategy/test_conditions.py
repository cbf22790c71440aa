"""Every condition of a strategy on both of its sides, with its figure, and where nothing tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.strategy.conditions import holds
from cutegen_nb.core.graph import TensorSpec, Value
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Condition

CASES = [
    # Condition, maker of the workload, its extents that hold, and its extents that do not.
    (Condition.ROWS_FILL_DEVICE, "row_sum", (132, 8), (131, 8)),
    (Condition.FEW_ROWS, "row_sum", (131, 8), (132, 8)),
    (Condition.FEW_TILES, "product", (128 * 131, 128, 8), (128 * 131 + 1, 128, 8)),
    (Condition.LONG_K, "product", (64, 64, 1024), (64, 64, 1023)),
    (Condition.PRODUCT_OF_FEW_ROWS, "product", (32, 4096, 4096), (33, 4096, 4096)),
    (Condition.OPERANDS_REUSED, "product", (64, 16, 8), (64, 15, 8)),
    (Condition.ROW_FITS_REGISTERS, "row_sum", (8, 32768), (8, 32769)),
    (Condition.ROW_EXCEEDS_REGISTERS, "row_sum", (8, 32769), (8, 32768)),
    (Condition.ROW_FITS_SHARED, "row_sum", (8, 227 * 256), (8, 227 * 256 + 1)),
    (Condition.ROW_EXCEEDS_CLUSTER, "row_sum", (8, 16 * 227 * 256 + 1), (8, 16 * 227 * 256)),
    (Condition.SHORT_ROWS, "row_sum", (8, 4096), (8, 4097)),
    (Condition.ROWS_CONTIGUOUS, "row_sum", (64, 32), None),
    (Condition.ROWS_STRIDED, "column_sum", (64, 32), None),
    (Condition.SEVERAL_PASSES, "softmax", (64, 32), None),
    (Condition.SEVERAL_STATISTICS, "softmax", (64, 32), None),
    (Condition.VECTORS_FIT, "relu", (1024,), (1023,)),
    (Condition.EPILOGUE, "product", (64, 64, 64, "relu"), (64, 64, 64)),
    (Condition.MASK, "masked", (64, 64), None),
    (Condition.SHORTCUT, "row_sum", (64, 1), (64, 2)),
]
OTHER_SIDE = {
    Condition.ROWS_CONTIGUOUS: ("column_sum", (64, 32)),
    Condition.ROWS_STRIDED: ("row_sum", (64, 32)),
    Condition.SEVERAL_PASSES: ("row_sum", (64, 32)),
    Condition.SEVERAL_STATISTICS: ("row_sum", (64, 32)),
    Condition.MASK: ("relu", (64, 64)),
}
"""Workloads for which a condition does not hold, where that is no matter of extents."""
OF_THE_KERNEL = {Condition.FEW_CTAS, Condition.SEVERAL_WAVES, Condition.SERIALISED_WGMMA}
OF_ROWS = [
    case[0]
    for case in CASES
    if case[1] in {"row_sum", "column_sum", "softmax"} and case[0] is not Condition.SHORTCUT
]
OF_A_PRODUCT = [
    Condition.FEW_TILES, Condition.LONG_K, Condition.OPERANDS_REUSED, Condition.PRODUCT_OF_FEW_ROWS,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_each_condition_holds_on_one_side_and_not_on_the_other(workloads, here, case):
    name, maker, yes, no = case
    other, extents = OTHER_SIDE.get(name, (maker, no))
    answer = holds(name, here(getattr(workloads, maker)(*yes)))
    denied = holds(name, here(getattr(workloads, other)(*extents)))
    assert answer is not None
    assert denied is not None
    assert (answer[0], denied[0]) == (True, False)
    assert answer[1]
    assert denied[1]


def test_every_condition_is_tested():
    assert {case[0] for case in CASES} | OF_THE_KERNEL == set(Condition)


def test_serialised_wgmma_are_a_condition_on_the_kernel(workloads, here):
    full = workloads.product(64, 64, 64)
    answers = [
        holds(Condition.SERIALISED_WGMMA, here(full, serialised_wgmma=found)) for found in (True, False)
    ]
    assert answers == [
        (True, "each wgmma waits for the one before it"),
        (False, "no wgmma waits for the one before it"),
    ]


def test_the_grid_is_compared_with_the_device(workloads, here):
    full = workloads.relu(64)
    few = [holds(Condition.FEW_CTAS, here(full, ctas=ctas)) for ctas in (131.0, 132.0)]
    assert few == [
        (True, "131 CTAs for 132 multiprocessors"),
        (False, "132 CTAs for 132 multiprocessors"),
    ]
    waves = [
        holds(Condition.SEVERAL_WAVES, here(full, ctas=ctas, resident_ctas=2)) for ctas in (1056.0, 1055.0)
    ]
    assert [answer[0] for answer in waves] == [True, False]
    assert waves[0][1] == "1,056 CTAs, of which the device holds 264 at once"
    unknown = holds(Condition.SEVERAL_WAVES, here(full, ctas=1056.0))
    assert unknown == (False, "1,056 CTAs, of which the device holds 1,056 at once")


def test_what_nothing_tells_is_neither_true_nor_false(workloads, here):
    rows, nothing = workloads.row_sum(64, 64), workloads.of([], [])
    for name in Condition:
        assert holds(name, here(nothing)) is None, name
    for name in (Condition.FEW_ROWS, Condition.ROWS_FILL_DEVICE):
        assert holds(name, here(rows, sms=0)) is None
    assert holds(Condition.FEW_CTAS, here(rows, sms=0, ctas=8.0)) is None
    assert holds(Condition.ROW_FITS_SHARED, here(rows, architecture="sm_1")) is None


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_condition_on_rows_is_false_where_none_are_reduced(workloads, here, name):
    assert holds(name, here(workloads.relu(64))) == (False, "no rows are reduced")


@pytest.mark.parametrize("name", OF_A_PRODUCT)
def test_a_condition_on_a_product_is_false_without_one_and_unknown_inside_a_convolution(
    workloads, here, name
):
    full = workloads.relu(64)
    assert holds(name, here(full)) == (False, "there is no matrix product")
    assert holds(name, here(full, kind=WorkloadClass.CONVOLUTION)) is None
    fused = here(full, kind=WorkloadClass.FUSED)
    inside = replace(fused, facts=replace(fused.facts, parts=(WorkloadClass.ATTENTION,)))
    assert holds(name, inside) is None


def test_the_figure_decides_in_words(workloads, here):
    assert holds(Condition.FEW_ROWS, here(workloads.row_sum(1, 64))) == (
        True,
        "1 row for 132 multiprocessors",
    )
    assert holds(Condition.LONG_K, here(workloads.product(64, 64, 4096))) == (True, "sums of 4,096 terms")
    assert holds(Condition.SEVERAL_PASSES, here(workloads.row_sum(64, 64)))[1] == "a row needs one pass"
    assert holds(Condition.EPILOGUE, here(workloads.product(64, 64, 64)))[1] == (
        "no point-wise operations follow the product"
    )


def test_sizes_are_those_of_the_full_problem(workloads, here):
    small = here(workloads.row_sum(4, 64))
    both = replace(small, facts=replace(small.facts, full=workloads.row_sum(4096, 64)))
    assert holds(Condition.FEW_ROWS, small)[0]
    assert not holds(Condition.FEW_ROWS, both)[0]


@pytest.mark.parametrize(
    ("maker", "extents", "fits"),
    [
        ("relu", (3, 4), True),  # dense, so the rows may be crossed
        ("row_sum", (4, 1023), False),  # a row may not
        ("row_sum", (1023, 4), True),
        ("product", (64, 63, 64), True),  # the larger factor's innermost extent is 64
        ("product", (64, 64, 63), False),
    ],
)
def test_vectors_fit_where_the_contiguous_extent_is_whole(workloads, here, maker, extents, fits):
    assert holds(Condition.VECTORS_FIT, here(getattr(workloads, maker)(*extents)))[0] is fits


def test_a_tensor_with_gaps_has_vectors_along_its_contiguous_dimension_only(workloads, here):
    full = workloads.relu(8, 6)
    gaps = TensorSpec(shape=(8, 6), dtype="float32", strides=(16, 1))
    view = replace(full, graph=replace(full.graph, inputs=(Value(name="x", spec=gaps),)))
    assert holds(Condition.VECTORS_FIT, here(full))[0]
    assert holds(Condition.VECTORS_FIT, here(view)) == (False, "6 contiguous elements, vectors of 4")
    halves = workloads.relu(12, dtype="float16")
    assert holds(Condition.VECTORS_FIT, here(halves)) == (False, "12 contiguous elements, vectors of 8")

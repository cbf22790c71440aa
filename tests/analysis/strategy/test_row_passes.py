"""Times that rows are asked of global memory, with parameters that hide some of them."""

from __future__ import annotations

import math

import pytest

from cutegen_nb.analysis.strategy.row_passes import row_passes
from cutegen_nb.core.graph import Node, Ref, TensorSpec, Value
from cutegen_nb.core.profile import Access, Counters, LaunchProfile, Profile, ProfileSource

ROWS, COLUMNS = 64, 256
ROW_SECTORS = ROWS * COLUMNS * 4 // 32
"""Sectors of all rows, each asked for once."""
WEIGHT_SECTORS = COLUMNS * 4 // 32


def spec(*shape):
    strides = tuple(math.prod(shape[at + 1 :]) for at in range(len(shape)))
    return TensorSpec(shape=shape, dtype="float32", strides=strides)


@pytest.fixture
def norm(workloads):
    """A norm of rows with a weight for each column."""
    mean = Node(
        name="mean", op="aten.mean.dim", args=(Ref("x"), (1,), True), kwargs=(), outputs=(spec(ROWS, 1),)
    )
    out = Node(
        name="out", op="aten.mul.Tensor", args=(Ref("x"), Ref("w")), kwargs=(), outputs=(spec(ROWS, COLUMNS),)
    )
    given = [Value(name="x", spec=spec(ROWS, COLUMNS))]
    return workloads.of(given, [mean, out], parameters=(Value(name="w", spec=spec(COLUMNS)),))


def launch(asked, distinct, stored=0):
    """A launch that asks for so many sectors, of which so many are different."""
    accesses = {"load": Access(requests=1, bytes=32 * asked, passes=asked, ideal=asked)}
    if stored:
        accesses["store"] = Access(requests=1, bytes=32 * stored, passes=stored, ideal=stored)
    counters = Counters(gmem_load_bytes=32 * asked, gmem_store_bytes=32 * stored, gmem_accesses=accesses)
    return LaunchProfile(
        kernel="k", grid=(ROWS, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, counters=counters,
        gmem_distinct_sectors=distinct,
    )  # fmt: skip


def passes(run, *launches):
    return row_passes(Profile(source=ProfileSource.SIMULATED, device="", launches=launches), run)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_weights_asked_for_in_each_row_leave_the_passes_certain(norm, times):
    asked = times * ROW_SECTORS + ROW_SECTORS  # each row asks for the weight too
    whole = launch(asked, ROW_SECTORS + WEIGHT_SECTORS)
    assert passes(norm, whole) == (pytest.approx(times), pytest.approx(times))


def test_weights_kept_for_several_rows_leave_a_range(norm):
    """Two passes over the rows and the weight once, or one pass and the weight many times: both may be."""
    least, most = passes(norm, launch(ROW_SECTORS * 3 // 2, ROW_SECTORS + WEIGHT_SECTORS))
    assert least == 1
    assert most == pytest.approx(1.5 - WEIGHT_SECTORS / ROW_SECTORS)


def test_two_launches_that_go_through_all_rows_are_two_passes_at_least(norm):
    both = launch(ROW_SECTORS, ROW_SECTORS + WEIGHT_SECTORS)
    assert passes(norm, both, both)[0] == 2


def test_what_a_launch_stores_is_not_what_it_loads(norm):
    """The rows' sectors are those of the results; no more than the weight was loaded."""
    writes = launch(WEIGHT_SECTORS, ROW_SECTORS + WEIGHT_SECTORS, stored=ROW_SECTORS)
    reads = launch(ROW_SECTORS, ROW_SECTORS + WEIGHT_SECTORS)
    assert passes(norm, reads, writes)[0] == 1


def test_copies_count_as_loads_and_atomics_do_not(norm):
    access = Access(requests=1, bytes=1, passes=1, ideal=2 * ROW_SECTORS)
    for kind, expected in (("async-copy", (1.0, 1.0)), ("atomic", None)):
        counters = Counters(gmem_accesses={kind: access})
        made = LaunchProfile(
            kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=counters,
            gmem_distinct_sectors=ROW_SECTORS + WEIGHT_SECTORS,
        )  # fmt: skip
        assert passes(norm, made) == expected


def test_products_have_no_rows_that_pass(workloads):
    assert passes(workloads.product(64, 64, 64), launch(100, 100)) is None
    assert passes(workloads.product(64, 1, 64), launch(100, 100)) is None

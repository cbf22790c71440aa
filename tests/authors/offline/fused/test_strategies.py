"""The ladder of strategies follows from rows, columns and what is read twice."""

import pytest

from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.fused.strategies import ladder
from cutegen_nb.authors.offline.fused.variants import CTA_PER_ROW, ONE_PASS, SPLIT, VECTORISE, WARP_PER_ROW
from cutegen_nb.authors.offline.graph.reading import read


def steps(traced, value, *inputs):
    found = ladder(plan(read(traced(value, *inputs))))
    return found.start, [one.name for one in found.strategies]


@pytest.mark.parametrize(("columns", "wider"), [(256, WARP_PER_ROW), (32768, CTA_PER_ROW)])
def test_short_rows_get_a_warp_and_long_ones_a_cta(traced, columns, wider):
    start, names = steps(traced, "x.sum(1)", f"torch.rand(1000, {columns})")
    assert start.lanes == "thread"
    assert names[0] == wider


def test_few_rows_are_shared_by_ctas_from_the_start(traced):
    start, names = steps(traced, "x.sum(1)", "torch.rand(4, 1000000)")
    assert (start.lanes, start.split) == ("cta", True)
    assert VECTORISE in names


def test_one_pass_is_for_rows_that_are_read_twice(traced):
    assert ONE_PASS in steps(traced, "torch.softmax(x, 1)", "torch.rand(1000, 256)")[1]
    assert ONE_PASS not in steps(traced, "x.sum(1)", "torch.rand(1000, 256)")[1]


def test_few_strided_rows_are_split(traced):
    assert SPLIT in steps(traced, "x.sum(0)", "torch.rand(100000, 64)")[1]


def test_a_restated_strategy_keeps_its_place(traced):
    found = ladder(plan(read(traced("x.sum(1)", "torch.rand(1000, 256)"))))
    name = found.strategies[1].name
    assert found.restated(name, "Other words.").strategies[1].statement == "Other words."

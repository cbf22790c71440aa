"""Rows in shared memory: one CTA's, or a cluster's."""

import ast

import pytest

from cutegen_nb.authors.offline.fused.variants import CLUSTER, ON_CHIP


@pytest.mark.parametrize(
    ("step", "columns", "shared_by_ctas"), [(ON_CHIP, 20000, False), (CLUSTER, 393216, True)]
)
def test_a_row_is_copied_once_and_read_from_shared_memory(emitted, step, columns, shared_by_ctas):
    _, (text,) = emitted("torch.softmax(x, 1)", [f"torch.rand(4096, {columns})"], step)
    ast.parse(text.source)
    assert "cp_async" in text.source
    assert ("cluster" in text.source) is shared_by_ctas


def test_a_row_that_is_read_once_stays_a_plain_kernel(emitted):
    _, (text,) = emitted("x.sum(1)", ["torch.rand(4096, 20000)"], ON_CHIP)
    assert "cp_async" not in text.source


def of_softmax(emitted, value, given="torch.rand(4096, 393216)"):
    _, (text,) = emitted(value, [given], CLUSTER)
    ast.parse(text.source)
    return text.source


def test_a_softmax_meets_once_and_keeps_its_exponentials_in_place_of_the_row(emitted):
    source = of_softmax(emitted, "torch.softmax(x, 1)")
    assert source.count("cute.arch.cluster_arrive()") == 1
    assert "cute.autovec_copy(rX, sX[None, tidx, v])" in source
    assert "power = x if cutlass.const_expr(v < KEPT) else cute.math.exp(x - own_amax)" in source
    assert "rOut[j] = power * rescale * per_sum_1" in source


@pytest.mark.parametrize(
    ("value", "given"),
    [
        ("torch.log_softmax(x, 1)", "torch.rand(4096, 393216)"),
        ("torch.softmax(x, 1) + x", "torch.rand(4096, 393216)"),
        ("torch.softmax(x, 1)", "torch.rand(4096, 393216).half()"),
    ],
    ids=["no exponentials stored", "elements needed again", "16 bits would round them"],
)
def test_a_row_stays_as_it_is_where_its_exponentials_are_not_enough(emitted, value, given):
    source = of_softmax(emitted, value, given)
    assert source.count("cute.arch.cluster_arrive()") == 1
    assert "sX[None, tidx, v])" not in source.replace("to_sX, gX[row, (None, chunk)], sX[None, tidx, v])", "")


def test_reductions_that_do_not_depend_on_a_maximum_meet_one_by_one(emitted):
    source = of_softmax(emitted, "x / (x.sum(1, keepdim=True) + x.amax(1, keepdim=True))")
    assert "own_" not in source

"""Rows of a reduction and extents of a product, from the traced graph."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.problem.extents import (
    NAMES,
    bytes_asked_once,
    largest_given,
    named_extents,
    product_of,
    rows_of,
)
from cutegen_nb.core.graph import Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass


def spec(*shape, strides=None, dtype="float32"):
    dense, step = [], 1
    for extent in reversed(shape):
        dense.insert(0, step)
        step *= extent
    return TensorSpec(shape=shape, dtype=dtype, strides=strides or tuple(dense))


def value(name, *shape, **more):
    return Value(name=name, spec=spec(*shape, **more))


def node(op, args, *shape, name="n"):
    return Node(name=name, op=f"aten.{op}", args=args, kwargs=(), outputs=(spec(*shape),))


X = Ref("x")


@pytest.mark.parametrize(
    ("shape", "made", "expected"),
    [
        # Rows, their length, whether they are contiguous.
        ((8, 16), node("sum.dim_IntList", (X, (1,)), 8), (8, 16, True)),
        ((8, 16), node("sum.dim_IntList", (X, (-1,)), 8), (8, 16, True)),
        ((8, 16), node("sum.dim_IntList", (X, (0,)), 16), (16, 8, False)),
        ((8, 16), node("sum.default", (X,)), (1, 128, True)),
        ((2, 4, 8), node("mean.dim", (X, (1, 2)), 2), (2, 32, True)),
        ((2, 4, 8), node("amax.default", (X, (1,), True), 2, 1, 8), (16, 4, False)),
        ((2, 4, 8), node("argmax.default", (X, 2), 2, 4), (8, 8, True)),
        ((8, 16), node("linalg_vector_norm.default", (X, 2, (1,)), 8), (8, 16, True)),
        ((8, 16), node("linalg_vector_norm.default", (X, 2)), (1, 128, True)),
        ((8, 16), node("_softmax.default", (X, 1, False), 8, 16), (8, 16, True)),
        # A dimension of one element is no obstacle to contiguity.
        ((8, 16, 1), node("sum.dim_IntList", (X, (1,)), 8, 1), (8, 16, True)),
    ],
)
def test_rows_follow_from_the_dimensions_that_are_reduced(workloads, shape, made, expected):
    found = rows_of(workloads.of([value("x", *shape)], [made]))
    assert (found.count, found.length, found.contiguous) == expected
    assert found.size_bytes == 4 * found.length


def test_a_transposed_tensor_has_its_rows_along_its_strides(workloads):
    x = value("x", 8, 16, strides=(1, 8))
    found = rows_of(workloads.of([x], [node("sum.dim_IntList", (X, (1,)), 8)]))
    assert (found.count, found.contiguous) == (8, False)


def test_statistics_over_the_same_rows_are_counted(workloads):
    nodes = [
        node("mean.dim", (X, (1,), True), 8, 1, name="mean"),
        node("sub.Tensor", (X, Ref("mean")), 8, 16, name="centred"),
        node("sum.dim_IntList", (Ref("centred"), (1,), True), 8, 1, name="sum"),
        node("div.Tensor", (Ref("centred"), Ref("sum")), 8, 16, name="out"),
    ]
    found = rows_of(workloads.of([value("x", 8, 16)], nodes))
    assert (found.statistics, found.elementwise_result) == (2, True)
    assert rows_of(workloads.row_sum(8, 16)).statistics == 1
    assert not rows_of(workloads.row_sum(8, 16)).elementwise_result
    assert rows_of(workloads.softmax(8, 16)).statistics == 2


def test_the_maximum_of_two_tensors_reduces_nothing(workloads):
    both = workloads.of([value("x", 8, 16), value("y", 8, 16)], [node("max.other", (X, Ref("y")), 8, 16)])
    assert rows_of(both) is None
    assert rows_of(workloads.relu(8)) is None


def test_a_product_with_a_vector_counts_as_rows_and_one_of_matrices_does_not(workloads):
    found = rows_of(workloads.product(64, 1, 32))
    assert (found.count, found.length, found.contiguous) == (64, 32, True)
    assert rows_of(workloads.product(64, 2, 32)) is None


@pytest.mark.parametrize(
    ("given", "made", "expected"),
    [
        ([("a", 4, 6), ("b", 6, 8)], node("mm.default", (Ref("a"), Ref("b")), 4, 8), (4, 8, 6, 1)),
        ([("a", 3, 4, 6), ("b", 3, 6, 8)], node("bmm.default", (Ref("a"), Ref("b")), 3, 4, 8), (4, 8, 6, 3)),
        (
            [("c", 8), ("a", 4, 6), ("b", 6, 8)],
            node("addmm.default", (Ref("c"), Ref("a"), Ref("b")), 4, 8),
            (4, 8, 6, 1),
        ),
        ([("a", 4, 6), ("b", 6)], node("mv.default", (Ref("a"), Ref("b")), 4), (4, 1, 6, 1)),
        ([("a", 6), ("b", 6)], node("dot.default", (Ref("a"), Ref("b"))), (1, 1, 6, 1)),
    ],
)
def test_a_products_extents_are_those_of_its_factors(workloads, given, made, expected):
    found = product_of(workloads.of([value(name, *shape) for name, *shape in given], [made]))
    assert (found.m, found.n, found.k, found.batch) == expected
    assert found.outputs == expected[0] * expected[1] * expected[3]


def test_of_several_products_the_one_with_most_arithmetic_counts(workloads):
    nodes = [
        node("mm.default", (Ref("a"), Ref("b")), 4, 100, name="wide"),
        node("mm.default", (Ref("wide"), Ref("c")), 4, 5, name="long"),
    ]
    both = workloads.of([value("a", 4, 6), value("b", 6, 100), value("c", 100, 5)], nodes)
    assert product_of(both).n == 100
    assert product_of(workloads.relu(8)) is None


def test_extents_have_names_for_the_report_and_zero_where_there_is_no_such_part(workloads):
    def facts(full, kind=WorkloadClass.OTHER):
        return ProblemFacts(workload_class=kind, full=full, scaled=full, dtype="float32")

    assert named_extents(facts(workloads.relu(8))) == dict.fromkeys(NAMES, 0)
    assert named_extents(facts(workloads.row_sum(8, 16))) == {
        **dict.fromkeys(NAMES, 0), "rows": 8, "columns": 16,
    }  # fmt: skip
    assert named_extents(facts(workloads.product(4, 8, 6))) == {
        **dict.fromkeys(NAMES, 0), "batch": 1, "m": 4, "n": 8, "k": 6,
    }  # fmt: skip
    scores = workloads.of(
        [value("q", 3, 4, 64), value("k", 3, 64, 4)], [node("bmm.default", (Ref("q"), Ref("k")), 3, 4, 4)]
    )
    assert named_extents(facts(scores, WorkloadClass.ATTENTION))["head"] == 64


def test_parameters_that_rows_share_are_asked_for_in_each_row(workloads):
    x, weight, scalar = value("x", 8, 16), value("w", 16), value("s")
    nodes = [node("mul.Tensor", (X, Ref("w")), 8, 16)]
    shared = workloads.of([x], nodes, parameters=(weight, scalar))
    assert bytes_asked_once(shared) == 4 * (128 + 128 + 1)
    apart = workloads.of([x], nodes, parameters=(value("w", 7),))
    assert bytes_asked_once(apart) == 4 * (128 + 7)
    assert bytes_asked_once(workloads.of([], [])) == 0
    assert largest_given(shared) == x.spec
    assert largest_given(workloads.of([], [])) is None


def test_the_largest_tensor_is_that_with_the_most_bytes(workloads):
    small = replace(value("x", 100), spec=spec(100, dtype="int8"))
    assert largest_given(workloads.of([small], [], parameters=(value("w", 50),))) == spec(50)

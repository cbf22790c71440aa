"""A traced graph becomes a program of operations with extents at both sizes."""

from dataclasses import replace

import pytest

from cutegen_nb.authors.offline.graph.reading import check_alike, identifier, read
from cutegen_nb.core.errors import Declined


def test_a_softmax_is_two_reductions_and_loops_between_them(traced):
    program = read(traced("torch.softmax(x, 1)", "torch.rand(4096, 3000)"))
    assert [op.reduction for op in program.ops.values() if op.reduction] == ["max", "sum"]
    (shape,) = {program.shape(name) for name in program.outputs}
    assert [extent.full for extent in shape] == [4096, 3000]
    assert program.arguments == ("x",)


def test_what_no_output_needs_is_left_out(traced):
    program = read(traced("(x.sum(1), torch.relu(x))[1]", "torch.rand(64, 32)"))
    assert [op.op for op in program.ops.values()] == ["relu"]


@pytest.mark.parametrize(
    ("name", "made"), [("x", "x"), ("class", "v_class"), ("a.b", "a_b"), ("1x", "v_1x"), ("", "value")]
)
def test_a_name_becomes_an_identifier_that_shadows_nothing(name, made):
    assert identifier(name) == made


def test_a_reference_that_changes_with_its_size_is_declined(traced):
    facts = traced("torch.relu(x) + 1", "torch.rand(64, 32)")
    graph = facts.scaled.graph
    other = replace(facts, scaled=replace(facts.scaled, graph=replace(graph, nodes=graph.nodes[:1])))
    with pytest.raises(Declined, match="different operations"):
        check_alike(other)


def test_an_operation_without_a_rule_is_named(traced):
    with pytest.raises(Declined, match="sort"):
        read(traced("torch.sort(x, 1)[0]", "torch.rand(64, 32)"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("x.slice_scatter(x[:2] * 2, 0, 0, 2)", "filled piece by piece"),
        ("x + torch.rand_like(x)", "random numbers"),
    ],
)
def test_what_is_not_written_is_named(traced, value, reason):
    with pytest.raises(Declined, match=reason):
        read(traced(value, "torch.randn(4, 3, 16, 16)"))

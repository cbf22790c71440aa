"""Common parts of row kernels."""

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, apply
from cutegen_nb.authors.offline.fused.loops import loop_nest
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.fused.rows_text import definitions, is_strided
from cutegen_nb.authors.offline.graph.reading import read


def test_a_reduction_over_the_first_dimension_is_strided(traced):
    for value, strided in (("x.sum(0)", True), ("x.sum(1)", False), ("x.sum((0, 1))", False)):
        (kernel,) = plan(read(traced(value, "torch.rand(64, 32)"))).kernels
        assert is_strided(kernel, loop_nest(kernel)) is strided, value


def test_names_are_bound_to_their_values():
    x = Leaf("x", ValueType.F32)
    assert definitions({"row0": apply("*", x, x)}) == ["row0 = x * x"]
    assert definitions({}) == []

"""Accumulators: starts, updates, and pairs that share one reading."""

import pytest

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType
from cutegen_nb.authors.offline.fused.accumulators import Reduction, state_of, states
from cutegen_nb.authors.offline.fused.plan import plan
from cutegen_nb.authors.offline.graph.reading import read

X = Leaf("x", ValueType.F32)


@pytest.mark.parametrize(
    ("how", "start"), [("sum", "0.0"), ("prod", "1.0"), ("max", 'float("-inf")'), ("min", 'float("inf")')]
)
def test_an_accumulator_starts_at_its_identity(how, start):
    state = state_of(Reduction(name="r", how=how, expr=X, dtype="float32"))
    assert state.starts == [f"r = cutlass.Float32({start})"]
    assert not state.needs_place


def test_of_equal_values_the_first_column_wins():
    state = state_of(Reduction(name="r", how="argmax", expr=X, dtype="int64"))
    assert state.needs_place
    assert state.parts[1].start == "2**31 - 1"


@pytest.mark.parametrize(("value", "joint"), [("torch.softmax(x, 1)", "softmax"), ("x.var(1)", "moments")])
def test_two_dependent_reductions_run_as_one_only_where_asked(traced, value, joint):
    (kernel,) = plan(read(traced(value, "torch.rand(64, 32)"))).kernels
    apart, together = states(kernel.passes, merge=False), states(kernel.passes, merge=True)
    assert [len(group) for group in apart] == [1, 1]
    assert [[state.how for state in group] for group in together] == [[joint]]


def test_a_block_has_registers_of_its_own():
    state = state_of(Reduction(name="r", how="sum", expr=X, dtype="float32"))
    assert state.of_block().names == ("r_block",)
    assert state.is_float_sum

"""Parts that are constant along a row move before its loop."""

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, apply, leaves, number
from cutegen_nb.authors.offline.expressions.hoisting import Hoist

X, MEAN, SCALE = (Leaf(name, ValueType.F32) for name in ("x", "mean", "scale"))
VARYING = frozenset({"x"})


def test_a_constant_part_is_computed_once_and_named():
    constant = apply("*", MEAN, SCALE)
    before, inside = Hoist().split({"y": apply("-", X, constant)}, VARYING)
    assert list(before.values()) == [constant]
    assert leaves(inside["y"]) == {"x", *before}


def test_a_second_loop_uses_the_name_of_the_first():
    hoist, constant = Hoist(), apply("*", MEAN, SCALE)
    first, _ = hoist.split({"y": apply("-", X, constant)}, VARYING)
    again, inside = hoist.split({"z": apply("+", X, constant)}, VARYING)
    assert again == {}
    assert leaves(inside["z"]) == {"x", *first}


def test_numbers_and_varying_parts_stay_where_they_are():
    before, inside = Hoist().split(
        {"y": apply("+", X, apply("+", number(1, ValueType.F32), number(2, ValueType.F32)))}, VARYING
    )
    assert before == {}
    assert leaves(inside["y"]) == {"x"}

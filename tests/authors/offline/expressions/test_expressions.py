"""Expressions become text: shared work once, brackets where they are needed."""

import pytest

from cutegen_nb.authors.offline.expressions.expressions import (
    Apply,
    Leaf,
    ValueType,
    apply,
    body,
    cast,
    grouped,
    number,
)


def test_shared_work_is_written_once_and_operators_keep_their_order():
    x, y = Leaf("x", ValueType.F32), Leaf("y", ValueType.F32)
    difference = apply("-", x, apply("-", y, number(1, ValueType.F32)))
    lines, values = body({"a": apply("*", difference, difference), "b": apply("neg", apply("+", x, y))})
    assert lines == ["t0 = x - (y - 1.0)"]
    assert values == {"a": "t0 * t0", "b": "-(x + y)"}


def test_a_flag_becomes_a_number_and_a_number_a_flag():
    flag = cast(Leaf("n", ValueType.I32), ValueType.BOOL)
    assert isinstance(flag, Apply)
    assert body({"a": flag})[1] == {"a": "(n != 0)"}
    assert body({"a": cast(flag, ValueType.F32)})[1] == {"a": "(n != 0).to(cutlass.Float32)"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "x"),
        ("f(a, b)", "f(a, b)"),
        ("f(a) + g(b)", "(f(a) + g(b))"),
        ("(a + b)", "(a + b)"),
        ("-x", "(-x)"),
    ],
)
def test_brackets_are_added_where_an_operator_would_bind_wrongly(text, expected):
    assert grouped(text) == expected

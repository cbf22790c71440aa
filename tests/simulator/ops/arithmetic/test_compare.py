"""Comparisons of floats, NaN included, and of packed halves."""

import math

import pytest


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize(
    "name", ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
)
def test_float_comparisons_with_nan(machine, oracle, kind, name):
    columns = oracle.operands((kind, kind), 300, name)
    got = oracle.run(machine, f"setp.{name}.{kind} {{d}}, {{0}}, {{1}};", (kind, kind), "pred", columns)
    ordered = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
               "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}  # fmt: skip
    for row, result in zip(columns, got, strict=True):
        a, b = (oracle.number(one, kind) for one in row)
        nan = math.isnan(a) or math.isnan(b)
        if name in {"num", "nan"}:
            want = nan == (name == "nan")
        else:
            want = name.endswith("u") if nan else ordered[name[:2]](a, b)
        assert result == int(want), (a, b)


def test_packed_comparisons_give_two_predicates(machine, oracle):
    columns = oracle.operands(("f16", "f16", "f16", "f16"), 300, "pairs")
    rows = [(a | b << 16, c | d << 16) for a, b, c, d in columns]
    body = "setp.ne.b32 %p61, {0}, {0}; setp.lt.or.f16x2 %p62|%p63, {0}, {1}, %p61; selp.b32 %r61, 1, 0, %p62; selp.b32 {d}, 2, 0, %p63; or.b32 {d}, {d}, %r61;"
    got = oracle.run(machine, body, ("b32", "b32"), "b32", rows)
    sets = oracle.run(machine, "set.ge.f16x2.f16x2 {d}, {0}, {1};", ("b32", "b32"), "b32", rows)
    for row, pair, both in zip(columns, got, sets, strict=True):
        a, b, c, d = (oracle.number(one, "f16") for one in row)
        assert pair == int(a < c) + 2 * int(b < d)
        assert both == (0x3C00 if a >= c else 0) | (0x3C00 if b >= d else 0) << 16

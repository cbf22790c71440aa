"""Two numbers become a packed pair."""

import math

import pytest


def clamped(value, *, sat=False, relu=False, greatest=None):
    if math.isnan(value):
        return 0.0 if sat else value
    if sat:
        return min(max(value, 0.0), 1.0) + 0.0
    if relu and value <= 0:
        return 0.0
    if greatest is not None and abs(value) > greatest:
        return math.copysign(greatest, value)
    return value


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize(("mode", "extra"), [("rn", ""), ("rz", ""), ("rn", ".relu"), ("rz", ".satfinite")])
def test_two_singles_become_a_packed_pair(machine, oracle, half, mode, extra):
    columns = oracle.operands(("f32", "f32"), 300, half)
    got = oracle.run(
        machine, f"cvt.{mode}{extra}.{half}x2.f32 {{d}}, {{0}}, {{1}};", ("f32", "f32"), "b32", columns
    )
    greatest = {"f16": 65504.0, "bf16": 2.0**128 - 2.0**120}[half]
    limits = {"": {}, ".relu": {"relu": True}, ".satfinite": {"greatest": greatest}}[extra]
    for row, result in zip(columns, got, strict=True):
        values = [clamped(oracle.number(one, "f32"), **limits) for one in row]
        high, low = (oracle.float_result("cvt", [one], half, mode) for one in values)
        assert result == high << 16 | low, values

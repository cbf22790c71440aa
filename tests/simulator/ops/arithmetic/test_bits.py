"""Permutations of bytes."""

import pytest

PERMUTE = {
    "f4e": lambda sel, i: (sel + i) & 7, "b4e": lambda sel, i: (sel - i) & 7, "rc8": lambda sel, i: sel,
    "ecl": max, "ecr": min,
    "rc16": lambda sel, i: (sel & 1) * 2 + (i & 1),
}  # fmt: skip


@pytest.mark.parametrize("mode", PERMUTE)
def test_permutations_by_mode(machine, oracle, mode):
    columns = oracle.operands(("b32", "b32", "b32"), 200, mode)
    got = oracle.run(machine, f"prmt.b32.{mode} {{d}}, {{0}}, {{1}}, {{2}};", ("b32",) * 3, "b32", columns)
    for (a, b, c), result in zip(columns, got, strict=True):
        joined = a | b << 32
        want = sum((joined >> 8 * PERMUTE[mode](c & 3, i) & 255) << 8 * i for i in range(4))
        assert result == want

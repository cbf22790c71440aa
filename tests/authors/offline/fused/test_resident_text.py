"""Vectors of a row that stays on the chip, and division by a row's number."""

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, apply, body
from cutegen_nb.authors.offline.fused.resident_text import by_reciprocals
from cutegen_nb.authors.offline.fused.variants import ON_CHIP

X, TOTAL = Leaf("x", ValueType.F32), Leaf("total", ValueType.F32)
VARYING = frozenset({"x"})


def test_a_division_by_a_rows_number_becomes_a_product():
    changed, lines = by_reciprocals({"y": apply("/", X, TOTAL)}, VARYING)
    assert lines == ["per_total = 1.0 / total"]
    assert body(changed)[1]["y"] == "x * per_total"


def test_a_division_by_an_element_and_one_before_the_loop_stay():
    exprs = {"y": apply("/", TOTAL, X), "z": apply("/", TOTAL, TOTAL)}
    changed, lines = by_reciprocals(exprs, VARYING)
    assert lines == []
    assert body(changed)[1]["y"] == "total / x"


def test_rows_of_an_odd_length_begin_anywhere_in_a_vector(emitted):
    _, (even,) = emitted("torch.softmax(x, 1)", ["torch.rand(4096, 20000)"], ON_CHIP)
    _, (odd,) = emitted("torch.softmax(x, 1)", ["torch.rand(4096, 20001)"], ON_CHIP)
    assert "chunks = cols // VEC" in even.source
    assert even.source != odd.source

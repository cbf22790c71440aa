"""Extents hold at both sizes, and operations name what they use."""

from cutegen_nb.authors.offline.graph.ir import ONE, Count, Extent, Name, Op, elements


def test_an_extent_divides_another_only_at_both_sizes():
    assert Extent(8, 4).divides(Extent(64, 8))
    assert not Extent(8, 4).divides(Extent(64, 6))
    assert not Extent(0, 4).divides(Extent(64, 8))


def test_products_and_quotients_are_taken_at_both_sizes():
    assert Extent(8, 4) * Extent(3, 2) == Extent(24, 8)
    assert Extent(24, 8) // Extent(3, 2) == Extent(8, 4)
    assert elements([Extent(8, 4), Extent(3, 2)]) == Extent(24, 8)
    assert elements([]) == ONE


def test_only_a_dimension_of_one_at_both_sizes_needs_no_index():
    assert ONE.is_one
    assert not Extent(1, 2).is_one


def test_operands_are_the_named_ones_and_a_reduction_knows_its_kind():
    op = Op(
        name="s", op="reduce:max", args=(Name("x"), 1), kwargs=(("other", Name("y")), ("n", Count(ONE))),
        shape=(ONE,), dtype="float32",
    )  # fmt: skip
    assert (op.operands, op.reduction) == (("x", "y"), "max")

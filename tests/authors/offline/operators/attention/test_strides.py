"""Memory of an attention's operands: the views that its kernel reads in place."""

import pytest

from cutegen_nb.authors.offline.operators.attention.matching import attentions_of

ATTENTION = "functional.scaled_dot_product_attention({0}, {0}, {0})"


def first_match(traced, heads, columns, dtype="float16", back=""):
    value = ATTENTION.format(f"({heads})") + back
    facts = traced(value, f"torch.randn(2, 16, {columns}, dtype=torch.{dtype})")
    return attentions_of(facts.full.graph)[0]


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("heads", "columns", "in_place"),
    [
        ("x.view(2, 16, 4, -1).transpose(1, 2)", 64, True),
        ("x[..., 64:].view(2, 16, 4, -1).transpose(1, 2)", 128, True),
        ("x[:, :8]", 64, True),
        ("x.view(2, 4, 16, -1)", 64, False),  # dense
        ("x.view(2, 16, 4, -1).transpose(1, 2)", 48, False),  # 12 columns are 24 bytes
        ("x.view(2, 16, -1, 4).permute(0, 3, 1, 2)", 64, False),  # columns lie apart
        ("x[..., ::2].view(2, 16, 4, -1).transpose(1, 2)", 128, False),  # so do these
    ],
)
def test_views_with_whole_vectors_along_their_columns_are_read_in_place(traced, heads, columns, in_place):
    assert first_match(traced, heads, columns).in_place == in_place


@pytest.mark.parametrize(
    ("back", "order"),
    [
        (".transpose(1, 2)", (0, 2, 1, 3)),
        (".permute(2, 0, 1, 3)", (2, 0, 1, 3)),
        (".transpose(2, 3)", ()),
        ("", ()),
    ],
)
def test_the_output_is_stored_in_an_order_that_keeps_its_columns(traced, back, order):
    assert (
        first_match(traced, "x.view(2, 16, 4, -1).transpose(1, 2)", 64, back=back).attributes.order == order
    )


def test_wide_heads_of_float32_are_dense(traced):
    found = first_match(traced, "x.view(2, 16, 2, -1).transpose(1, 2)", 320, "float32", ".transpose(1, 2)")
    assert (found.in_place, found.attributes.order) == (False, ())

"""Scans with what belongs to them: direction, an element's own value, a mask."""

import math

import pytest

from cutegen_nb.authors.offline.operators.scans.matching import ScanAttributes, scans_of


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("torch.cumsum(x, 1)", ScanAttributes(kind="sum", dim=1)),
        ("torch.cumprod(x, -2)", ScanAttributes(kind="product", dim=0)),
        ("torch.logcumsumexp(x, 1)", ScanAttributes(kind="logsumexp", dim=1)),
        ("torch.cummax(x, 1)[0]", ScanAttributes(kind="maximum", dim=1)),
        ("torch.cummin(x, 1).values", ScanAttributes(kind="minimum", dim=1)),
        (
            "torch.flip(torch.cumsum(torch.flip(x, [1]), 1), [1])",
            ScanAttributes(kind="sum", dim=1, reverse=True),
        ),
        (
            "torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)",
            ScanAttributes(kind="sum", dim=1, exclusive=True),
        ),
    ],
)
def test_the_form_of_a_scan_is_read(traced, value, wanted):
    (match,) = scans_of(traced(value, "torch.rand(64, 33)").full.graph)
    assert match.attributes == wanted


def test_the_identity_changes_no_sum_and_no_product():
    assert [ScanAttributes(kind=kind, dim=0).identity for kind in ("sum", "product")] == [0, 1]


def test_the_identity_changes_no_extreme_and_no_logarithm():
    found = [ScanAttributes(kind=kind, dim=0).identity for kind in ("logsumexp", "maximum", "minimum")]
    assert found == [-math.inf, -math.inf, math.inf]


def test_extremes_whose_places_are_needed_are_none(traced):
    assert scans_of(traced("torch.cummax(x, 1)", "torch.rand(64, 33)").full.graph) == ()


def test_a_slice_that_begins_with_another_number_stays_apart(traced):
    value = "torch.cat((torch.full_like(x[:, :1], 0.5), torch.cumsum(x[:, :-1], 1)), 1)"
    (match,) = scans_of(traced(value, "torch.rand(64, 33)").full.graph)
    assert not match.attributes.exclusive


def test_a_mask_is_the_second_operand(traced):
    (match,) = scans_of(
        traced("torch.cumsum(x * y, 1)", "torch.rand(64, 33)", "torch.rand(64, 33) > 0.5").full.graph
    )
    assert match.attributes.masked
    assert len(match.operands) == 2


def test_a_scan_of_integers_is_none(traced):
    assert scans_of(traced("torch.cumsum(x, 1)", "torch.randint(0, 5, (64, 33))").full.graph) == ()

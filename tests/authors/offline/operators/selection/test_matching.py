"""Selections with what of them is used."""

import pytest

from cutegen_nb.authors.offline.operators.selection.matching import selections_in
from cutegen_nb.core.graph import Ref


@pytest.mark.parametrize(
    ("value", "results"),
    [
        ("torch.topk(x, 3)", (0, 1)),
        ("torch.topk(x, 3).values", (0,)),
        ("torch.topk(x, 3)[1]", (1,)),
    ],
)
def test_only_what_is_used_is_computed(traced, value, results):
    (match,) = selections_in(traced(value, "torch.rand(64, 33)").full.graph)
    assert (match.result, *match.more) == tuple(Ref("topk", at) for at in results)
    assert (match.attributes.values, match.attributes.places) == (0 in results, 1 in results)


@pytest.mark.parametrize(
    ("value", "count", "largest", "last"),
    [
        ("torch.topk(x, 3)", 3, True, True),
        ("torch.topk(x, 4, dim=0)", 4, True, False),
        ("torch.topk(x, k=33, dim=-1, largest=False, sorted=False)", 33, False, True),
    ],
)
def test_the_attributes_are_read(traced, value, count, largest, last):
    (match,) = selections_in(traced(value, "torch.rand(64, 33)").full.graph)
    found = match.attributes
    assert (found.count, found.largest, found.last) == (count, largest, last)

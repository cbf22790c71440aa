"""Strategies of selections are offered by the length of a row."""

import pytest

from cutegen_nb.authors.offline.operators.selection.strategies import BLOCK, WARP
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter


@pytest.mark.parametrize(("length", "offered"), [(64, WARP), (512, WARP), (513, BLOCK), (16384, BLOCK)])
def test_a_long_row_is_given_to_a_cta(traced, length, offered):
    menu = OperatorsWriter().menu(traced("torch.topk(x, 8)", f"torch.rand(64, {length})"))
    assert [item.name for item in menu] == [offered]

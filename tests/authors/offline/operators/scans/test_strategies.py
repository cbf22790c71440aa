"""Strategies of scans are offered by the shape of a row."""

import pytest

from cutegen_nb.authors.offline.operators.scans.strategies import BLOCK, COLUMNS, SPLIT, WARP
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter


@pytest.mark.parametrize(
    ("rows", "cols", "dim", "offered", "missing"),
    [
        (4096, 4096, 1, WARP, SPLIT),
        (2, 1 << 20, 1, SPLIT, COLUMNS),
        (4096, 4096, 0, COLUMNS, BLOCK),
    ],
)
def test_few_long_rows_are_split_and_columns_are_shared(traced, rows, cols, dim, offered, missing):  # noqa: PLR0913, PLR0917 - a row of the table
    names = {
        one.name
        for one in OperatorsWriter().menu(traced(f"torch.cumsum(x, {dim})", f"torch.rand({rows}, {cols})"))
    }
    assert offered in names
    assert missing not in names

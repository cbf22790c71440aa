"""Cells too small for words name runs instead."""

from __future__ import annotations

from cutegen_nb.report.layout.drawing import Content, Grid, Room
from cutegen_nb.report.layout.placing import draw


def test_cells_too_small_for_words_name_runs_instead() -> None:
    grid = Grid(
        title="", rows=1, columns=32, content=lambda _, column: Content(color=0, words=(f"T{column // 16}",))
    )
    drawn = draw(grid, Room(width=260))
    assert not any(cell.text_size for cell in drawn.cells)
    assert [one.text for one in drawn.words if one.text.startswith("T")] == ["T0", "T1"]

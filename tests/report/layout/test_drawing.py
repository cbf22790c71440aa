"""What has no room in a drawing is said."""

from __future__ import annotations

from cutegen_nb.analysis.layout.layout import parse_layout
from cutegen_nb.report.layout.drawing import Room
from cutegen_nb.report.layout.pictures import indices


def test_what_has_no_room_is_said_in_the_picture_and_for_who_cannot_see_it() -> None:
    drawn = indices(parse_layout("(128,256):(256,1)"), room=Room(rows=8, columns=16))
    assert len(drawn.cells) == 128
    assert "rows 8–127 and columns 16–255" in drawn.description
    assert any("Not drawn" in one.text for one in drawn.words)

"""Layouts are read from the text of a traced program."""

from __future__ import annotations

from cutegen_nb.analysis.layout.ir import named, read_layouts
from cutegen_nb.core.layout import LayoutKind

TEXT = """
!tile = !cute.memref<f32, smem, align<16>, "(8,8):(8,1)">
    %0 = cute.make_view(%iter, %lay) : !tile loc(#loc3)
    %1 = cute.make_view(%iter, %lay) : !cute.memref<f32, smem, "(?,8):(8,1)"> loc(#loc3)
    %2 = cute.make_layout(%a, %b) : !cute.layout<"(4,2):(2,1)"> loc("x = cute.make_layout("(#loc4))
    %3 = cute.make_layout(%a, %b) : !cute.layout<"garbage"> loc(#loc9)
    %4 = cute.make_tiled_copy(%atom) : !cute.tiled_copy<broken
#loc1 = loc("k.py":3:4)
#loc3 = loc("tile = make("(#loc1))
#loc4 = loc("k.py":4:4)
"""


def test_what_is_not_understood_is_left_out() -> None:
    found = read_layouts(TEXT, lambda kind, attribute: "")
    assert [(one.kind, one.text, one.file, one.line) for one in found] == [
        (LayoutKind.SHARED, "(8,8):(8,1)", "k.py", 3),
        (LayoutKind.LAYOUT, "(4,2):(2,1)", "k.py", 4),
    ]
    assert read_layouts("", lambda kind, attribute: "") == ()


def test_names_are_those_of_the_assignment_that_a_line_is_in() -> None:
    found = read_layouts(TEXT, lambda kind, attribute: "")
    source = "import cute\n\ntile = make(\n    (8, 8))\nx = 1\n"
    assert [one.name for one in named(found, source)] == ["tile", "tile"]
    assert named(found, "not python (") == ()

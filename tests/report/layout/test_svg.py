"""Drawings as SVG."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout.drawing import WRONG, Weight
from cutegen_nb.report.layout.pictures import picture
from cutegen_nb.report.layout.svg import svg

TILE = LayoutRecord(kind=LayoutKind.SHARED, name="tile", text="(32,32):(32,1)", element="f32", line=7)
LANES = TvLayout(role="source", text="(32,8):(1,32)", tiler="[32:1;8:1]")
ACCESS = replace(TILE, kind=LayoutKind.ACCESS, views=(LANES,), access_bits=32, atom="universal_copy<f32>")
MMA = LayoutRecord(
    kind=LayoutKind.MMA,
    name="tiled_mma",
    atom="sm80.mma<16x8x16>",
    views=(
        TvLayout(role="A", text="((4,8),(2,2,2)):((32,1),(16,8,128))", tiler="[16:1;16:1]"),
        TvLayout(role="B", text="((4,8),(2,2)):((16,1),(8,64))", tiler="[8:1;16:1]"),
        TvLayout(role="C", text="((4,8),(2,2)):((32,1),(16,8))", tiler="[16:1;8:1]"),
    ),
)


def test_an_access_with_conflicts_is_framed_in_the_colour_of_wrong_things() -> None:
    worst, padded = picture(ACCESS), picture(replace(ACCESS, text="(32,32):(33,1)"))
    framed = [cell for cell in worst.cells if cell.content.weight is Weight.WRONG]
    # 32 lanes in the tile, and the one bank that 32 words are asked of.
    assert len(framed) == 33
    assert framed[-1].content.words == ("32",)
    assert "256 passes, 8 at least: bank conflicts: 32 times the least" in worst.description
    assert not [cell for cell in padded.cells if cell.content.weight is Weight.WRONG]
    assert WRONG in svg(worst)


@pytest.mark.parametrize("record", [TILE, ACCESS, MMA, replace(TILE, name="</svg><script>")])
def test_svg_is_well_formed_named_and_escaped(record: LayoutRecord) -> None:
    drawn = picture(record)
    root = ET.fromstring(svg(drawn))
    assert root.get("role") == "img"
    assert (root.get("aria-label") or "").startswith(drawn.title)
    assert root[0].tag.endswith("title")
    assert "script>" not in svg(drawn)
    assert max(float(cell.x + cell.width) for cell in drawn.cells) <= drawn.width + 1

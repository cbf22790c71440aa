"""Drawings as PNG have the shape of the SVG."""

from __future__ import annotations

import struct
from xml.etree import ElementTree as ET

from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout.pictures import picture
from cutegen_nb.report.layout.png import png
from cutegen_nb.report.layout.svg import svg

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


def test_svg_and_png_have_the_same_shape() -> None:
    drawn = picture(MMA)
    box = [float(part) for part in (ET.fromstring(svg(drawn)).get("viewBox") or "").split()]
    width, height = struct.unpack(">II", png(drawn)[16:24])
    assert abs(width / height - box[2] / box[3]) < 0.01

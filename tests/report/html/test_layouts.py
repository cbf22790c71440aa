"""Layouts of a revision before and after."""

from __future__ import annotations

import re
from dataclasses import replace

from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.html import layouts as layout_view
from cutegen_nb.report.markup import Style

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


def evaluation(*layouts: LayoutRecord) -> Evaluation:
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED), summary="", device="simulator (sm_80)", layouts=layouts
    )


def test_a_revision_shows_what_changed_before_and_after_and_names_the_rest() -> None:
    before, after = evaluation(ACCESS, MMA), evaluation(replace(ACCESS, text="(32,32):(33,1)", line=9), MMA)
    html = layout_view.render(after, parent=before, names=("r0", "r1"), style=Style.PAGE, drawn=True)
    assert html.count("<svg") == 1
    assert "1 layout changed from r0 to r1. As before: tiled_mma." in html
    assert "(32,32):(32,1)" in html
    assert "(32,32):(33,1)" in html
    assert "line 9" in html
    in_words = layout_view.render(after, parent=before, names=("r0", "r1"))
    assert "<svg" not in in_words
    assert re.search(r"r0: <code>f32 \(32,32\):\(32,1\).*32 times the least", in_words)
    assert re.search(r"r1: <code>f32 \(32,32\):\(33,1\).*free of bank conflicts", in_words)


def test_a_revision_that_moved_a_line_changed_no_layout() -> None:
    html = layout_view.render(evaluation(replace(MMA, line=99)), parent=evaluation(MMA), names=("r0", "r1"))
    assert html == "<p>No layout changed from r0 to r1.</p>"
    assert layout_view.render(evaluation()) == ""


def test_a_layout_that_is_gone_is_said() -> None:
    html = layout_view.render(evaluation(MMA), parent=evaluation(MMA, TILE), names=("r0", "r1"))
    assert "gone" in html

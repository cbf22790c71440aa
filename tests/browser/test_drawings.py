"""Pictures in a real JupyterLab: they are shown, fit the notebook, and read in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SAMPLES = Path(__file__).parents[1] / "report" / "conftest.py"
DRAWN = """import cutegen_nb
from IPython.display import display
tile = "((64,2),(8,4),(1,4)):((1,512),(64,1024),(0,4096))"
display(cutegen_nb.draw_layout((8, 8), (8, 1), swizzle=(3, 0, 3)))
display(cutegen_nb.draw_layout(tile, element="f16", swizzle="3,4,3", swizzle_bytes=True, banks=True))
display(cutegen_nb.draw_layout("((4,8),(2,2)):((32,1),(16,8))", tile=(16, 8)))
display(cutegen_nb.draw_layout("(32,8):(1,32)", tile=(32, 8), over="(32,32):(32,1)", element="f32"))
"""
PANEL = f"""
import importlib.util, time
from dataclasses import replace
spec = importlib.util.spec_from_file_location("samples", {str(SAMPLES)!r})
samples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(samples)
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live

def layouts(stride):
    text = f"(32,32):({{stride}},1)"
    lanes = TvLayout(role="source", text="(32,8):(1,32)", tiler="[32:1;8:1]")
    mma = (
        TvLayout(role="A", text="((4,8),(2,2,2)):((32,1),(16,8,128))", tiler="[16:1;16:1]"),
        TvLayout(role="B", text="((4,8),(2,2)):((16,1),(8,64))", tiler="[8:1;16:1]"),
        TvLayout(role="C", text="((4,8),(2,2)):((32,1),(16,8))", tiler="[16:1;8:1]"),
    )
    return (
        LayoutRecord(kind=LayoutKind.ACCESS, name="tile", text=text, element="f32", line=21, views=(lanes,),
                     access_bits=32, atom="universal_copy<f32>"),
        LayoutRecord(kind=LayoutKind.MMA, name="tiled_mma", atom="sm80.mma<16x8x16>", line=30, views=mma),
    )

def with_layouts(item, stride):
    attempts = item.attempts
    evaluation = replace(attempts[-1].evaluation, layouts=layouts(stride))
    return replace(item, attempts=(*attempts[:-1], replace(attempts[-1], evaluation=evaluation)))

session = samples.five_rounds()
rounds = tuple(with_layouts(item, 32 if item.number < 2 else 33) for item in session.rounds[:3])
session = replace(session, rounds=rounds)
panel = Panel(lambda message: None)
panel.show(session, Live(ended="It is a recorded session."), None)
panel
"""

CONFLICTS = re.compile("bank conflicts: 32 times the least")

TOO_SMALL = """() => [...document.querySelectorAll('.cgn-panel svg[role=img] text')].filter(
  (e) => e.getBoundingClientRect().width && e.getBoundingClientRect().height < 5).map((e) => e.textContent)"""


def test_layouts_are_drawn_in_a_notebook_and_fit_it(make_notebook):
    notebook = make_notebook([DRAWN])
    notebook.run(0)
    pictures = notebook.page.locator(".jp-OutputArea-output svg, .jp-OutputArea-output img")
    notebook.until(lambda: pictures.count() == 4, what="four pictures")
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        notebook.shot(f"layouts-{theme}", ".jp-OutputArea")
        ends = pictures.evaluate_all("(all) => all.map((e) => e.getBoundingClientRect().right)")
        room = notebook.page.locator(".jp-OutputArea").first.evaluate(
            "(e) => e.getBoundingClientRect().right"
        )
        assert all(end <= room for end in ends), (ends, room)
    assert notebook.errors == []
    assert notebook.outside == []


def test_the_panel_shows_layouts_before_and_after_a_revision(make_notebook):
    notebook = make_notebook([PANEL])
    notebook.run(0)
    panel = notebook.panel(0)
    notebook.until(lambda: panel.count() and panel.get_by_role("tab", name="Layouts").count(), what="the tab")
    drawing = panel.locator("svg[role=img]")
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        panel.get_by_role("tab", name="Layouts").click()
        notebook.until(lambda: drawing.count() == 1, what="the changed layout")
        notebook.expect(panel).to_contain_text("1 layout changed from r1 to r2. As before: tiled_mma.")
        notebook.expect(drawing).to_have_attribute("aria-label", CONFLICTS)
        assert drawing.evaluate("(e) => getComputedStyle(e).color") == panel.evaluate(
            "(e) => getComputedStyle(e).color"
        )
        for width in (700, 1280):
            notebook.page.set_viewport_size({"width": width, "height": 1000})
            notebook.shot(f"panel-{theme}-{width}", ".cgn-panel")
            assert notebook.page.evaluate(TOO_SMALL) == []
            assert panel.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1"), (theme, width)
        panel.get_by_role("tab", name="Roofline").click()
        notebook.page.wait_for_timeout(1500)
        notebook.shot(f"roofline-{theme}", ".cgn-panel")
    assert notebook.errors == []

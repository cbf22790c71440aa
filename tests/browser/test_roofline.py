"""The roofline of measured kernels: pointed at, zoomed, moved and played in order."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.long

BUNDLE = Path(__file__).parents[2] / "notebooks" / "sessions" / "product_sum_h100.cutegen"
SHOWN = f"""
from pathlib import Path
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
from cutegen_nb.store.bundle import read_bundle
panel = Panel(lambda message: None)
session = read_bundle(Path({str(BUNDLE)!r}))
panel.show(session, Live(ended=session.stopped), None)
panel
"""


def spots(panel):
    return panel.locator(".cgn-chart-point")


def test_measured_kernels_are_pointed_at_zoomed_and_played(desk):
    index = desk.add(SHOWN)
    desk.run(index)
    panel = desk.panel(index)
    panel.get_by_role("tab", name="Roofline").click()
    desk.expect(spots(panel)).to_have_count(4)
    desk.expect(panel.locator("img.cgn-roofline")).to_have_count(0)
    desk.expect(panel.locator(".cgn-chart-label").first).to_contain_text("r0")
    told = panel.locator(".cgn-chart-told")
    spots(panel).first.focus()
    desk.expect(told).to_contain_text("r0 first kernel")
    desk.expect(told).to_contain_text("Latency")
    spots(panel).last.hover()
    desk.expect(told).to_contain_text("of roof")
    for theme in ("dark", "light"):
        desk.set_theme(theme)
        desk.shot(f"chart-{theme}", ".cgn-chart-box")

    panel.get_by_role("button", name="Earlier kernel").click()
    desk.expect(spots(panel)).to_have_count(3)
    panel.get_by_role("button", name="Play", exact=True).click()
    desk.expect(panel.locator(".cgn-chart-place")).to_have_text("4 of 4 kernels")
    desk.expect(panel.get_by_role("button", name="Play", exact=True)).to_be_visible()

    chart = panel.locator(".cgn-chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    x, y = box["x"] + box["width"] / 3, box["y"] + box["height"] / 3
    before = [spots(panel).nth(at).get_attribute("cx") for at in (0, 3)]
    desk.page.mouse.move(x, y)
    desk.page.mouse.down()
    desk.page.mouse.up()
    desk.page.mouse.wheel(0, -100)
    desk.expect(spots(panel).first).not_to_have_attribute("cx", before[0])
    zoomed = spots(panel).first.get_attribute("cx")
    desk.page.mouse.down()
    desk.page.mouse.move(x + 40, y)
    desk.page.mouse.up()
    desk.expect(spots(panel).first).not_to_have_attribute("cx", zoomed)
    panel.get_by_role("button", name="Whole chart").click()
    assert [spots(panel).nth(at).get_attribute("cx") for at in (0, 3)] == before
    assert desk.errors == []

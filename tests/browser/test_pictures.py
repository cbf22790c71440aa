"""The pictures of README and documentation, taken in a real JupyterLab: `make pictures` writes them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

FOLDER = os.environ.get("CUTEGEN_PICTURES", "")
ROOT = Path(__file__).parents[2]
GELU = """import torch
import torch.nn.functional as F

def gelu(x):
    return F.gelu(x)

def get_inputs():
    return [torch.randn(1024, 1024)]
"""


@pytest.mark.skipif(not FOLDER, reason="`make pictures` takes them: CUTEGEN_PICTURES names their folder")
def test_a_revision_that_waits_for_a_decision(sit):
    session = sit(problem=GELU, name="gelu")
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    page = session.notebook.page
    session.notebook.set_theme("light")
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.set_viewport_size({"width": 1280, "height": 960})
    session.panel.locator(".cgn-line").evaluate(
        "(e) => { e.style.scrollMarginTop = '12px'; e.scrollIntoView({ block: 'start' }); }"
    )
    page.mouse.move(0, 0)
    page.wait_for_timeout(1000)
    page.screenshot(path=str(ROOT / FOLDER / "panel.png"))


def test_every_picture_that_readme_and_documentation_show_is_there():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r"!\[[^\]]*\]\(([^)#?]+)\)", page.read_text())
        if "://" not in target
    }
    assert shown == set((ROOT / "docs" / "images").iterdir())

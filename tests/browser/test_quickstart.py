"""The newcomer's notebook, run by a person in JupyterLab, and what is left of it in the saved file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

QUICKSTART = Path(__file__).parents[2] / "notebooks" / "01_quickstart.ipynb"


def test_a_newcomer_runs_the_quickstart_and_the_saved_file_shows_every_round(make_notebook, lab, kernel_name):
    cells = json.loads(QUICKSTART.read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    magic = next(i for i, source in enumerate(sources) if source.startswith("%%cutegen"))
    # A store a kernel: the next one would take up the session of this one.
    store = f"quickstart_{kernel_name}"
    sources[magic] = sources[magic].replace("\n", f" --store {store}\n", 1)
    notebook = make_notebook(sources, kernel_name)
    for index in range(magic + 1):
        notebook.run(index)
    panel = notebook.page.locator(".jp-Notebook .jp-Cell").nth(magic).locator(".cgn-panel")
    for number in range(3):
        for name, question in (("Ask", "send the request?"), ("Approve", "build on it?")):
            words = f"r{number} waits for you: {question}"
            notebook.until(lambda words=words: panel.count() and words in panel.inner_text(), 90, words)
            panel.get_by_role("button", name=name, exact=True).click()
    notebook.until(lambda: panel.count() == 0, 60, "the panel to give way to the record")
    for index in range(magic + 1, len(sources)):
        notebook.run(index, timeout_s=90)
        assert not [o for o in notebook.cell(index)["outputs"] if o["output_type"] == "error"]
    assert stored(lab.folder / store) == [(0, 1), (1, 1), (2, 1)]
    set_theme(notebook.page, "Light")
    assert picture_is_replaced(notebook) is False
    set_theme(notebook.page, "Dark")
    assert picture_is_replaced(notebook) is True
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    notebook.until(lambda: "r2" in notebook.path.read_text(), 20, "the file to be saved")
    saved_file_is_readable(notebook)


def picture_is_replaced(notebook):
    """Whether the page shows another picture than the roofline's own address: the dark one."""
    picture = notebook.page.locator(".jp-OutputArea img[class^=cgn-roofline]").first
    return picture.evaluate("(e) => getComputedStyle(e).content.startsWith('url(\"data:image/png')")


def set_theme(page, name):
    page.evaluate(
        "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
        f"JupyterLab {name}",
    )
    is_light = "true" if name == "Light" else "false"
    page.wait_for_selector(f"body[data-jp-theme-light='{is_light}']", state="attached")


def stored(folder):
    path = folder / "sessions.sqlite"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(
            "SELECT number, approved FROM rounds JOIN sessions ON sessions.id = session_id "
            "WHERE sessions.name = 'gelu' ORDER BY number"
        ).fetchall()
    finally:
        connection.close()


def saved_file_is_readable(notebook):
    """As somebody else opens it: not trusted, and with no kernel to ask."""
    content = json.loads(notebook.path.read_text())
    text = json.dumps(content)
    assert "application/vnd.jupyter.widget-view+json" not in text
    assert "widgets" not in content["metadata"]
    # With a language that no kernel has JupyterLab asks, instead of starting the nearest one.
    content["metadata"] = {"kernelspec": {"name": "none", "display_name": "none", "language": "none"}}
    sent = notebook.path.with_name("sent.ipynb")
    sent.write_text(json.dumps(content))
    notebook.lab.end_kernels()
    page = notebook.page
    page.goto(f"{notebook.lab.url}/lab/tree/{sent.name}?reset", timeout=60_000)
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.locator(".jp-Dialog button", has_text="No Kernel").click()
    outputs = page.locator(".jp-OutputArea")
    for number in range(3):
        outputs.get_by_text(f"r{number} · ").first.wait_for(timeout=20_000)
        outputs.get_by_text(f"r{number} · ").first.click()
    picture = page.locator(".jp-OutputArea img").first
    assert picture.evaluate("(e) => e.naturalWidth") > 500
    assert page.locator(".jp-OutputArea").get_by_text("less work").count() > 0
    assert page.get_by_text("Error displaying widget").count() == 0
    notebook.shot("untrusted-light")
    set_theme(page, "Dark")
    assert page.locator(".jp-OutputArea").get_by_text("content:url").count() == 0
    notebook.shot("untrusted-dark")
    assert notebook.outside == []

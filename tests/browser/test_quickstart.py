"""The newcomer's notebook, run by a person in JupyterLab, and what is left of it in the saved file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cutegen_nb.core.search.comparison import Relation

pytestmark = pytest.mark.long

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
    for number in range(3):
        notebook.until_panel(magic, f"r{number} waits for you: send the request?")
        notebook.panel(magic).get_by_role("button", name="Ask", exact=True).click()
        notebook.until_revision(magic, number)
        notebook.panel(magic).get_by_role("button", name="Approve", exact=True).click()
    notebook.until(lambda: not notebook.panel(magic).count(), what="the panel to give way to the record")
    for index in range(magic + 1, len(sources)):
        notebook.run(index)
        assert not [o for o in notebook.cell(index)["outputs"] if o["output_type"] == "error"]
    rounds = stored(lab.folder / store)
    decided = [item["decisions"][-1] for item in rounds]
    assert [(made["gate"], made["action"]) for made in decided] == [("revision", "approve")] * 3
    notebook.set_theme("light")
    assert picture_is_replaced(notebook) is False
    notebook.set_theme("dark")
    assert picture_is_replaced(notebook) is True
    notebook.save()
    notebook.until(lambda: "r2" in notebook.path.read_text(), what="the file to be saved")
    saved_file_is_readable(notebook, rounds)


def picture_is_replaced(notebook):
    """Whether the page shows another picture than the roofline's own address: the dark one."""
    picture = notebook.page.locator(".jp-OutputArea img[class^=cgn-roofline]").first
    return picture.evaluate("(e) => getComputedStyle(e).content.startsWith('url(\"data:image/png')")


def stored(folder):
    """The rounds of the quickstart's session."""
    path = folder / "sessions.sqlite"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = connection.execute(
            "SELECT rounds.body FROM rounds JOIN sessions ON sessions.id = session_id "
            "WHERE sessions.name = 'gelu' ORDER BY number"
        )
        return [json.loads(body) for (body,) in found]
    finally:
        connection.close()


def saved_file_is_readable(notebook, rounds):
    """As somebody else opens it: not trusted, and with no kernel to ask."""
    content = json.loads(notebook.path.read_text())
    text = json.dumps(content)
    assert "application/vnd.jupyter.widget-view+json" not in text
    assert "widgets" not in content["metadata"]
    # With a language that no kernel has JupyterLab asks, instead of starting the nearest one.
    content["metadata"] = {"kernelspec": {"name": "none", "display_name": "none", "language": "none"}}
    sent = notebook.path.with_name("sent.ipynb")
    sent.write_text(json.dumps(content))
    notebook.lab.end_kernels(notebook.path.name)
    page = notebook.page
    page.goto(f"{notebook.lab.url}/lab/tree/{sent.name}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.locator(".jp-Dialog button", has_text="No Kernel").click()
    outputs = page.locator(".jp-OutputArea")
    for item in rounds:
        outputs.get_by_text(f"r{item['number']} · ").first.wait_for()
        outputs.get_by_text(f"r{item['number']} · ").first.click()
        words = Relation(item["comparison"]["relation"]).words
        outputs.get_by_text(words).first.wait_for(state="attached")
    picture = page.locator(".jp-OutputArea img").first
    notebook.until(lambda: picture.evaluate("(e) => e.naturalWidth") > 500, what="the picture to be loaded")
    assert page.get_by_text("Error displaying widget").count() == 0
    notebook.set_theme("light")
    notebook.shot("untrusted-light")
    notebook.set_theme("dark")
    assert page.locator(".jp-OutputArea").get_by_text("content:url").count() == 0
    notebook.shot("untrusted-dark")
    assert notebook.outside == []

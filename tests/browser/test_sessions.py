"""The table of sessions as a page and as the output of a cell: order, filter, revisions, hostile text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.app.sessions_list import write_sessions
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples

PAYLOADS = (
    "<img src=x onerror=\"window.__ran='img'\">",
    "</style><script>window.__ran='script'</script>",
    '"><svg onload="window.__ran=1">',
    "' autofocus onfocus='window.__ran=2",
    "javascript:window.__ran=3",
)
SECONDS = {"gelu": 9e-6, "relu": 2e-6, "swish": 5e-5}


def estimated(name: str, seconds: float, author: str):
    made = examples.session_of(Relation.FIRST, Relation.ESTIMATED_FASTER, name=name)
    rounds = tuple(
        replace(item, comparison=replace(item.comparison, estimated_s=seconds * (2 - item.number)))
        for item in made.rounds
    )
    return replace(made, rounds=rounds, author=author)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("sessions")
    with SqliteStore(made) as store:
        for name, seconds in SECONDS.items():
            store.create(estimated(name, seconds, "ada" if name == "gelu" else "offline"))
        for number, text in enumerate(PAYLOADS):
            hostile = examples.session_of(Relation.FIRST, name=f"{text}{number}")
            problem = replace(hostile.problem, name=text)
            store.create(replace(hostile, author=text, stopped=text, created_at=text, problem=problem))
        write_sessions(store, str(made / "all.html"), None)
    return made


def names(page):
    return [
        name
        for name in page.locator(".cgs-table > tbody:visible .cgs-fold").all_inner_texts()
        if name in SECONDS
    ]


def check(page):
    """Sort, filter and unfold the table as a person does."""
    page.get_by_role("button", name="Best time").click()
    assert names(page) == ["relu", "gelu", "swish"]
    page.get_by_role("button", name="Best time").click()
    assert names(page) == ["swish", "gelu", "relu"]
    page.get_by_role("searchbox").fill("coalesce RELU")
    assert names(page)[:1] == ["relu"]
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Filter by author").select_option("ada")
    assert names(page) == ["gelu"]
    assert page.get_by_role("status").inner_text().startswith("1 of 8")
    page.get_by_role("button", name="gelu", exact=True).click()
    assert page.get_by_role("table", name="Revisions of gelu").is_visible()
    assert page.evaluate("window.__ran") is None


def test_many_sessions_are_laid_out_by_a_click_and_found_without_it(browser, tmp_path):
    with SqliteStore(tmp_path) as store:
        for number in range(203):
            store.create(estimated(f"kernel{number}", 1e-6 * (number + 1), "offline"))
        write_sessions(store, str(tmp_path / "all.html"), None)
    page = browser.new_page()
    page.goto((tmp_path / "all.html").as_uri())
    shown = page.locator(".cgs-table > tbody:visible")
    assert shown.count() == 200
    page.get_by_role("button", name="Best time").click()
    page.get_by_role("button", name="Best time").click()
    assert shown.first.locator(".cgs-fold").inner_text() == "kernel202"
    page.get_by_role("button", name="Show all 203").click()
    assert shown.count() == 203
    page.get_by_role("searchbox").fill("kernel7")
    assert shown.count() == 11
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_sorts_filters_and_unfolds(browser, folder, scheme):
    context = browser.new_context(color_scheme=scheme, viewport={"width": 800, "height": 900})
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((folder / "all.html").as_uri())
    check(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 800
    assert not said
    context.close()


@pytest.mark.long  # starts JupyterLab; tests/notebook/test_unattended.py has the table among a cell's outputs
def test_a_cell_shows_the_same_table(make_notebook, folder):
    notebook = make_notebook(["%load_ext cutegen_nb", f"%cutegen sessions --store {folder}"])
    notebook.run(0)
    notebook.run(1)
    notebook.page.locator(".cgs[data-ready]").wait_for()
    check(notebook.page)
    notebook.shot("sessions")


@pytest.mark.long  # starts JupyterLab
def test_recorded_sessions_fit_the_usual_width_of_a_cell(make_notebook):
    folder = Path(__file__).parents[2] / "notebooks" / "sessions"
    notebook = make_notebook(["from cutegen_nb import recordings", f"recordings({str(folder)!r})"])
    notebook.page.set_viewport_size({"width": 1280, "height": 900})
    notebook.run(0)
    notebook.run(1)
    table = notebook.outputs(1).locator("table")
    notebook.expect(table).to_contain_text("A chain that climbs step by step")
    assert table.evaluate("(e) => e.parentElement.scrollWidth - e.parentElement.clientWidth") <= 1
    # A session is a few lines high; each was a dozen where what it teaches was a narrow column.
    lines = table.evaluate("(e) => e.offsetHeight / e.rows[0].offsetHeight")
    assert lines < 5 * len(list(folder.glob("*.cutegen"))), lines

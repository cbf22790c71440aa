"""The end of a session: its reason, and the buttons that stand in the panel's place."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.long


def ended(session):
    """The output in the panel's place."""
    return session.notebook.outputs(session.index)


def press(session, name):
    ended(session).get_by_role("button", name=name, exact=True).click()


def approved_once(session):
    session.ask(0)
    session.click("Approve")
    session.stored(0)


def gives_way(session):
    session.notebook.until(lambda: not session.panel.count(), what="the panel to give way")


def test_a_session_whose_rounds_are_spent_goes_on_by_a_click(sit):
    session = sit("--rounds 1")
    approved_once(session)
    gives_way(session)
    until_ended(
        session, "The budget of 1 round is spent. 3 more rounds would start from r0, the best revision."
    )
    press(session, "3 more rounds")
    session.at_prompt(1)
    assert session.stopped() == ""
    session.ask(1)
    session.click("Approve")
    session.stored(1)


def test_kernel_and_session_are_written_by_clicks_and_the_panel_opens_again(sit):
    session = sit()
    approved_once(session)
    session.at_prompt(1)
    session.click("Stop")
    gives_way(session)
    until_ended(session, "stopped it at round 1. Going on starts from r0")
    press(session, "Show the panel again")
    session.until(f"{session.name} has ended")
    folder = session.notebook.lab.folder
    session.click("Export the kernel")
    session.until("It passed tier C")
    assert "class ModelNew" in (folder / f"{session.name}_kernel.py").read_text()
    session.click("Close the panel")
    gives_way(session)
    until_ended(session, "It passed tier C")
    press(session, "Save the session")
    until_ended(session, "whole, 1 round")
    assert (folder / f"{session.name}.cutegen").is_file()


def until_ended(session, words):
    session.notebook.until_output(session.index, words)


def test_at_800_pixels_the_table_of_an_ended_session_fits_in_both_themes(sit):
    session = sit("--rounds 2")
    approved_once(session)
    session.ask(1)
    session.click("Reject…")
    session.panel.get_by_label("Why?").fill("it is no faster, and the words go on for a while")
    session.click("Reject")
    gives_way(session)
    page, table = session.notebook.page, ended(session).locator(".cgn-overview > div")
    for beside in ("with the list of files", "without it"):
        page.set_viewport_size({"width": 800, "height": 1000})
        for theme in ("light", "dark"):
            session.notebook.set_theme(theme)
            for box in (table, *ended(session).locator(".jp-OutputArea-output").all()):
                assert box.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1, (theme, beside)
            session.expect(table.get_by_role("columnheader", name="Decision")).to_be_visible()
            session.expect(table.get_by_role("columnheader", name="Sectors")).to_be_hidden()
        page.set_viewport_size({"width": 1280, "height": 1000})
        session.expect(table.get_by_role("columnheader", name="Sectors")).to_be_visible()
        assert table.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 1, beside
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    session.notebook.set_theme("light")


def test_a_page_loaded_again_after_the_end_still_goes_on(sit):
    session = sit("--rounds 1")
    approved_once(session)
    gives_way(session)
    session.notebook.save()
    saved = json.loads(session.notebook.path.read_text())["cells"][session.index]
    assert "application/vnd.jupyter.widget-view+json" not in json.dumps(saved["outputs"])
    session.notebook.open()
    session.notebook.until(
        lambda: session.notebook.page.evaluate("() => Object.keys(globalThis.cutegenNbPanels ?? {}).length"),
        what="the panel's model",
    )
    press(session, "3 more rounds")
    session.at_prompt(1)


def test_after_a_restart_of_the_kernel_a_button_copies_its_code(make_notebook, kernel_name):
    problem = "import torch\ndef gone(x):\n    return torch.relu(x)\ndef get_inputs():\n    return [torch.randn(32, 64)]\n"
    cell = f"%%cutegen --policy ask --device simulator --store .gone-{kernel_name}\n{problem}"
    notebook = make_notebook(["%load_ext cutegen_nb", cell], kernel_name)
    notebook.run(0)
    notebook.run(1)
    notebook.until_panel(1, "r0 waits for you: send the request?")
    notebook.panel(1).get_by_role("button", name="Stop", exact=True).click()
    again = notebook.outputs(1).locator("button[data-action=more]")
    again.wait_for()
    notebook.expect(again).to_have_text("Go on")
    notebook.restart_kernel()
    notebook.until(
        lambda: not notebook.page.evaluate("() => Object.keys(globalThis.cutegenNbPanels ?? {}).length"),
        what="the panel to be forgotten",
    )
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    again.click()
    notebook.expect(again).to_have_text("Code copied: run it in a cell")
    assert notebook.page.evaluate("() => navigator.clipboard.readText()") == (
        f"%load_ext cutegen_nb\n%cutegen resume gone --store .gone-{kernel_name}"
    )


def test_the_table_of_rounds_fits_a_page_800_pixels_wide(sit):
    session = sit()
    for number in (0, 1):
        session.ask(number)
        session.click("Approve")
    session.at_prompt(2)
    notebook = session.notebook
    notebook.page.set_viewport_size({"width": 800, "height": 1000})
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    index = notebook.add(f"%cutegen rounds {session.name}")
    notebook.run(index)
    table = notebook.outputs(index).locator("table")
    session.expect(table).to_contain_text("no clear difference")
    notebook.page.wait_for_timeout(500)
    notebook.shot("rounds")
    output = notebook.outputs(index).locator(".jp-OutputArea-output")
    assert output.evaluate("(e) => e.scrollWidth - e.clientWidth") <= 0
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    notebook.page.set_viewport_size({"width": 1280, "height": 1000})

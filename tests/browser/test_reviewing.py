"""A revision is reviewed: its hunks one by one, against a chosen revision, with figures, predictions and keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

GELU = """import torch
import torch.nn.functional as F

def gelu(x):
    return F.gelu(x)

def get_inputs():
    return [torch.randn(1024, 1024)]
"""


def actions(stored):
    return [made["action"] for made in stored["decisions"]]


def count(session):
    return session.panel.locator(".cgn-hunk-count")


def key(session, name):
    """Press a key where no field has the focus."""
    session.panel.focus()
    session.notebook.page.keyboard.press(name)


def decide_by_key(session, name, button):
    """Press a decision's key once its button is of use: a new question takes no answer in its first moments."""
    session.expect(session.button(button)).not_to_have_attribute("aria-disabled", "true")
    key(session, name)


def look(session, name, at=".cgn-line"):
    """Keep pictures of the page at a part of the panel, where CUTEGEN_BROWSER_SHOTS names a folder for them."""
    folder = os.environ.get("CUTEGEN_BROWSER_SHOTS", "")
    if not folder:
        return
    page = session.notebook.page
    for theme in ("dark", "light"):
        session.notebook.set_theme(theme)
        for width in (800, 1280):
            page.set_viewport_size({"width": width, "height": 1000})
            session.panel.locator(at).scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            page.screenshot(path=str(Path(folder) / f"{name}-{width}-{theme}.png"))


def test_changes_are_kept_and_undone_one_by_one_and_decided_upon_by_keys(sit):
    session = sit(problem=GELU)
    session.ask(0)
    decide_by_key(session, "Shift+A", "Approve")
    session.ask(1)
    session.expect(count(session)).to_have_text("3 changes")
    session.click("Side by side")
    session.expect(session.panel.locator(".cm-mergeView")).to_be_visible()
    session.notebook.page.set_viewport_size({"width": 800, "height": 1000})
    session.expect(session.panel.locator(".cm-mergeView")).to_have_count(0)
    session.notebook.page.set_viewport_size({"width": 1280, "height": 1000})
    session.expect(session.panel.locator(".cm-mergeView")).to_be_visible()
    session.click("Side by side")
    key(session, "n")
    session.expect(count(session)).to_have_text("1 of 3 changes")
    key(session, "k")
    session.expect(count(session)).to_have_text("1 of 3 changes, 1 kept")
    kept = session.panel.locator(".cm-deletedChunk.cgn-kept")
    beyond = "(e) => e.getBoundingClientRect().right - e.closest('.cm-editor').getBoundingClientRect().right"
    assert kept.get_by_role("button", name="Undo").evaluate(beyond) < 0
    key(session, "n")
    key(session, "?")
    session.expect(session.panel.get_by_text("next change", exact=True)).to_be_visible()
    look(session, "keys")
    key(session, "?")
    key(session, "u")
    session.expect(count(session)).to_have_text("1 of 2 changes, 1 kept")
    session.expect(session.button("Evaluate my edit")).to_have_class("cgn-button cgn-primary")
    look(session, "undone")
    decide_by_key(session, "Shift+E", "Evaluate my edit")
    session.notebook.until(lambda: session.versions().count() > 1, what="the edited version")
    session.at_revision(1)
    session.expect(count(session)).to_have_text("2 changes, 1 kept")
    decide_by_key(session, "Shift+A", "Approve")
    stored = session.stored(1)
    assert actions(stored) == ["approve", "edit", "approve"]
    first, last = (stored["attempts"][at]["candidate"]["source"] for at in (0, -1))
    assert "a warp's elements lie side by side" in first
    assert "a warp's elements lie side by side" not in last, "the change that was undone"
    assert "out.view(-1)" in last, "a change that was not undone"
    # The offline author finds its place no more: the person is told, before the next strategy is asked about.
    session.at_prompt(2)
    session.panel.get_by_text("Predict the effect").click()
    field = session.panel.get_by_label("Your prediction of counters")
    field.fill("gmem_sectors down 10 %")
    session.click("Ask")
    session.until_status("No kernel came: the author ended")
    session.at_prompt(2)
    session.expect(field).to_have_value("")  # it was of the strategy before


def test_a_pinned_revision_is_what_later_ones_are_compared_with(sit):
    session = sit(problem=GELU)
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    glance = session.panel.get_by_role("group", name="At a glance")
    session.expect(glance).to_contain_text("Bound by")
    session.expect(glance).to_contain_text("Against r0, counts at full size")
    session.expect(glance).to_contain_text("2,097,152 → 262,144")
    session.expect(glance).to_contain_text("−87.5 % better")
    look(session, "glance")
    session.click("Approve")
    session.ask(2)
    session.expect(glance).to_contain_text("Against r1")
    session.panel.get_by_label("Compared with").select_option("0")
    session.expect(glance).to_contain_text("Against r0")
    session.expect(session.panel.locator(".cgn-tools").get_by_text("r0 → r2")).to_be_visible()
    session.panel.get_by_role("tab", name="Counts").click()
    session.expect(session.panel.get_by_role("columnheader", name="r0", exact=True)).to_be_visible()
    look(session, "pinned")
    session.click("Approve")
    stored = session.stored(2)
    assert actions(stored)[-1] == "approve"
    session.ask(3)
    session.expect(glance).to_contain_text("Against r0")
    assert "compared with its parent" in session.notebook.say(
        f"%cutegen compare parent --name {session.name}"
    )
    session.expect(glance).to_contain_text("Against r2")


def test_predictions_and_words_are_followed_to_what_came_of_them(sit):
    session = sit(problem=GELU)
    session.ask(0)
    session.click("Approve")
    session.at_prompt(1)
    session.click("New since the request of r0")
    request = session.panel.locator(".cgn-editor")
    session.expect(request.locator(".cm-changedLine, .cm-insertedLine").first).to_be_visible()
    look(session, "request")
    session.panel.get_by_text("Predict the effect").click()
    field = session.panel.get_by_label("Your prediction of counters")
    field.fill("it will be good")
    session.click("Ask")
    session.until_status("names nothing that is measured")
    session.expect(session.panel.locator(".cgn-status .cgn-bad-words")).to_contain_text("faster`.")
    session.expect(field).to_have_value("it will be good")
    field.fill("gmem_sectors down 10 %")
    session.click("Steer…")
    session.panel.get_by_label("What should this request say").fill("keep it short")
    session.click("Steer")
    session.until_request(1, "keep it short")
    session.expect(field).to_have_value("gmem_sectors down 10 %")
    session.click("Ask")
    session.at_revision(1)
    session.expect(session.panel.get_by_role("list", name="Predictions")).to_contain_text("held")
    session.expect(session.panel.get_by_role("list", name="Predictions")).to_contain_text("Predicted by")
    ledger = session.panel.locator(".cgn-ledger")
    ledger.locator("summary").click()
    session.expect(ledger).to_contain_text("direction right, size off")
    session.click("Reject…")
    session.panel.get_by_label("Why?").fill("try vectors of 128 bits first")
    session.click("Reject")
    stored = session.stored(1)
    assert actions(stored) == ["steer", "approve", "reject"]
    assert stored["decisions"][1]["prediction"]["counter"] == "gmem_sectors"
    assert stored["decisions"][1]["prediction"]["change_fraction"] == 0.1
    assert stored["decisions"][-1]["reason"] == "try vectors of 128 bits first"
    session.expect(ledger).to_contain_text("the next round shows it")
    session.ask(2)
    session.expect(ledger).to_contain_text("not decided yet")
    look(session, "ledger", ".cgn-ledger")
    session.click("Approve")
    assert actions(session.stored(2))[-1] == "approve"
    session.expect(ledger).to_contain_text("approved by")

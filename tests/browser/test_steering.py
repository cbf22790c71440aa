"""Texts that a person types in the panel, and their effects: edits, versions, words, comments, pasted replies."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.long

KERNEL = """import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 128


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    if index < count:
        value = x[index]
        y[index] = value if value > 0.0 else 0.0


@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32):
    blocks = (count + THREADS - 1) // THREADS
    relu_kernel(x, y, count).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        launch(from_dlpack(x.view(-1)), from_dlpack(y.view(-1)), x.numel())
        return y
"""


def actions(stored):
    return [made["action"] for made in stored["decisions"]]


def source(attempt):
    return attempt["candidate"]["source"]


def test_an_edit_is_asked_about_before_a_decision_leaves_it_out(sit):
    session = sit()
    session.at_prompt(0)
    request = session.panel.get_by_label("Request for r0, editable")
    request.press("Control+End")
    session.notebook.page.keyboard.insert_text("\nOne warp a row, please.")
    asked = session.panel.get_by_role("alertdialog")
    session.click("Ask…")
    session.expect(asked).to_contain_text(
        "Your edit was not sent yet. Without it, the request is sent as it was."
    )
    asked.get_by_role("button", name="Ask without my edit", exact=True).click()
    session.at_revision(0)
    session.add_to_source(0, "\n# seen by a person\n")
    session.until("You have changed the source of r0 and not evaluated it yet.")
    session.click("Approve…")
    session.expect(asked).to_contain_text("Without it, the version before it is built upon.")
    # One place: the answers to the question stand where the others stood.
    for name in ("Evaluate my edit", "Approve"):
        session.expect(session.panel.get_by_role("button", name=name)).to_have_count(1)
    asked.get_by_role("button", name="Cancel").click()
    session.expect(session.button("Approve…")).to_be_focused()
    assert session.rounds() == []
    session.expect(session.button("Evaluate my edit")).to_have_class(re.compile("cgn-primary$"))
    session.click("Approve…")
    asked.get_by_role("button", name="Evaluate my edit").click()
    session.notebook.until(lambda: session.versions().count() == 2, what="the edited version")
    session.at_revision(0)
    session.click("Approve")
    stored = session.stored(0)
    assert actions(stored) == ["approve", "edit", "approve"]
    assert "One warp a row" not in stored["attempts"][0]["prompt"]["user"]
    assert source(stored["attempts"][-1]).rstrip().endswith("# seen by a person")


def test_words_that_wait_in_a_form_outlast_the_evaluation_of_an_edit(sit):
    session = sit()
    session.ask(0)
    session.click("Reject…")
    session.panel.locator(".cgn-words:visible").fill("It reads x twice.")
    session.panel.get_by_role("button", name="Cancel", exact=True).locator("visible=true").click()
    session.add_to_source(0, "\n# seen by a person\n")
    session.evaluate_edit(0)
    session.click("Reject…")
    session.expect(session.panel.locator(".cgn-words:visible")).to_have_value("It reads x twice.")


def test_an_edit_that_makes_things_worse_gives_way_to_the_version_before_it(sit):
    session = sit()
    session.ask(0)
    passed = session.versions().count()
    session.replace_source(0, "x = 1\n")
    session.evaluate_edit(0)
    session.expect_disabled("Approve")
    session.expect(session.versions()).to_have_count(passed + 2)
    session.expect(session.versions().first).to_have_attribute(
        "title", re.compile("^Shows this version of r")
    )
    session.versions().first.click()
    session.until(
        "You look at version 1 of r0. Restore it below to decide on it: until then every answer is "
    )
    session.until(f"for version {passed + 2} (edit by ")
    session.expect_disabled("Approve")
    session.click("Reject…")
    form = session.panel.locator(".cgn-form:visible")
    session.expect(form).to_contain_text(f"For version {passed + 2} (edit by ")
    session.expect(form).to_contain_text("not the one shown. Why?")
    session.click("Cancel")
    session.click("Restore this version")
    session.notebook.until(
        lambda: (
            session.versions().first.get_attribute("aria-pressed") == "true"
            and session.button("Approve").get_attribute("aria-disabled") is None
        ),
        what="the restored version to be decided upon",
    )
    session.until_status("r0: version 1 restored.")
    session.click("Approve")
    stored = session.stored(0)
    assert stored["decisions"][-1]["action"] == "approve"
    assert source(stored["attempts"][-1]) == source(stored["attempts"][0])
    assert stored["attempts"][-1]["evaluation"]["outcome"]["verdict"] == "PASSED"
    assert source(stored["attempts"][-2]) == "x = 1\n"


def test_words_stay_with_the_action_that_they_were_typed_for(sit):
    session = sit()
    session.ask(0)
    session.click("Reject…")
    session.click("Reject")
    session.until_status("Say why first")
    session.click("Cancel")
    session.expect(session.panel.locator(".cgn-status")).not_to_contain_text("Say why first")
    session.click("Reject…")
    why = session.panel.get_by_label("Why? The author is told.")
    why.fill("it strides over rows")
    session.click("Steer…")
    words = session.panel.get_by_label("What should the next round do?")
    session.expect(words).to_have_value("")
    words.fill("use one warp a row")
    session.click("Reject…")
    session.expect(why).to_have_value("it strides over rows")
    session.click("Cancel")
    session.click("Approve")
    session.until(
        "You have typed “it strides over rows” under Reject…, “use one warp a row” under Steer… and not sent them. "
        "Press Approve again to go on without."
    )
    assert session.rounds() == []
    session.click("Approve")
    stored = session.stored(0)
    assert actions(stored) == ["approve", "approve"]
    session.at_prompt(1)
    session.click("Steer…")
    besides = session.panel.get_by_label("What should this request say besides?")
    session.expect(besides).to_have_value("")
    assert "use one warp a row" not in session.shown()
    besides.fill("use two")
    session.click("Cancel")
    session.click("Ask")
    session.until("You have typed “use two” under Steer… and not sent it. Press Ask again to go on without.")


def test_lines_selected_by_keys_are_commented_on_by_keys(sit):
    session = sit()
    session.ask(0)
    editor = session.editor(0)
    editor.press("Control+Home")
    editor.press("Shift+ArrowDown")
    editor.press("Shift+ArrowDown")
    before = editor.inner_text()
    editor.press("Escape")
    session.notebook.page.keyboard.press("c")
    form = session.panel.get_by_role("group", name="Comment on lines")
    session.expect(form).to_contain_text("on lines 1–2 of r0?")
    assert editor.inner_text() == before
    session.notebook.page.keyboard.press("Escape")
    session.expect(form).to_be_hidden()


def test_a_steer_leaves_what_other_forms_hold(sit):
    session = sit()
    session.ask(0)
    session.editor(0).press("Control+Home")
    session.click("Comment on lines…")
    words = session.panel.locator(".cgn-form:visible textarea")
    words.fill("why is this line here, and what would become of the kernel without it?")
    session.click("Cancel")
    session.click("Steer…")
    words.fill("use one warp a row")
    session.panel.locator(".cgn-form:visible").get_by_role("button", name="Steer", exact=True).click()
    session.until("r0 steered")
    session.click("Approve")
    named = "“why is this line here, and what would become of the kernel w…” under Comment on lines…"
    session.until(f"You have typed {named} and not sent it. Press Approve again to go on without.")
    session.expect(session.panel.locator(".cgn-status")).to_be_in_viewport()
    session.notebook.shot("unsent-words")
    session.click("Stop")
    session.until("Press Stop again to go on without.")
    assert session.rounds() == []
    session.click("Comment on lines…")
    session.expect(words).to_have_value(
        "why is this line here, and what would become of the kernel without it?"
    )
    session.click("Cancel")


def test_what_is_typed_over_the_whole_of_an_editor_replaces_all_of_it(sit):
    session = sit()
    session.ask(0)
    session.replace_source(0, "".join(f"line_{number} = {number}\n" for number in range(400)))
    # The browser's own "select all" takes what is rendered: some 60 of the 400 lines.
    session.editor(0).fill("x = 1")
    session.evaluate_edit(0)
    session.click("Reject…")
    session.panel.get_by_label("Why? The author is told.").fill("a trial")
    session.click("Reject")
    assert source(session.stored(0)["attempts"][-1]) == "x = 1"


def test_a_comment_on_a_line_is_in_the_next_request_and_in_the_record(sit):
    session = sit()
    session.ask(0)
    session.add_to_source(0, "\n# mov $0, $1;\n")
    session.notebook.page.keyboard.press("ArrowUp")
    session.click("Comment on lines…")
    session.expect(session.panel.locator(".cgn-quoted")).to_have_text("# mov $0, $1;")
    session.panel.locator(".cgn-form:visible textarea").fill("move both at once")
    session.click("Comment")
    session.until("r0 steered")
    # The edit stays.
    session.expect(session.button("Evaluate my edit")).not_to_have_attribute("aria-disabled", "true")
    session.evaluate_edit(0)
    session.click("Approve")
    stored = session.stored(0)
    assert actions(stored) == ["approve", "steer", "edit", "approve"]
    comment = stored["decisions"][1]["reason"]
    assert comment.endswith("of r0:\n    # mov $0, $1;\nmove both at once")
    session.at_prompt(1)
    request = session.panel.get_by_label("Request for r1, editable")
    session.expect(request).to_contain_text("move both at once")
    outputs = session.notebook.outputs(session.index)
    outputs.locator("details").evaluate_all("(all) => all.forEach((e) => { e.open = true; })")
    session.notebook.until(
        outputs.get_by_text("move both at once").first.is_visible, what="the words in the record"
    )
    code = session.notebook.add(f"%cutegen report {session.name}")
    formula = session.notebook.add("from IPython.display import HTML\nHTML('<p>$a + b$, $c$</p>')")
    for index in (code, formula):
        session.notebook.run(index)
    session.notebook.until(
        session.notebook.outputs(formula).locator("mjx-container").count, what="MathJax to set a formula"
    )
    assert session.notebook.outputs(code).locator("mjx-container").count() == 0
    assert "# mov $0, $1;" in session.notebook.outputs(code).first.evaluate("(e) => e.textContent")


def test_the_decision_stays_in_sight_while_the_source_is_read(sit):
    session = sit()
    page = session.notebook.page
    session.ask(0)
    bar = session.panel.locator(".cgn-bar")
    session.panel.locator(".cgn-gate-title:visible").first.scroll_into_view_if_needed()
    session.notebook.until(bar.is_hidden, what="no bar beside the decision itself")
    page.set_viewport_size({"width": 1280, "height": 500})
    try:
        session.panel.locator(".cgn-detail").evaluate("(e) => e.scrollIntoView({ block: 'end' })")
        session.notebook.until(bar.is_visible, what="the bar")
        session.expect(bar).to_contain_text("build on it?")
        bar.get_by_text("Approve", exact=True).click()
    finally:
        page.set_viewport_size({"width": 1280, "height": 1000})
    assert session.stored(0)["decisions"][-1]["action"] == "approve"


def test_a_page_loaded_again_gets_the_record_and_the_end_into_its_file(sit):
    session = sit()
    session.at_prompt(0)
    session.notebook.save()
    session.notebook.open()
    session.ask(0)
    session.click("Approve")
    session.notebook.until(lambda: "r0 · " in record(session), what="r0 in the record")
    session.at_prompt(1)
    session.click("Stop")
    session.notebook.until(lambda: not session.panel.count(), what="the panel to give way")
    session.notebook.save()
    saved = json.loads(session.notebook.path.read_text())["cells"][session.index]
    text = json.dumps(saved["outputs"], ensure_ascii=False)
    assert "application/vnd.jupyter.widget-view+json" not in text
    assert f"{session.name} has ended" in text
    assert "r0 · " in text
    assert "Nothing to decide now" not in text


def record(session):
    """The record below the panel, as the notebook holds it."""
    outputs = session.notebook.cell(session.index)["outputs"]
    return "".join("".join(item.get("data", {}).get("text/html", "")) for item in outputs)


def test_by_hand_a_request_is_copied_from_the_panel_and_its_reply_pasted_there(sit):
    session = sit("--author manual")
    session.at_prompt(0)
    session.click("Ask")
    session.until("r0 wants a first kernel — you bring it")
    session.notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    session.click("Copy the request")
    session.notebook.until(lambda: "def relu(x)" in copied(session), what="the request to be copied")
    assert session.panel.get_by_label("Request for r0").inner_text().splitlines()[0] in copied(session)
    path = f".cutegen/prompts/{session.name}-0.md"
    session.until(f"Or by files: the request is in {path} Copy path")
    session.panel.get_by_role("button", name=f"{path}").first.click()
    session.notebook.until(
        lambda: copied(session) == str(session.notebook.lab.folder / path), what="the whole path to be copied"
    )
    reply = session.panel.get_by_role("textbox", name="Reply")
    session.expect_disabled("Hand in the reply")
    reply.fill("I would rather not write a kernel.")
    session.until("holds no code, only words")
    session.expect_disabled("Hand in the reply")
    reply.fill(f"```python\n{KERNEL}```\n")
    session.until(f"This gives a kernel of {len(KERNEL.splitlines())} lines.")
    session.click("Hand in the reply")
    session.at_revision(0)
    session.click("Approve")
    stored = session.stored(0)
    assert source(stored["attempts"][0]) == KERNEL
    assert stored["attempts"][0]["evaluation"]["outcome"]["verdict"] == "PASSED"


def copied(session):
    return session.notebook.page.evaluate("() => navigator.clipboard.readText()")

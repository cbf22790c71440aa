"""Each button of the panel, clicked in a real JupyterLab; what it caused is read from the store."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.browser.conftest import PROBLEM

pytestmark = pytest.mark.long

SLEEPS = """import time
import cutlass
import cutlass.cute as cute
import torch


@cute.kernel
def nothing(x: cute.Tensor):
    pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(1000)
        return x
"""


def last_decision(stored, gate):
    return next(made for made in reversed(stored["decisions"]) if made["gate"] == gate)


def person(decision):
    return decision["by"].startswith("person:")


def test_asking_and_approving_keeps_the_revision(sit):
    session = sit()
    session.until_request(0, "# This round: a first kernel")
    session.ask(0)
    session.click("Approve")
    stored = session.stored(0)
    assert "def relu" in stored["attempts"][0]["prompt"]["user"]
    assert last_decision(stored, "prompt")["action"] == "approve"
    assert last_decision(stored, "revision")["action"] == "approve"
    assert person(last_decision(stored, "revision"))
    assert stored["attempts"][-1]["evaluation"]["outcome"]["verdict"] == "PASSED"


def test_rejecting_needs_a_reason_and_stores_it(sit):
    session = sit()
    session.ask(0)
    session.click("Reject…")
    session.click("Reject")
    session.until_status("Say why first")
    session.panel.get_by_label("Why?").fill("it strides over rows")
    session.click("Reject")
    stored = session.stored(0)
    assert last_decision(stored, "revision")["action"] == "reject"
    assert last_decision(stored, "revision")["reason"] == "it strides over rows"
    session.at_prompt(1)
    assert session.rounds()[0]["decisions"] == stored["decisions"]
    # The focus was on Reject…, which is of no use at this gate.
    for name in ("Reject…", "Branch…"):
        session.expect(session.button(name)).to_be_hidden()


def test_steering_a_prompt_puts_the_words_into_it(sit):
    session = sit()
    session.at_prompt(0)
    session.click("Steer…")
    session.panel.get_by_label("What should this request say").fill("use one warp a row")
    session.click("Steer")
    session.until("use one warp a row")
    session.ask(0)
    session.click("Approve")
    stored = session.stored(0)
    assert [made["action"] for made in stored["decisions"]] == ["steer", "approve", "approve"]
    assert "use one warp a row" in stored["attempts"][0]["prompt"]["user"]


def test_an_edited_prompt_is_what_is_sent(sit):
    session = sit()
    session.at_prompt(0)
    session.expect_disabled("Send edited")
    editor = session.panel.get_by_label("Request for r0, editable")
    editor.press("Control+End")
    session.notebook.page.keyboard.insert_text("\nNo shared memory, please.")
    session.click("Send edited")
    session.at_revision(0)
    session.click("Approve")
    stored = session.stored(0)
    assert last_decision(stored, "prompt")["action"] == "edit"
    assert stored["attempts"][0]["prompt"]["user"].endswith("No shared memory, please.")


def test_an_edited_candidate_is_evaluated_before_it_counts(sit):
    session = sit()
    session.ask(0)
    session.add_to_source(0, "\n# seen by a person\n")
    session.evaluate_edit(0)
    session.click("Approve")
    stored = session.stored(0)
    assert [made["action"] for made in stored["decisions"]] == ["approve", "edit", "approve"]
    final = stored["attempts"][-1]
    assert final["purpose"] == "edit"
    assert final["candidate"]["source"].rstrip().endswith("# seen by a person")
    assert final["evaluation"]["outcome"]["verdict"] == "PASSED"
    session.ask(1)
    # The next round goes on from the edit.
    session.expect(session.editor(1)).to_contain_text("# seen by a person")
    assert session.stopped() == ""


def test_a_failing_edit_cannot_be_approved_and_the_panel_says_why(sit):
    session = sit()
    session.ask(0)
    session.replace_source(0, "def broken(:\n    pass\n")
    session.evaluate_edit(0)
    session.until("only a kernel that passed can be built upon")
    session.expect_disabled("Approve")
    session.click("Reject…")
    session.panel.get_by_label("Why?").fill("it does not parse")
    session.click("Reject")
    stored = session.stored(0)
    assert stored["attempts"][-1]["evaluation"]["outcome"]["verdict"] == "SCREENED_OUT"
    assert last_decision(stored, "revision")["action"] == "reject"


def test_the_line_at_which_an_edit_failed_is_marked_in_sight_and_the_verdict_leads_to_it(sit):
    session = sit()
    session.ask(0)
    session.add_to_source(0, "\ndef broken(:\n    pass\n")
    session.evaluate_edit(0)
    failed = session.panel.locator(".cm-line.cgn-failed")
    session.expect(failed).to_have_text("def broken(:")
    session.notebook.until(lambda: in_box(failed), what="the failed line in the editor's box")
    session.expect(session.panel.locator(".cgn-failed-words")).to_contain_text("does not parse")
    session.panel.locator(".cm-scroller").evaluate("(box) => { box.scrollTop = 0; }")
    session.panel.get_by_role("tab", name="Correctness").click()
    session.panel.get_by_role("button", name="column").click()
    session.notebook.until(lambda: in_box(failed), what="the line that the findings name")
    session.panel.locator(".cm-scroller").evaluate("(box) => { box.scrollTop = 0; }")
    session.panel.locator(".cgn-failed-places button").press("Enter")
    session.notebook.until(lambda: in_box(failed), what="the line that the verdict names")


def test_the_line_at_which_an_edit_failed_is_marked_while_the_editor_is_out_of_sight(sit):
    session = sit()
    session.ask(0)
    session.add_to_source(0, "\ndef broken(:\n    pass\n")
    session.notebook.page.set_viewport_size({"width": 1280, "height": 260})
    session.click("Evaluate my edit")
    failed = session.panel.locator(".cm-line.cgn-failed")
    session.expect(failed).to_have_text("def broken(:")
    session.expect(failed).not_to_be_in_viewport()
    session.notebook.page.set_viewport_size({"width": 1280, "height": 900})
    session.notebook.until(lambda: in_box(failed), what="the failed line in the editor's box")


@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_failed_line_among_unchanged_ones_is_unfolded(sit, side_by_side):
    session = sit()
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    if side_by_side:
        session.click("Side by side")
    written = session.stored(0)["attempts"][-1]["candidate"]["source"]
    session.replace_source(1, written.replace("def compile_for(", "def compile_other("))
    session.evaluate_edit(1)
    failed = session.panel.locator(".cm-line.cgn-failed")
    session.expect(failed).to_contain_text("compile_for(")
    session.notebook.until(lambda: in_box(failed), what="the failed line in the editor's box")
    session.expect(session.panel.locator(".cgn-failed-words")).to_contain_text("NameError")


def in_box(line):
    """Whether a line of the editor is inside the part of the text that is shown."""
    return line.count() == 1 and line.evaluate(
        """(line) => { const box = (line.closest(".cm-mergeView") ?? line.closest(".cm-scroller")).getBoundingClientRect();
        const { top, bottom } = line.getBoundingClientRect(); return top >= box.top && bottom <= box.bottom; }"""
    )


def test_of_several_revisions_a_person_says_which_one_to_branch_from(sit):
    session = sit()
    for number in (0, 1):
        session.ask(number)
        session.click("Approve")
        session.stored(number)
    session.ask(2)
    session.click("Branch…")
    session.click("Branch")
    session.until_status("Choose the revision first.")
    session.panel.get_by_label("Go on from").select_option("1")
    session.click("Branch")
    assert last_decision(session.stored(2), "revision")["edited"] == "r1"


def test_branching_makes_the_next_round_start_there(sit):
    session = sit()
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    session.editor(1).press("Control+Home")
    session.notebook.page.keyboard.insert_text("# mine\n")
    session.panel.locator(".cgn-stop").evaluate("(stop) => stop.scrollIntoView({ block: 'end' })")
    session.click("Stop")
    session.expect(session.panel.get_by_role("alertdialog")).to_be_in_viewport()
    session.click("Cancel")
    session.click("Undo my edit")
    session.click("Branch…")
    session.panel.get_by_label("Go on from").select_option("0")
    session.click("Branch")
    stored = session.stored(1)
    assert last_decision(stored, "revision")["action"] == "branch"
    assert last_decision(stored, "revision")["edited"] == "r0"
    session.at_prompt(2)
    session.until("starting from r0")


def test_stopping_at_a_gate_is_stored(sit):
    session = sit()
    session.at_prompt(0)
    session.click("Stop")
    session.notebook.until(session.stopped, what="the stop to be stored")
    assert "person:" in session.stopped()


def test_while_a_candidate_is_evaluated_cells_run_and_a_stop_ends_the_worker(sit):
    session = sit()
    session.at_prompt(0)
    assert session.notebook.say("6 * 7") == "42"
    session.ask(0)
    kernel = int(session.notebook.say("import os; print(os.getpid())"))
    before = descendants(kernel)
    session.replace_source(0, SLEEPS)
    session.click("Evaluate my edit")
    session.until("Nothing to decide now")
    session.expect(session.button("Approve")).to_be_hidden()
    session.notebook.until(lambda: descendants(kernel) - before, what="a worker to start")
    session.notebook.page.wait_for_timeout(1500)
    working = descendants(kernel) - before
    assert working
    assert session.notebook.say("6 * 7") == "42"
    assert "Nothing to decide now" in session.shown(), "it is still evaluated"
    session.click("Stop")
    session.notebook.until(lambda: not working & descendants(kernel), what="the worker to be gone")
    session.notebook.until(session.stopped, what="the stop to be stored")
    assert "stopped the session in round 0" in session.stopped()
    assert "alive" in session.notebook.say("print('alive')")


def test_at_the_usual_width_the_table_of_rounds_shows_its_decisions(sit):
    session = sit(problem=PROBLEM.replace("torch.relu(x)", "torch.softmax(x, -1)"))
    session.ask(0)
    session.replace_source(0, "raise ValueError('wrong')\n")
    session.evaluate_edit(0)
    session.click("Reject…")
    why = "it raised, and the words go on for a while: let each warp take a row of its own, and keep it in registers"
    session.panel.get_by_label("Why?").fill(why)
    session.click("Reject")
    session.stored(0)
    session.ask(1)
    session.click("Approve")
    session.ask(2)
    session.expect(session.panel.locator(".cgn-rounds")).to_contain_text("waiting for you")
    table = session.panel.locator(".cgn-rounds-scroll[aria-label='Rounds']")
    for width in (1280, 800):
        session.notebook.page.set_viewport_size({"width": width, "height": 1000})
        for heading in ("Against best", "Estimate", "Bytes ÷ least", "Decision"):
            session.expect(table.get_by_role("columnheader", name=heading)).to_be_visible()
        assert table.evaluate("(box) => box.scrollWidth - box.clientWidth") <= 0, width
        decision = table.locator("tbody tr").first.locator("td:last-child .cgn-clip")
        session.expect(decision).to_have_attribute("title", re.compile(f"^rejected by .*: {why}$"))
        assert width < 1280 or decision.evaluate("(cell) => cell.scrollHeight <= cell.clientHeight + 1")
    session.expect(table.locator(".cgn-narrow").first).to_be_visible()
    session.notebook.page.set_viewport_size({"width": 1280, "height": 1000})


def test_a_second_click_decides_nothing_more(sit):
    session = sit()
    session.at_prompt(0)
    session.button("Ask").wait_for()
    session.notebook.until(lambda: session.button("Ask").get_attribute("aria-disabled") is None)
    session.button("Ask").dblclick()
    session.at_revision(0)
    session.notebook.page.wait_for_timeout(700)
    session.button("Approve").dblclick()
    stored = session.stored(0)
    session.at_prompt(1)
    assert [made["action"] for made in stored["decisions"]] == ["approve", "approve"]
    assert len(session.rounds()) == 1


def descendants(pid: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(entry.name)] = int(fields[1])
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found - {pid, os.getpid()}
        found |= more


def test_changes_of_two_revisions_are_merged_after_a_look_at_the_result(sit):
    session = sit()
    session.ask(0)
    session.click("Approve")
    first = session.stored(0)["attempts"][-1]["candidate"]["source"]
    session.ask(1)
    session.expect(session.button("Merge…")).to_be_hidden()  # it was made from the only other one
    rewrite(session, 1, f"# one\n{first}\n# the end\n")
    session.click("Branch…")
    session.panel.get_by_label("Go on from").select_option("0")
    session.click("Branch")
    session.ask(2)
    rewrite(session, 2, first.replace("import cutlass\n", "import cutlass  # the middle\n"))
    session.notebook.until(lambda: session.button("Merge…").get_attribute("aria-disabled") is None)
    session.button("Merge…").press("Enter")
    session.until("They fit")
    session.panel.get_by_role("checkbox").nth(0).press("Space")
    session.until("They fit")
    session.expect(session.panel.locator(".cgn-merge")).to_contain_text("# the end")
    session.panel.get_by_role("checkbox").nth(1).press("Space")
    session.until("Choose at least one change of r1")
    session.expect_disabled("Merge and evaluate")
    session.panel.get_by_role("checkbox").nth(1).press("Space")
    session.until("They fit")
    versions = session.versions().count()
    session.button("Merge and evaluate").press("Enter")
    session.notebook.until(lambda: session.versions().count() > versions, what="the merged version")
    session.at_revision(2)
    session.click("Approve")
    stored = session.stored(2)
    merged = stored["attempts"][-1]["candidate"]
    assert "import cutlass  # the middle\n" in merged["source"]
    assert merged["source"].rstrip().endswith("# the end")
    assert not merged["source"].startswith("# one")
    parents = [
        session.rounds()[1]["attempts"][-1]["candidate"]["digest"],
        stored["attempts"][-2]["candidate"]["digest"],
    ]
    assert merged["parents"] == parents
    assert "merged r1 and r2" in merged["rationale"]


def rewrite(session, number, source):
    """Put another source in the place of a revision that waits, and have it evaluated."""
    session.replace_source(number, source)
    session.evaluate_edit(number)

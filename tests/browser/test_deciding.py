"""Each button of the panel, clicked in a real JupyterLab; what it caused is read from the store."""

from __future__ import annotations

import os
import time
from pathlib import Path

SLEEPS = """import time
import cutlass
import cutlass.cute as cute
import torch


@cute.kernel
def nothing(x: cute.Tensor):
    pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(120)
        return x
"""


def last_decision(stored, gate):
    return next(made for made in reversed(stored["decisions"]) if made["gate"] == gate)


def person(decision):
    return decision["by"].startswith("person:")


def test_asking_and_approving_keeps_the_revision(sit):
    session = sit()
    session.at_prompt(0)
    assert "def relu" in session.panel.inner_text()
    session.ask(0)
    session.click("Approve")
    stored = session.stored(0)
    assert last_decision(stored, "prompt")["action"] == "approve"
    assert last_decision(stored, "revision")["action"] == "approve"
    assert person(last_decision(stored, "revision"))
    row = session.query(
        "SELECT verdict, approved FROM rounds JOIN sessions ON sessions.id = session_id WHERE name = ?",
        session.name,
    )
    assert row == [("PASSED", 1)]


def test_rejecting_needs_a_reason_and_stores_it(sit):
    session = sit()
    session.ask(0)
    session.click("Reject…")
    session.click("Reject")
    assert "Say why first" in session.status()
    session.panel.get_by_label("Why?").fill("it strides over rows")
    session.click("Reject")
    stored = session.stored(0)
    assert last_decision(stored, "revision")["action"] == "reject"
    assert last_decision(stored, "revision")["reason"] == "it strides over rows"
    session.at_prompt(1)
    assert session.rounds()[0]["decisions"] == stored["decisions"]


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
    assert session.button("Send edited").get_attribute("aria-disabled") == "true"
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
    editor = session.panel.get_by_label("Source of r0, editable")
    editor.press("Control+End")
    session.notebook.page.keyboard.insert_text("\n# seen by a person\n")
    session.click("Evaluate my edit")
    session.until("Nothing to decide now")
    session.at_revision(0)
    session.click("Approve")
    stored = session.stored(0)
    assert [made["action"] for made in stored["decisions"]] == ["approve", "edit", "approve"]
    final = stored["attempts"][-1]
    assert final["purpose"] == "edit"
    assert final["candidate"]["source"].rstrip().endswith("# seen by a person")
    assert final["evaluation"]["outcome"]["verdict"] == "PASSED"


def test_a_failing_edit_cannot_be_approved_and_the_panel_says_why(sit):
    session = sit()
    session.ask(0)
    editor = session.panel.get_by_label("Source of r0, editable")
    editor.press("Control+a")
    session.notebook.page.keyboard.insert_text("def broken(:\n    pass\n")
    session.click("Evaluate my edit")
    session.until("only what passed can be built upon")
    assert session.button("Approve").get_attribute("aria-disabled") == "true"
    session.click("Reject…")
    session.panel.get_by_label("Why?").fill("it does not parse")
    session.click("Reject")
    stored = session.stored(0)
    assert stored["attempts"][-1]["evaluation"]["outcome"]["verdict"] == "SCREENED_OUT"
    assert last_decision(stored, "revision")["action"] == "reject"


def test_branching_makes_the_next_round_start_there(sit):
    session = sit()
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    session.click("Branch…")
    session.panel.get_by_label("Go on from").select_option("0")
    session.click("Branch")
    stored = session.stored(1)
    assert last_decision(stored, "revision")["action"] == "branch"
    assert last_decision(stored, "revision")["edited"] == "r0"
    session.at_prompt(2)
    assert "starting from r0" in session.panel.inner_text()


def test_stopping_at_a_gate_is_stored(sit):
    session = sit()
    session.at_prompt(0)
    session.click("Stop")
    session.notebook.until(session.stopped, 30, "the stop to be stored")
    assert "person:" in session.stopped()


def test_stopping_in_mid_evaluation_ends_the_worker_within_two_seconds(sit):
    session = sit()
    session.ask(0)
    kernel = int(session.notebook.say("import os; print(os.getpid())"))
    before = descendants(kernel)
    editor = session.panel.get_by_label("Source of r0, editable")
    editor.press("Control+a")
    session.notebook.page.keyboard.insert_text(SLEEPS)
    session.click("Evaluate my edit")
    session.until("Nothing to decide now")
    session.notebook.until(lambda: descendants(kernel) - before, 30, "a worker to start")
    session.notebook.page.wait_for_timeout(1500)
    working = descendants(kernel) - before
    assert working
    start = time.monotonic()
    session.click("Stop")
    session.notebook.until(lambda: not working & descendants(kernel), 10, "the worker to be gone")
    assert time.monotonic() - start < 2.0
    session.notebook.until(session.stopped, 30, "the stop to be stored")
    assert "stopped it in round 0" in session.stopped()
    assert "alive" in session.notebook.say("print('alive')")


def test_another_cell_runs_within_a_second_while_a_round_waits_and_while_one_is_evaluated(sit):
    session = sit()
    session.at_prompt(0)
    assert seconds_of_a_cell(session) < 1.0
    session.at_prompt(0)
    session.click("Ask")
    session.until("Nothing to decide now")
    assert seconds_of_a_cell(session) < 1.0
    session.at_revision(0)
    assert seconds_of_a_cell(session) < 1.0
    session.click("Approve")
    assert last_decision(session.stored(0), "revision")["action"] == "approve"


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


def seconds_of_a_cell(session):
    index = session.notebook.add("6 * 7")
    start = time.monotonic()
    session.notebook.run(index)
    took = time.monotonic() - start
    assert "42" in session.notebook.text(index)
    return took


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
    assert not session.button("Merge…").is_visible()  # it was made from the only other one
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
    shown = session.panel.locator(".cgn-merge").inner_text()
    assert "# the end" in shown
    session.panel.get_by_role("checkbox").nth(1).press("Space")
    session.until("Choose at least one change of r1")
    assert session.button("Merge and evaluate").get_attribute("aria-disabled") == "true"
    session.panel.get_by_role("checkbox").nth(1).press("Space")
    session.until("They fit")
    session.button("Merge and evaluate").press("Enter")
    session.until("Nothing to decide now")
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
    session.panel.get_by_label(f"Source of r{number}, editable").press("Control+a")
    session.notebook.page.keyboard.insert_text(source)
    session.click("Evaluate my edit")
    session.until("Nothing to decide now")
    session.at_revision(number)

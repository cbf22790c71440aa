"""One session in JupyterLab, as a person goes through it: steer, ask, approve, edit, reject, reload, stop."""

from __future__ import annotations


def actions(stored):
    return [made["action"] for made in stored["decisions"]]


def final(stored):
    return stored["attempts"][-1]


def test_a_person_goes_through_three_rounds_reloads_the_page_and_stops(sit):
    session = sit()
    first_round_is_steered_and_approved(session)
    second_round_is_edited_and_approved(session)
    third_round_is_rejected_after_a_reload(session)
    session.at_prompt(3)
    session.click("Stop")
    session.notebook.until(session.stopped, what="the stop to be stored")
    assert "person:" in session.stopped()
    session.notebook.until(lambda: not session.panel.count(), what="the panel to give way to the record")
    session.notebook.until_output(session.index, f"{session.name} has ended")


def first_round_is_steered_and_approved(session):
    session.until_request(0, "# This round: a first kernel")
    session.click("Steer…")
    session.panel.get_by_label("What should this request say").fill("use one warp a row")
    session.click("Steer")
    session.until("use one warp a row")
    session.ask(0)
    session.click("Approve")
    stored = session.stored(0)
    assert actions(stored) == ["steer", "approve", "approve"]
    assert all(made["by"].startswith("person:") for made in stored["decisions"])
    asked = stored["attempts"][0]["prompt"]["user"]
    assert "use one warp a row" in asked
    assert "def relu" in asked
    assert final(stored)["evaluation"]["outcome"]["verdict"] == "PASSED"


def second_round_is_edited_and_approved(session):
    session.ask(1)
    session.add_to_source(1, "\n# seen by a person\n")
    session.evaluate_edit(1)
    session.click("Approve")
    stored = session.stored(1)
    assert actions(stored) == ["approve", "edit", "approve"]
    assert final(stored)["candidate"]["source"].rstrip().endswith("# seen by a person")
    assert final(stored)["evaluation"]["outcome"]["verdict"] == "PASSED"


def third_round_is_rejected_after_a_reload(session):
    session.ask(2)
    session.notebook.save()
    session.notebook.open()
    session.at_revision(2)
    session.click("Reject…")
    session.click("Reject")
    session.until_status("Say why first")
    session.panel.get_by_label("Why?").fill("it strides over rows")
    session.click("Reject")
    last = session.stored(2)["decisions"][-1]
    assert (last["gate"], last["action"], last["reason"]) == ("revision", "reject", "it strides over rows")

"""The population's box in the panel: its kernels and slots, and each answer to the gate of an epoch."""

from __future__ import annotations

import json
import re

import pytest

pytestmark = pytest.mark.long

DROP = re.compile("^Drop r")
CELL = """
from dataclasses import replace
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.loop.population.gate import draft_epoch
from cutegen_nb.loop.population.slot_progress import SlotProgress, SlotState
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
from cutegen_nb.testing import examples

session = replace(examples.evolved_session(), epochs=())
posted, decided = [], []

def asked():
    gate = Gate(kind="epoch", session=session, draft=draft_epoch(session, (), decided))
    panel.show(session, Live(gate=gate), None)

def post(message):
    posted.append(message)
    if message["action"] in {"pin", "drop", "request", "forbid", "budget"}:
        made = Decision(gate="epoch", action=Action(message["action"]), by="person:ada", edited=message["edited"])
        decided.append(made)
        asked()

def epoch_runs():
    slots = [
        SlotProgress(epoch=2, number=1, move=MoveKind.EXTEND, base=1, other=None, strategy="vectorise",
                     state=SlotState.RUNNING, doing="compiling", started_at="2026-01-01T00:00:00+00:00"),
        SlotProgress(epoch=2, number=2, move=MoveKind.CROSS, base=1, other=2, strategy=""),
    ]
    panel.show(session, Live(slots=tuple(slots)), None)

panel = Panel(post)
asked()
panel
"""


@pytest.fixture
def box(desk):
    """The panel at the gate of an epoch; its kernel's names are `posted`, `asked` and `epoch_runs`."""
    index = desk.add(CELL)
    desk.run(index)
    desk.until_panel(index, "Epoch 1 is over: who goes on, and with what?")
    return desk.panel(index)


@pytest.fixture
def posted(desk, box):
    """A function that gives what the panel has handed over so far."""
    index = desk.add("import json; print(json.dumps(posted))")

    def read():
        desk.run(index)
        return json.loads(desk.text(index))

    return read


def test_the_kernels_of_a_population_fit_the_panel_at_800_and_1280_pixels(make_notebook):
    notebook = make_notebook([CELL])
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    notebook.run(0)
    notebook.until_panel(0, "Epoch 1 is over: who goes on, and with what?")
    table = notebook.panel(0).get_by_role("region", name="Population")
    for width in (800, 1280):
        notebook.page.set_viewport_size({"width": width, "height": 1000})
        notebook.until(
            lambda: table.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1"), what="the table to fit"
        )
        assert table.get_by_role("columnheader", name="Strategy").is_visible()
        assert table.get_by_role("button", name="Pin r0").is_visible()


def test_every_answer_to_an_epoch_has_a_control(desk, box, posted):
    def button(name):
        found = box.get_by_role("button", name=name, exact=True)
        desk.until(lambda: found.get_attribute("aria-disabled") is None, what=f"{name} to be of use")
        return found

    button("Pin r0").click()
    desk.until(lambda: "pinned" in box.inner_text(), what="the pin")
    desk.until(lambda: box.get_by_role("button", name=DROP).count() == 2, what="two members to drop")
    dropped = box.get_by_role("button", name=DROP).last.get_attribute("aria-label").removeprefix("Drop ")
    button(f"Drop {dropped}").click()
    words = box.get_by_label("Your own strategy")
    button("Ask for it").click()
    desk.expect(box.locator(".cgn-status")).to_contain_text("Write the strategy first, as NAME: what to do.")
    words.fill("tiles: Keep a tile in shared memory.")
    button("Ask for it").click()
    desk.until(lambda: words.input_value() == "", what="the taken words to go")
    box.get_by_label("Forbid a strategy").fill("coalesce")
    button("Forbid")
    box.get_by_label("Forbid a strategy").press("Enter")
    desk.until(lambda: len(posted()) == 4, what="the fourth answer")
    box.get_by_label("Budget").fill("epochs=7")
    button("Change").click()
    desk.until(lambda: len(posted()) == 5, what="the fifth answer")
    button("Approve these members").click()
    desk.until(lambda: len(posted()) == 6, what="the approval")
    assert [(item["action"], item["edited"]) for item in posted()] == [
        ("pin", "r0"),
        ("drop", dropped),
        ("request", "tiles: Keep a tile in shared memory."),
        ("forbid", "coalesce"),
        ("budget", "epochs=7"),
        ("approve", ""),
    ]
    assert {item["gate"] for item in posted() if item["action"] == "approve"} == {"epoch"}


def test_running_slots_are_told_and_a_kernel_is_looked_at(desk, box, posted):
    desk.say("epoch_runs()")
    desk.until(lambda: "Working on epoch 2, 0 of 2 slots done:" in box.inner_text(), what="the epoch")
    slots = [
        re.compile("^Slot 1: extend of r1, vectorise — compiling, "),
        "Slot 2: cross of r1 and r2 — waits for a free worker",
    ]
    desk.expect(box.locator(".cgn-slots li")).to_have_text(slots)
    for name in ("Approve these members", "Pin r0"):
        desk.expect(box.get_by_role("button", name=name)).to_be_hidden()
    box.locator(".cgn-members").get_by_role("button", name="Show r1").click()
    desk.until(lambda: len(posted()) == 1, what="the look")
    assert (posted()[0]["action"], posted()[0]["round"]) == ("select", 1)

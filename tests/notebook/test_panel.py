"""The widget without a page: what it takes from one, and what it hands over."""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("anywidget")

from cutegen_nb.core.compiled.listing import CodeListing, CodeRow, packed_rows
from cutegen_nb.core.round import Prompt
from cutegen_nb.loop.population.gate import draft_epoch
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
from cutegen_nb.testing import examples

_PATH = Path(__file__).parents[1] / "report" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("report_samples_of_panel", _PATH)
SAMPLES = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(SAMPLES)
WHOLE = SAMPLES.five_rounds()
OPEN = replace(WHOLE, rounds=WHOLE.rounds[:2], stopped="")
PENDING = WHOLE.rounds[2]
WAITING = Live(
    gate=Gate(kind="revision", session=OPEN, attempts=PENDING.attempts, comparison=PENDING.comparison)
)


@pytest.fixture
def posted():
    return []


@pytest.fixture
def panel(posted):
    made = Panel(posted.append)
    made.show(OPEN, WAITING, None)
    yield made
    made.close()


def act(panel, action, **more):
    number = str(len(panel.action) and int(panel.action["id"]) + 1)
    panel.set_state({"action": {"id": number, "action": action, **more}})
    return panel.answer


def test_a_decision_is_handed_over_with_its_gate(panel, posted):
    answer = act(panel, "reject", question=panel.view["live"]["id"], reason="slower")
    assert posted == [{"action": "reject", "gate": "revision", "reason": "slower", "edited": "", "round": -1}]
    assert answer == {"id": "0", "refused": ""}


def test_an_answer_to_an_older_question_is_refused_with_a_sentence(panel, posted):
    assert "no longer asked" in act(panel, "approve", question="prompt:1:abc")["refused"]
    panel.show(OPEN, Live(doing="compiling"), None)
    assert "no longer asked" in act(panel, "approve", question="")["refused"]
    assert posted == []


def test_one_question_is_answered_once_until_it_is_shown_again(panel, posted):
    question = panel.view["live"]["id"]
    act(panel, "approve", question=question)
    assert "decided a moment ago" in act(panel, "approve", question=question)["refused"]
    panel.show(OPEN, replace(WAITING, notice="nothing was changed"), None)
    assert act(panel, "approve", question=question)["refused"] == ""
    assert len(posted) == 2


def test_stop_and_select_need_no_question(panel, posted):
    panel.show(OPEN, Live(doing="compiling"), None)
    act(panel, "stop")
    act(panel, "select", round=1)
    assert [item["action"] for item in posted] == ["stop", "select"]
    assert posted[1]["round"] == 1


def test_unknown_and_malformed_actions_are_refused(panel, posted):
    assert "knows no action 'rm'" in act(panel, "rm")["refused"]
    assert act(panel, "select", round="one")["refused"] == ""
    assert act(panel, "select", attempt="last")["refused"] == ""
    nothing = {"gate": "", "reason": "", "edited": "", "round": -1, "attempt": -1}
    assert posted == [{"action": "select", **nothing}] * 2


def test_what_the_hand_over_raises_is_shown():
    def broken(message):
        raise RuntimeError("no loop")

    panel = Panel(broken)
    panel.show(OPEN, Live(doing="compiling"), None)
    assert act(panel, "stop")["refused"] == "That did not work: RuntimeError: no loop"
    panel.close()


def test_a_click_from_another_thread_is_handed_over(panel, posted):
    thread = threading.Thread(target=act, args=(panel, "stop"))
    thread.start()
    thread.join(10)
    assert [item["action"] for item in posted] == ["stop"]


def test_a_closed_panel_takes_nothing_and_says_why(panel, posted):
    panel.close_with("The session has ended.")
    assert act(panel, "stop")["refused"] == "The session has ended."
    assert posted == []


def test_progress_does_not_make_the_detail_anew(panel):
    before = panel.detail
    panel.show(OPEN, replace(WAITING, notice="noted"), None)
    assert panel.detail is before
    panel.show(OPEN, WAITING, 0)
    assert panel.detail["title"] == "r0 · first kernel"


def test_the_roofline_is_drawn_only_while_it_is_looked_at(panel):
    assert panel.roofline == {}
    panel.set_state({"looking": {"tab": "roofline", "dark": True}})
    first = panel.roofline
    assert first["dark"] is True
    assert first["image"]
    panel.show(OPEN, replace(WAITING, notice="noted"), None)
    assert panel.roofline is first
    panel.show(WHOLE, Live(), None)
    assert panel.roofline is not first


def test_the_built_module_is_there_and_asks_for_nothing():
    static = Path(__file__).parents[2] / "cutegen_nb" / "notebook" / "static"
    script = (static / "panel.js").read_text()
    assert len((static / "loader.js").read_bytes()) < 2_000, "anywidget gives it two seconds to start"
    assert "export{" in script
    assert "import(" not in script
    assert "fetch(" not in script
    assert "url(" not in (static / "panel.css").read_text()
    assert "MIT" in (static / "panel.LICENSES.txt").read_text()


def test_a_merge_is_handed_over_with_its_revisions_and_a_look_at_one_decides_nothing(panel, posted):
    question = panel.view["live"]["id"]
    act(panel, "merging", question=question, revisions=["r0", "r2:1"])
    act(panel, "merge", question=question, revisions=["r0", "r2:1"])
    assert "decided a moment ago" in act(panel, "merge", question=question, revisions=["r0"])["refused"]
    assert [(item["action"], item["gate"], item["revisions"]) for item in posted] == [
        ("merging", "", ["r0", "r2:1"]),
        ("merge", "revision", ["r0", "r2:1"]),
    ]


def test_a_version_to_compare_with_is_handed_over_with_its_round(panel, posted):
    act(panel, "compare", round=0, attempt=1)
    act(panel, "compare", round=2)
    assert [(item["round"], item["attempt"]) for item in posted] == [(0, 1), (2, -1)]


def test_where_no_widget_can_be_shown_a_few_lines_say_where_the_session_is(posted):
    made = Panel(posted.append, "gelu")
    assert repr(made) == "gelu: the panel shows nothing yet."
    made.show(None, Live(doing="starting", since=1.0), None)
    assert repr(made).startswith("gelu: Working on r0: starting\n")
    made.show(OPEN, WAITING, None)
    plain = made._repr_mimebundle_()[0]["text/plain"]
    assert plain.startswith("gelu: r2 waits for you: build on it?\nr1 (coalesce) is the best of 2 rounds.")
    assert "Rounds: r0 PASSED, r1 PASSED, r2 PASSED." in plain
    assert "`%cutegen help` tells what you can answer" in plain
    made.close_with("The session has ended.")
    assert "gelu: The session has ended." in repr(made)
    assert "what you can answer" not in repr(made)
    made.close()


ASKED = Prompt(system="Stand by.", user="Write it.", digest="d" * 64)
CARRIED = Live(doing="waiting for the reply", carried=ASKED)


def test_a_request_to_carry_is_given_whole_and_only_while_it_waits(panel):
    assert panel.request == {}
    panel.show(OPEN, CARRIED, None)
    assert panel.request["text"] == "Stand by.\n\n---\n\nWrite it.\n"
    assert panel.request["id"] == panel.view["live"]["id"]
    panel.show(OPEN, Live(doing="compiling"), None)
    assert panel.request == {}


def test_a_pasted_reply_is_looked_at_freely_and_handed_in_once(panel, posted):
    panel.show(OPEN, CARRIED, None)
    question = panel.view["live"]["id"]
    assert act(panel, "checking", question=question, edited="words")["refused"] == ""
    assert act(panel, "reply", question=question, edited="code")["refused"] == ""
    assert "decided a moment ago" in act(panel, "skip", question=question)["refused"]
    panel.show(OPEN, replace(CARRIED, carried=replace(ASKED, digest="e" * 64)), None)
    assert "no longer asked" in act(panel, "reply", question=question, edited="code")["refused"]
    assert [(item["action"], item["edited"]) for item in posted] == [("checking", "words"), ("reply", "code")]
    assert posted[0]["question"] == question


def test_a_version_is_looked_at_and_restored_by_its_attempt(panel, posted):
    act(panel, "select", round=2, attempt=0)
    act(panel, "restore", question=panel.view["live"]["id"], attempt=0)
    assert [(item["action"], item["gate"], item["attempt"]) for item in posted] == [
        ("select", "", 0),
        ("restore", "revision", 0),
    ]


def test_only_a_second_page_asks_for_the_outputs_of_its_file(panel, posted):
    panel.set_state({"page": 1.0})
    assert (posted, panel.is_reloaded) == ([], False)
    panel.set_state({"page": 2.0})
    assert (posted, panel.is_reloaded) == ([{"action": "reloaded"}], True)


@pytest.mark.parametrize(
    ("action", "edited"),
    [
        ("pin", "r0"),
        ("drop", "r0"),
        ("request", "tiles: Keep a tile."),
        ("forbid", "unroll"),
        ("budget", "epochs=3"),
    ],
)
def test_an_answer_to_an_epoch_is_taken_at_its_gate_only(panel, posted, action, edited):
    assert "no longer asked" in act(panel, action, question="epoch:1:0", edited=edited)["refused"]
    session = replace(examples.evolved_session(), epochs=())
    panel.show(session, Live(gate=Gate(kind="epoch", session=session, draft=draft_epoch(session, ()))), None)
    assert panel.population["gate"]["id"] == panel.view["live"]["id"] == "epoch:1:0"
    assert act(panel, action, question="epoch:1:0", edited=edited)["refused"] == ""
    assert [(item["action"], item["edited"]) for item in posted] == [(action, edited)]


def test_what_is_for_the_end_is_taken_at_the_end_only(panel, posted):
    assert "has not ended" in act(panel, "more")["refused"]
    words = "person:ada stopped the session at round 2"
    panel.show(replace(OPEN, stopped=words), Live(ended=words), None)
    end = panel.view["end"]
    assert end["reason"] == "ada stopped it at round 2."
    assert [step["action"] for step in end["steps"]] == ["more", "export", "bundle"]
    for action in ("more", "export", "bundle", "reopen", "fold"):
        assert act(panel, action)["refused"] == ""
    assert [item["action"] for item in posted] == ["more", "export", "bundle", "reopen", "fold"]


def test_the_compiled_code_is_sent_only_while_its_tab_is_open(panel):
    rows = packed_rows([CodeRow("    ret;", 1, 8)])
    coded = [
        replace(
            made,
            evaluation=replace(
                made.evaluation,
                code=(CodeListing(kernel="kernel", language=f"PTX of r{item.number}", packed=rows),),
            ),
        )
        for item in OPEN.rounds[:2]
        for made in item.attempts[-1:]
    ]
    rounds = [replace(item, attempts=(made,)) for item, made in zip(OPEN.rounds[:2], coded, strict=True)]
    session = replace(OPEN, rounds=tuple(rounds))

    def shown():
        return panel.code["key"], panel.code["kernels"][0]["listings"][0]["language"]

    panel.show(session, Live(), 1)
    assert panel.detail["has_code"] is True
    assert panel.code == {}
    panel.set_state({"looking": {"tab": "code", "dark": False}})
    assert shown() == (panel.detail["key"], "PTX of r1")
    panel.show(session, Live(), 0)
    assert shown() == (panel.detail["key"], "PTX of r0")
    before = panel.code
    panel.show(session, Live(doing="judging"), 0)
    assert panel.code is before
    panel.show(OPEN, WAITING, None)  # that round was made by an older version
    assert (panel.detail["has_code"], panel.code["kernels"]) == (False, [])

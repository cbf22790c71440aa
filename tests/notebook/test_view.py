"""The panel's view of a session as a value."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.round import Action, Decision, EndedStrategy, Prompt, StrategyEnd
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.safe_markdown import markdown_html
from cutegen_nb.notebook.view import Live, detail, overview, roofline, session_view, with_pending

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e"


def _samples():
    path = Path(__file__).parents[1] / "report" / "conftest.py"
    spec = importlib.util.spec_from_file_location("report_samples", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SAMPLES = _samples()
WHOLE = SAMPLES.five_rounds()
OPEN = replace(WHOLE, rounds=WHOLE.rounds[:2], stopped="")
PENDING = WHOLE.rounds[2]
ASKED = Prompt(
    system="stand", user="ask", digest="d" * 64, strategy=PENDING.strategy, parent=OPEN.rounds[1].candidate
)


def at_revision(attempts, comparison=None, session=OPEN, **members):
    return Live(
        gate=Gate(kind="revision", session=session, attempts=attempts, comparison=comparison), **members
    )


def at_prompt(prompt):
    return Live(gate=Gate(kind="prompt", session=OPEN, prompt=prompt))


AT_PROMPT = at_prompt(ASKED)
AT_REVISION = at_revision(PENDING.attempts, PENDING.comparison)


def test_a_first_kernel_that_waits_is_not_said_to_be_unfinished():
    empty = replace(OPEN, rounds=())
    first = WHOLE.rounds[0]
    at_first = at_revision(first.attempts, first.comparison, session=empty)
    assert overview(empty, at_first, None)["session"]["lead"].startswith("No round is decided yet.")
    assert overview(empty, Live(), None)["session"]["lead"].startswith("No round has finished yet.")


def test_a_notice_that_refuses_is_marked_until_another_one_comes():
    live = replace(AT_PROMPT, notice="it names nothing", refused="it names nothing")
    assert overview(OPEN, live, None)["live"]["is_refused"]
    assert not overview(OPEN, replace(live, notice="Sent."), None)["live"]["is_refused"]


def test_a_view_is_json_at_every_gate_and_without_a_session():
    gpu = SAMPLES.gpu_rounds()
    for session in (None, OPEN, WHOLE, gpu, SAMPLES.make_session()):
        for live in (Live(), Live(doing="compiling", since=1.0), AT_PROMPT, AT_REVISION, Live(ended="done")):
            for selected in (None, 0, 1, 99):
                assert json.loads(json.dumps(session_view(session, live, selected)))


def test_the_pending_round_is_listed_as_waiting_and_is_the_one_shown():
    view = session_view(OPEN, AT_REVISION, None)
    assert [row["revision"] for row in view["rounds"]] == ["r0", "r1", "r2"]
    assert view["rounds"][2]["decision"] == "waiting for you"
    assert [row["best"] for row in view["rounds"]] == [False, True, False]
    assert view["gate"]["can_approve"] is True
    assert [branch["round"] for branch in view["gate"]["branches"]] == [0, 1]
    assert view["detail"]["editable"] is True
    assert view["detail"]["new"] == PENDING.candidate.source
    assert view["detail"]["old"] == OPEN.rounds[1].candidate.source


def test_another_round_can_be_looked_at_meanwhile_and_is_not_editable():
    view = session_view(OPEN, AT_REVISION, 1)
    assert view["selected"] == 1
    assert view["detail"]["title"] == "r1 · coalesce"
    assert view["detail"]["editable"] is False
    assert view["gate"]["round"] == 2


def test_a_candidate_that_failed_cannot_be_approved_and_the_view_says_why():
    failed = WHOLE.rounds[4]
    gate = overview(OPEN, at_revision(failed.attempts), None)["gate"]
    assert gate["can_approve"] is False
    assert "WRONG_VALUES" in gate["why_not"]
    assert "Reject it, edit it or stop" in gate["why_not"]


@pytest.mark.parametrize("relation", Relation)
def test_the_gate_says_when_an_approved_revision_is_kept_and_not_built_upon(relation):
    passed = next(item for item in WHOLE.rounds if item.evaluation and item.evaluation.passed)
    live = at_revision(passed.attempts, Comparison(relation=relation, reason="Some figures."), session=WHOLE)
    text = overview(WHOLE, live, None)["gate"]["text"]
    kept = f"Approving keeps it, and the next round still starts from r{WHOLE.best.number}"
    assert (kept in text) is not relation.is_better
    assert ("It counts once you approve it" in text) is relation.is_better
    view = overview(WHOLE, live, None)
    asked = "build on it" if relation.is_better else "keep it"
    assert view["live"]["sentence"] == f"r{len(WHOLE.rounds)} waits for you: {asked}?"
    assert (view["gate"]["asks"], view["gate"]["is_kept"]) == (asked, not relation.is_better)


def test_at_the_prompt_gate_the_prompt_is_shown_with_its_parent():
    view = session_view(OPEN, AT_PROMPT, None)
    assert view["detail"]["kind"] == "prompt"
    assert view["detail"]["user"] == "ask"
    assert view["detail"]["from"] == "r1"
    assert view["rounds"][2]["strategy"] == "vectorise-128"


def test_a_request_that_is_answered_stays_in_view_with_its_strategy():
    answered = Live(sent=ASKED, doing="the model writes: 400 characters")
    shown = detail(OPEN, answered, None)
    assert (shown["kind"], shown["title"], shown["editable"], shown["sent"]) == (
        "prompt",
        "Request for r2",
        False,
        True,
    )
    row = overview(OPEN, answered, None)["rounds"][-1]
    assert (row["revision"], row["strategy"], row["decision"]) == ("r2", ASKED.strategy.name, "working")


def test_each_question_has_a_name_of_its_own():
    later = replace(OPEN, rounds=WHOLE.rounds[:3])
    lives = [
        AT_PROMPT,
        at_prompt(replace(ASKED, digest="e" * 64)),
        Live(gate=Gate(kind="prompt", session=later, prompt=ASKED)),
        AT_REVISION,
        at_revision(PENDING.attempts[:1]),
        Live(carried=ASKED),
        Live(carried=replace(ASKED, digest="e" * 64)),
    ]
    assert len({live.question(OPEN) for live in lives}) == len(lives)
    assert Live(doing="compiling").question(OPEN) == ""


def test_simulated_sessions_show_counts_and_measured_ones_times():
    counted, timed = overview(WHOLE, Live(), None), overview(SAMPLES.gpu_rounds(), Live(), None)
    assert counted["columns"] == ["Estimate", "Sectors", "Warp instr.", "Bytes ÷ least"]
    assert counted["session"]["mark"] == "simulated counts, no measured times"
    assert f"{WHOLE.device.label}, estimates for NVIDIA H200" in counted["session"]["facts"]
    assert timed["columns"] == ["Latency", "Over eager (95 %)", "Of roof"]
    assert timed["rounds"][1]["figures"][:2] == ["3.07 ms", "0.989× (0.985–0.993)"]


def test_a_round_without_a_candidate_says_what_happened():
    silent = replace(
        WHOLE.rounds[2], number=0, attempts=WHOLE.rounds[2].attempts[:1], comparison=None, note="gave up"
    )
    shown = detail(replace(WHOLE, rounds=(silent,)), Live(), 0)
    assert shown["has_source"] is False
    assert shown["tabs"] == []
    assert shown["exchanges"][0]["words"] == "The reply holds no source and no edits."


def test_hostile_text_is_escaped_in_every_html_member_and_made_visible():
    candidate = replace(
        PENDING.candidate, rationale=HOSTILE, source=f"# {HOSTILE}\n{PENDING.candidate.source}"
    )
    last = PENDING.attempts[-1]
    evaluation = replace(WHOLE.rounds[4].evaluation, summary=HOSTILE, log=HOSTILE)
    evaluation = replace(evaluation, findings=tuple(replace(f, message=HOSTILE) for f in evaluation.findings))
    attempts = (replace(last, candidate=candidate, evaluation=evaluation, problem=HOSTILE),) * 2
    view = session_view(OPEN, at_revision(attempts, notice=HOSTILE), None)
    html = [value for key, value in _members(view) if key.endswith("_html")]
    assert len(html) >= 3
    assert not any("<img" in text or "<script" in text for text in html)
    assert "\u202e" not in view["live"]["notice"]


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "![p](http://example.invalid/p.png)",
        "[l](javascript:alert(1))",
        "<https://example.invalid>",
        '<button data-commandlinker-command="x">b</button>',
        "<style>*{display:none}</style>",
    ],
)
def test_markdown_keeps_words_and_nothing_that_acts(text):
    html = markdown_html(f"**bold** {text} `code`")
    assert "<strong>bold</strong>" in html
    assert "<code>code</code>" in html
    for tag in ("<img", "<a", "<button", "<style", "<script"):
        assert tag not in html


def test_unpaired_surrogates_cannot_break_the_message():
    view = session_view(OPEN, at_prompt(replace(ASKED, user="\ud800", system="\udfff")), None)
    json.dumps(view, ensure_ascii=False).encode("utf-8")


def test_the_pending_round_is_never_best_and_the_session_itself_is_not_changed():
    whole = with_pending(OPEN, AT_REVISION)
    assert whole.best is OPEN.best
    assert len(OPEN.rounds) == 2
    assert with_pending(OPEN, AT_PROMPT) is OPEN


def test_the_roofline_is_a_picture_and_words():
    shown = roofline(WHOLE, dark=True)
    assert shown["image"].startswith("data:image/png;base64,")
    assert any("r2" in line for line in shown["words"])
    assert roofline(None, dark=False) == {}


def _members(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, item
            yield from _members(item)
    elif isinstance(value, list):
        for item in value:
            yield from _members(item)


def test_what_rests_on_an_inference_may_be_overruled_and_the_gate_says_so():
    failed = WHOLE.rounds[4]
    cheated = replace(
        failed.evaluation,
        outcome=Judged(verdict=Verdict.CHEATED),
        exhibits=(Exhibit(kind="no-launch", statement="No kernel was launched."),),
    )
    attempts = (replace(failed.attempts[-1], evaluation=cheated),)
    gate = overview(OPEN, at_revision(attempts), None)["gate"]
    assert gate["can_overrule"] is True
    assert "overrule it with a reason" in gate["why_not"]
    assert overview(OPEN, AT_REVISION, None)["gate"]["can_overrule"] is False


def test_the_decision_column_counts_the_strategies_that_ended_and_tells_the_first():
    reason = "its rows are too short for it, " * 10
    over = [
        EndedStrategy(
            strategy=replace(PENDING.strategy, name=name), end=StrategyEnd.CANNOT_APPLY, reason=reason
        )
        for name in ("one-pass", "split", "tiles")
    ]
    tried = tuple(
        replace(WHOLE.rounds[1].attempts[0], candidate=None, evaluation=None, ended=item) for item in over
    )
    told = replace(WHOLE, rounds=(WHOLE.rounds[0], replace(WHOLE.rounds[1], attempts=tried)))
    row = overview(told, Live(ended="done"), None)["rounds"][1]
    first = "3 strategies ended by the author, first one-pass: cannot apply (its rows"
    assert row["not_tried"].startswith(first)
    assert len(row["not_tried"]) < 300
    assert "split" not in row["not_tried"]
    assert all(name in row["not_tried_whole"] for name in ("one-pass", "split", "tiles"))
    assert row["words"] == WHOLE.rounds[1].decisions[-1].reason, "a person's words stand alone"


def test_words_for_the_next_request_stay_listed_while_their_round_waits():
    said = "On line 9 of r2:\n    THREADS = 512\nwhy 512? try 256"
    made = [
        Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="of the request before"),
        Decision(gate="revision", action=Action.STEER, by="person:ada", reason=said),
        Decision(gate="revision", action=Action.EDIT, by="person:ada", edited="x = 1"),
    ]
    for decided in (made[:2], made):
        gate = replace(AT_REVISION.gate, made=tuple(decided))
        row = overview(OPEN, replace(AT_REVISION, gate=gate), None)["rounds"][2]
        assert (row["decision"], row["words"]) == ("waiting for you", "On line 9 of r2: why 512? try 256")

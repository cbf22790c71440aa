"""JSON view of a session and its live state, for the panel.

Text is plain and shown as text. Members whose name ends in ``_html`` hold HTML from the report's renderers,
which escape, or from Markdown without raw HTML that a sanitiser has cleaned.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutegen_nb.analysis.history.ended import ended_words, few_ended
from cutegen_nb.analysis.history.ledger import without_quote
from cutegen_nb.analysis.history.row_figures import counted_figures, timed_figures
from cutegen_nb.analysis.history.summary import (
    NO_CANDIDATE,
    RoundSummary,
    hardware,
    outcome,
    relation_kind,
    rows,
    simulated,
    size_words,
    who,
)
from cutegen_nb.app.ending import end_view
from cutegen_nb.core.library import library_option
from cutegen_nb.core.round import Action, Prompt
from cutegen_nb.core.session import Session
from cutegen_nb.loop.population.slot_progress import SlotProgress
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.carrying import request_id
from cutegen_nb.notebook.population.view import epoch_sentence, slots_view, used_words
from cutegen_nb.notebook.review.base import Look, VersionBase
from cutegen_nb.notebook.review.roofline_chart import chart
from cutegen_nb.notebook.view_detail import prompt_detail, round_code, round_detail
from cutegen_nb.notebook.view_gate import carry_view, gate_view
from cutegen_nb.report.markup import visible
from cutegen_nb.report.roofline import plot

_WAITS = "waiting for you"
"""Decision of a round that waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Live state of a session, beside its finished rounds."""

    doing: str = ""
    """Short phrase for the present step; empty while nothing runs."""
    since: float = 0.0
    """Unix time in seconds at which the step or gate began; 0 when unknown."""
    began: float = 0.0
    """Unix time in seconds at which the work since the last decision began; 0 when unknown."""
    gate: Gate | None = None
    """Open gate; None while no decision is pending."""
    sent: Prompt | None = None
    """Request that was approved and is being answered; None at a gate, and where none was asked about."""
    writing: str = ""
    """Text that the model has streamed for it so far; empty for an author that streams none."""
    carried: Prompt | None = None
    """Request that a person is to carry to a model, for the author ``manual``; None in between."""
    files: tuple[Path, Path] | None = None
    """Files of that request and of its reply, for a person who works with files; None in between."""
    notice: str = ""
    """Sentence for the person on the effect of a decision, or an error."""
    refused: str = ""
    """Sentence of the last refusal; the notice is one while it is the same."""
    ended: str = ""
    """Reason of the session's end; empty while it takes decisions."""
    slots: tuple[SlotProgress, ...] = ()
    """Slots of the running epoch of a population; empty between epochs."""

    def question(self, session: Session | None) -> str:
        """Identifier of what a person is asked for: a decision or a reply; empty for nothing."""
        if self.gate is not None:
            return self.gate.id
        return request_id(self.carried, len(session.rounds)) if self.carried and session else ""


def session_view(
    session: Session | None, live: Live, selected: int | None, version: int | None = None
) -> dict[str, object]:
    """Return the panel's view but the roofline.

    `selected` is a round's number, None for the newest; `version` an attempt of it, None for the last.
    """
    return {**overview(session, live, selected), "detail": detail(session, live, selected, version)}


def overview(session: Session | None, live: Live, selected: int | None) -> dict[str, object]:
    """Return header, rounds and open gate, the small part of the view that changes often."""
    if session is None:
        return {
            "session": None,
            "live": _live(live, None),
            "columns": [],
            "rounds": [],
            "gate": None,
            "carry": None,
            "end": end_view(None, "", live.ended),
            "slots": [],
            "selected": 0,
        }
    whole = with_pending(session, live)
    return {
        "session": _header(session, whole),
        "live": _live(live, session),
        "columns": list(_columns(whole)),
        "rounds": _rounds(session, whole, live),
        "gate": gate_view(session, whole, live.gate),
        "carry": carry_view(session, live.carried, live.files),
        "end": end_view(session, session.name, live.ended),
        "slots": slots_view(live.slots),
        "selected": _shown(session, live, selected),
    }


def panel_text(view: Mapping[str, Any], closed: str, name: str) -> str:
    """Format a panel in a few lines of text, for front ends without widgets; `view` is its trait."""
    session, live = view.get("session"), view.get("live")
    if not live:
        return f"{visible(name) or 'cutegen'}: the panel shows nothing yet."
    called = session["name"] if session else visible(name) or "cutegen"
    end = view.get("end")
    state = f"{live['sentence']} {end['reason']} {end['advice']}" if end else live["sentence"]
    lines = [f"{called}: {closed or state} {live['doing']}".rstrip()]
    if session:
        lines.append(f"{session['lead']} {session['used'].capitalize()}.")
    rounds = [f"{row['revision']} {row['verdict'] or row['decision']}" for row in view["rounds"]]
    lines += [f"Rounds: {', '.join(rounds)}."] if rounds else []
    asks = "`%cutegen help` tells what you can answer, " if live["gate"] and not closed else ""
    return "\n".join([*lines, f"{asks}`%cutegen status` where it stands, `%cutegen report` all of it."])


def detail(
    session: Session | None,
    live: Live,
    selected: int | None,
    version: int | None = None,
    pinned: int | VersionBase | None = None,
) -> dict[str, object]:
    """Return the selected round in the selected version, or the request that is asked about.

    `pinned` is the number of the round that it is compared with, or a version of its own kernel; None for its
    parent.
    """
    if session is None:
        return {"kind": "empty", "key": "empty", "text": "The problem is being read; rounds appear here."}
    whole = with_pending(session, live)
    number = _shown(session, live, selected)
    gate = live.gate
    prompt = gate.prompt if gate else live.carried or live.sent
    if number == len(session.rounds) and prompt:
        return prompt_detail(
            session,
            prompt,
            live.question(session),
            editable=gate is not None,
            sent=prompt is live.sent,
        )
    if number < len(whole.rounds):
        is_pending = number == len(session.rounds)
        key = gate.id if gate and is_pending else f"{session.name} r{number}"
        look = Look(version=version, pinned=pinned)
        return round_detail(whole, whole.rounds[number], key, editable=is_pending, look=look)
    words = (
        ended_words(session.stopped or live.ended) or "No round has finished yet: the first one appears here."
    )
    return {"kind": "empty", "key": "empty", "text": visible(words)}


def code(
    session: Session | None, live: Live, selected: int | None, version: int | None, key: str
) -> dict[str, object]:
    """Return the compiled code of the selected round in the selected version; empty where there is none.

    `key` is that of its detail.
    """
    if session is None:
        return {}
    whole, number = with_pending(session, live), _shown(session, live, selected)
    return round_code(whole, whole.rounds[number], key, version) if number < len(whole.rounds) else {}


def roofline(session: Session | None, *, dark: bool) -> dict[str, object]:
    """Return the roofline with its description.

    Measured kernels are values that the page draws. Else it is a PNG in a ``data:`` URL, which takes a third
    of a second.
    """
    if session is None:
        return {}
    drawn = chart(session)
    image = None if drawn else plot.png(session, dark=dark)
    return {
        "chart": drawn,
        "image": f"data:image/png;base64,{base64.b64encode(image).decode()}" if image else "",
        "dark": dark,
        "caption": visible(plot.caption(session)),
        "words": [visible(line) for line in plot.describe(session)],
    }


def with_pending(session: Session, live: Live) -> Session:
    """Append the round at an open revision gate to the session, so that every view can show it."""
    return live.gate.with_pending(session) if live.gate else session


def _shown(session: Session, live: Live, selected: int | None) -> int:
    is_asked = (live.gate is not None and live.gate.draft is None) or bool(live.carried or live.sent)
    last = len(session.rounds) if is_asked else max(len(session.rounds) - 1, 0)
    return last if selected is None or not 0 <= selected <= last else selected


def _header(session: Session, whole: Session) -> dict[str, object]:
    counted = simulated(session)
    is_undecided = bool(whole.rounds) and not session.rounds
    result = "No round is decided yet." if is_undecided else outcome(session)
    where = f"{session.device.label}, estimates for {hardware(session)}" if counted else hardware(session)
    return {
        "name": visible(session.name),
        "facts": [
            session.facts.workload_class.value,
            session.facts.dtype,
            visible(where),
            f"author {visible(session.author)}",
            *([f"{library_option(session.problem.library)} by PyTorch"] if session.problem.library else []),
        ],
        "counted": counted,
        "mark": "simulated counts, no measured times" if counted else "measured times",
        "lead": visible(" ".join(filter(None, [result, size_words(session)]))),
        "used": used_words(session),
    }


def _live(live: Live, session: Session | None) -> dict[str, object]:
    is_waiting = live.gate is not None or live.carried is not None
    return {
        "doing": visible(live.doing),
        "since": live.since,
        "began": live.began,
        "gate": live.gate.kind if live.gate else "",
        "id": live.question(session),
        "notice": visible(live.notice),
        "is_refused": live.notice != "" and live.notice == live.refused,
        "ended": visible(ended_words(live.ended)),
        "state": "ended" if live.ended else "waiting" if is_waiting else "working" if live.doing else "idle",
        "sentence": visible(_sentence(live, len(session.rounds) if session else 0)),
    }


def _sentence(live: Live, number: int) -> str:
    if live.ended:
        return "This session has ended."
    if (live.gate and live.gate.draft) or live.slots:
        return epoch_sentence(live.gate, live.slots)
    if live.gate:
        return f"r{number} waits for you: {live.gate.question}?"
    if live.carried:
        return f"r{number} waits for you: carry the request to a model and bring its reply."
    return f"Working on r{number}:" if live.doing else "Nothing is running."


def _columns(session: Session) -> tuple[str, ...]:
    over = _baseline(session)
    return (
        ("Estimate", "Sectors", "Warp instr.", "Bytes ÷ least")
        if simulated(session)
        else ("Latency", f"Over {over} (95 %)" if over else "Speedup (95 %)", "Of roof")
    )


def _baseline(session: Session) -> str:
    """Return the baseline's name if all speedups share it; empty if each cell has to name its own."""
    names = {item.baseline for item in rows(session) if item.baseline}
    return visible(names.pop()) if len(names) == 1 else ""


def _rounds(session: Session, whole: Session, live: Live) -> list[dict[str, object]]:
    counted = simulated(session)
    over = _baseline(whole)
    finished = len(session.rounds)
    # Decisions settle the best revision, so the pending round cannot change it.
    listed = [
        _row(item, number, counted=counted, over=over)
        | (
            {"decision": _WAITS, "words": _pending_words(whole), "pending": True}
            if number == finished
            else {}
        )
        for number, item in enumerate(rows(whole))
    ]
    is_round = not live.slots and not (live.gate and live.gate.draft)
    busy = bool(live.gate or live.carried or live.doing)
    if len(whole.rounds) == finished and not live.ended and busy and is_round:
        prompt = live.gate.prompt if live.gate else live.carried or live.sent
        asked = prompt.strategy if prompt else None
        listed.append(
            {
                "number": finished,
                "revision": f"r{finished}",
                "strategy": visible(asked.name if asked else "") or ("" if session.best else "first kernel"),
                "verdict": "",
                "kind": "neutral",
                "relation": "",
                "relation_reason": "",
                "relation_kind": "neutral",
                "figures": ["", "", ""],
                "decision": _WAITS if live.gate or live.carried else "working",
                "words": "",
                "not_tried": "",
                "not_tried_whole": "",
                "best": False,
                "pending": True,
                "selectable": bool(live.gate or live.carried or live.sent),
                "has_source": False,
            }
        )
    return listed


def _pending_words(whole: Session) -> str:
    """Return the words of the round at its gate that go into the next request, whatever was decided since."""
    made = whole.rounds[-1].decisions
    said = [one.reason for one in made if one.action is Action.STEER and one.gate == "revision"]
    return visible("; ".join(map(without_quote, said)))


def _row(item: RoundSummary, number: int, *, counted: bool, over: str) -> dict[str, object]:
    decided = f"{item.decision} by {who(item.decided_by)}" if item.decision else "–"
    return {
        "number": number,
        "revision": item.revision,
        "strategy": visible(item.strategy) or "first kernel",
        "verdict": item.verdict_words,
        "kind": "good" if item.passed else "bad",
        "relation": item.relation_words,
        "relation_reason": visible(item.reason) if item.relation else "",
        "relation_kind": relation_kind(item),
        "figures": list(
            counted_figures(item) if counted else timed_figures(item, "" if over else visible(item.baseline))
        ),
        "decision": visible(decided),
        "words": visible(without_quote(item.words)),
        "not_tried": visible(few_ended(item.ended)),
        "not_tried_whole": visible("; ".join(item.ended)),
        "best": item.best,
        "pending": False,
        "selectable": True,
        "has_source": item.verdict != NO_CANDIDATE,
    }

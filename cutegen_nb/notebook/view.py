"""What the panel shows, as one JSON value made from a session and what is going on now.

Text is plain and the panel shows it as text. Members whose name ends in ``_html`` hold HTML made here:
by the report's renderers, which escape, or from Markdown with its HTML off and a sanitiser behind it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cutegen_nb.analysis.merge import mergeable
from cutegen_nb.analysis.summary import (
    RoundSummary,
    counted_figures,
    hardware,
    outcome,
    rows,
    simulated,
    standing,
    timed_figures,
    who,
)
from cutegen_nb.core.round import Attempt, Comparison, Prompt, Relation, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.notebook.view_detail import named, prompt_detail, round_detail
from cutegen_nb.report import roofline_plot
from cutegen_nb.report.markup import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What is going on in a session beside its finished rounds."""

    doing: str = ""
    """What is being done now, in a short phrase; empty while nothing is."""
    since: float = 0.0
    """Unix time at which it began; 0 when unknown."""
    gate: str = ""
    """The gate at which a person is waited for: ``prompt``, ``revision``, or empty for none."""
    prompt: Prompt | None = None
    """At the prompt gate: what would be asked."""
    attempts: tuple[Attempt, ...] = ()
    """At the revision gate: the exchanges of the round, the last candidate being the one to decide on."""
    comparison: Comparison | None = None
    """At the revision gate: the candidate against the best before it."""
    notice: str = ""
    """A sentence for the person: what a decision did, or what went wrong."""
    ended: str = ""
    """Why the session takes no more decisions; empty while it does."""


def session_view(session: Session | None, live: Live, selected: int | None) -> dict[str, object]:
    """Everything the panel shows but the picture; `selected` is a round's number, None for the newest."""
    return {**overview(session, live, selected), "detail": detail(session, live, selected)}


def overview(session: Session | None, live: Live, selected: int | None) -> dict[str, object]:
    """Header, rounds and what is waited for: what changes often and is small."""
    if session is None:
        return {
            "session": None,
            "live": _live(live, 0),
            "columns": [],
            "rounds": [],
            "gate": None,
            "selected": 0,
        }
    whole = with_pending(session, live)
    return {
        "session": _header(session),
        "live": _live(live, len(session.rounds)),
        "columns": list(_columns(whole)),
        "rounds": _rounds(session, whole, live),
        "gate": _gate(session, whole, live),
        "selected": _shown(session, live, selected),
    }


def panel_text(view: Mapping[str, Any], closed: str, name: str) -> str:
    """A panel in a few lines of text, for where it cannot be drawn; `view` is what it shows."""
    session, live = view.get("session"), view.get("live")
    if not live:
        return f"{visible(name) or 'cutegen'}: the panel shows nothing yet."
    called = session["name"] if session else visible(name) or "cutegen"
    lines = [f"{called}: {closed or live['sentence']} {live['doing']}".rstrip()]
    if session:
        lines.append(f"{session['lead']} {session['used'].capitalize()}.")
    rounds = [f"{row['revision']} {row['verdict'] or row['decision']}" for row in view["rounds"]]
    lines += [f"Rounds: {', '.join(rounds)}."] if rounds else []
    asks = "`%cutegen help` tells what you can answer, " if live["gate"] and not closed else ""
    return "\n".join([*lines, f"{asks}`%cutegen status` where it stands, `%cutegen report` all of it."])


def detail(session: Session | None, live: Live, selected: int | None) -> dict[str, object]:
    """The round that is looked at, or the prompt that would be asked for it."""
    if session is None:
        return {"kind": "empty", "key": "empty", "text": "The problem is being read; rounds appear here."}
    whole = with_pending(session, live)
    number = _shown(session, live, selected)
    if number == len(session.rounds) and live.gate == "prompt" and live.prompt is not None:
        return prompt_detail(session, live.prompt, gate_id(live, number))
    if number < len(whole.rounds):
        is_pending = number == len(session.rounds)
        key = gate_id(live, number) if is_pending else f"{session.name} r{number}"
        return round_detail(whole, whole.rounds[number], key, editable=is_pending)
    words = session.stopped or live.ended or "No round has finished yet: the first one appears here."
    return {"kind": "empty", "key": "empty", "text": visible(words)}


def roofline(session: Session | None, *, dark: bool) -> dict[str, object]:
    """The roofline's picture as a ``data:`` address, with the same in words; takes a third of a second."""
    if session is None:
        return {}
    image = roofline_plot.png(session, dark=dark)
    return {
        "image": f"data:image/png;base64,{base64.b64encode(image).decode()}" if image else "",
        "dark": dark,
        "caption": visible(roofline_plot.caption(session)),
        "words": [visible(line) for line in roofline_plot.describe(session)],
    }


def with_pending(session: Session, live: Live) -> Session:
    """The session with the round that is being decided on as its last, so that every view can show it."""
    if live.gate != "revision" or not live.attempts:
        return session
    pending = Round(
        number=len(session.rounds),
        stage=live.attempts[0].prompt.stage or Stage.CORRECT,
        strategy=live.attempts[0].prompt.strategy,
        attempts=live.attempts,
        comparison=live.comparison,
        decisions=(),
        started_at="",
        seconds=0.0,
    )
    return replace(session, rounds=(*session.rounds, pending))


def gate_id(live: Live, number: int) -> str:
    """Names one question to the person: a click made for another one is not an answer to it."""
    if live.gate == "prompt":
        return f"prompt:{number}:{live.prompt.digest[:12] if live.prompt else ''}"
    return f"{live.gate}:{number}:{len(live.attempts)}" if live.gate else ""


def _shown(session: Session, live: Live, selected: int | None) -> int:
    last = len(session.rounds) if live.gate else max(len(session.rounds) - 1, 0)
    return last if selected is None or not 0 <= selected <= last else selected


def _header(session: Session) -> dict[str, object]:
    counted = simulated(session)
    where = f"simulator, {session.device.architecture}" if counted else hardware(session)
    return {
        "name": visible(session.name),
        "facts": [
            session.facts.workload_class.value,
            session.facts.dtype,
            visible(where),
            f"author {visible(session.author)}",
        ],
        "counted": counted,
        "mark": "simulated counts, no times" if counted else "measured times",
        "lead": visible(outcome(session)),
        "used": f"{len(session.rounds)} of at most {session.budget.rounds} rounds",
    }


def _live(live: Live, number: int) -> dict[str, object]:
    return {
        "doing": visible(live.doing),
        "since": live.since,
        "gate": live.gate,
        "id": gate_id(live, number),
        "notice": visible(live.notice),
        "ended": visible(live.ended),
        "state": "ended" if live.ended else "waiting" if live.gate else "working" if live.doing else "idle",
        "sentence": visible(_sentence(live, number)),
    }


def _sentence(live: Live, number: int) -> str:
    if live.ended:
        return f"Ended: {live.ended}"
    if live.gate == "prompt":
        return f"r{number} waits for you: send the request?"
    if live.gate == "revision":
        return f"r{number} waits for you: build on it?"
    return f"Working on r{number}:" if live.doing else "Nothing is running."


def _columns(session: Session) -> tuple[str, ...]:
    over = _baseline(session)
    return (
        ("Sectors", "Warp instr.", "Bytes ÷ least")
        if simulated(session)
        else ("Latency", f"Over {over} (95 %)" if over else "Speedup (95 %)", "Of roof")
    )


def _baseline(session: Session) -> str:
    """What the speedups are over, where it is one for all; the cells name theirs otherwise."""
    names = {item.baseline for item in rows(session) if item.baseline}
    return visible(names.pop()) if len(names) == 1 else ""


def _rounds(session: Session, whole: Session, live: Live) -> list[dict[str, object]]:
    counted = simulated(session)
    over = _baseline(whole)
    finished = len(session.rounds)
    # What is best is settled by decisions: the pending round cannot change it.
    listed = [
        _row(item, number, counted=counted, over=over, pending=number == finished)
        for number, item in enumerate(rows(whole))
    ]
    if len(whole.rounds) == finished and not live.ended and (live.gate or live.doing):
        strategy = live.prompt.strategy.name if live.prompt and live.prompt.strategy else ""
        listed.append(
            {
                "number": finished,
                "revision": f"r{finished}",
                "strategy": visible(strategy) or ("" if session.best else "first kernel"),
                "verdict": "",
                "kind": "neutral",
                "relation": "",
                "relation_kind": "neutral",
                "figures": ["", "", ""],
                "decision": "waiting for you" if live.gate else "working",
                "words": "",
                "best": False,
                "pending": True,
                "selectable": bool(live.gate),
            }
        )
    return listed


def _row(item: RoundSummary, number: int, *, counted: bool, over: str, pending: bool) -> dict[str, object]:
    decided = f"{item.decision} by {who(item.decided_by)}" if item.decision else "–"
    return {
        "number": number,
        "revision": item.revision,
        "strategy": visible(item.strategy) or "first kernel",
        "verdict": item.verdict,
        "kind": "good" if item.passed else "bad",
        "relation": item.relation,
        "relation_kind": standing(item),
        "figures": list(
            counted_figures(item) if counted else timed_figures(item, "" if over else visible(item.baseline))
        ),
        "decision": "waiting for you" if pending else visible(decided),
        "words": visible(item.words),
        "best": item.best,
        "pending": pending,
        "selectable": True,
    }


def _gate(session: Session, whole: Session, live: Live) -> dict[str, object] | None:
    number = len(session.rounds)
    if live.gate == "prompt" and live.prompt is not None:
        strategy = live.prompt.strategy
        return {
            "gate": "prompt",
            "id": gate_id(live, number),
            "round": number,
            "title": f"r{number}: {named(strategy.name) if strategy else 'a first kernel that is correct'}",
            "text": visible(strategy.statement) if strategy else "No strategy yet: first it has to be right.",
            "can_approve": True,
            "why_not": "",
            "branches": [],
            "merges": [],
            "can_overrule": False,
        }
    if live.gate != "revision" or len(whole.rounds) == number:
        return None
    row = rows(whole)[number]
    reason = row.reason if row.passed else f"{row.verdict}: {row.reason}"
    is_told = row.relation and row.relation != Relation.FIRST.value  # "first: The first passing revision"
    able = mergeable(whole)
    evaluation = whole.rounds[number].evaluation
    may_overrule = evaluation is not None and evaluation.may_be_overruled
    overrule = ", overrule it with a reason" if may_overrule else ""
    why_not = (
        f"r{number} is {row.verdict}, and only what passed can be built upon: "
        f"reject it, edit it{overrule} or stop."
    )
    return {
        "gate": "revision",
        "id": gate_id(live, number),
        "round": number,
        "title": f"r{number}: {named(row.strategy) or 'first kernel'}",
        "text": visible((f"{row.relation}: {reason}" if is_told else reason) + _kept_only(session, live)),
        "can_approve": row.passed,
        "why_not": "" if row.passed else why_not,
        "branches": [_choice(item) for item in rows(session) if item.passed],
        "merges": [_choice(item) for item in rows(session) if _number(item) in able],
        "can_overrule": may_overrule,
    }


def _kept_only(session: Session, live: Live) -> str:
    """What approving does where the revision is no better than the best: it is kept, not built upon."""
    if session.best is None or live.comparison is None or live.comparison.relation.is_better:
        return ""
    best = f"r{session.best.number}"
    return f" Approving keeps it, and the next round still starts from {best}."


def _number(item: RoundSummary) -> int:
    return int(item.revision.removeprefix("r"))


def _choice(item: RoundSummary) -> dict[str, object]:
    """A revision as a line of a list to choose from."""
    name = named(item.strategy) or "first kernel"
    became = "best" if item.best else item.decision if item.passed else item.verdict
    return {
        "round": _number(item),
        "label": " · ".join(part for part in (item.revision, name, became) if part),
    }

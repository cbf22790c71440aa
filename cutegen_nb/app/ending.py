"""End of a session for a person: its reason as a sentence, the next step, and what can be done by a click."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cutegen_nb.analysis.history.ended import EndKind, end_kind, is_stopped_by_person, short_reason
from cutegen_nb.analysis.history.spending import rounds_spent
from cutegen_nb.analysis.history.summary import revision
from cutegen_nb.core.session import Session
from cutegen_nb.loop.session import waiting_round
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.report.markup import Style, fill, visible
from cutegen_nb.store.bundle import SUFFIX

MORE = 3
"""Rounds that going on adds to a session whose rounds are spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndStep:
    """Action that is offered after the end of a session."""

    action: str
    """Action of the panel."""
    label: str
    """Words on its button."""
    typed: str
    """Code that does the same in a cell."""
    does: str
    """Effect in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """Reason of an end, the advice that follows from it, and the actions that are offered."""

    kind: EndKind
    """Kind of the end; FAILED for an error too."""
    reason: str
    """Sentence on the cause of the end; of many clauses the first ones."""
    more: tuple[str, ...] = ()
    """Clauses that the sentence leaves out or cuts, whole."""
    advice: str
    """Sentence with the next step."""
    steps: tuple[EndStep, ...]
    """Actions, the most likely first."""


def ending(session: Session | None, name: str, ended: str) -> SessionEnd:
    """Describe the end of a session; `ended` is the reason that its runner gave.

    `session` is None if the problem could not be read.
    """
    if session is None:
        return SessionEnd(
            kind=EndKind.FAILED,
            reason=_sentence(ended),
            advice="Correct the cause named above, then run the cell again.",
            steps=(),
        )
    return SessionEnd(
        kind=EndKind.FAILED if _is_error(session, ended) else end_kind(ended),
        reason=_reason(session, ended),
        more=short_reason(ended)[1],
        advice=_advice(session, ended),
        steps=_steps(session, name, ended),
    )


def rounds_to_go_on(session: Session) -> int:
    """Return the budget of rounds with which a session goes on: `MORE` are added when all are done."""
    return rounds_spent(session) + MORE if _are_rounds_done(session) else session.budget.rounds


def _are_rounds_done(session: Session) -> bool:
    """Return whether a session has spent its rounds, and no revision of them waits for its decision."""
    return rounds_spent(session) >= session.budget.rounds and waiting_round(session) is None


def _is_error(session: Session, ended: str) -> bool:
    """Return whether an error ended the session: its reason is then not in the store."""
    return session.stopped != ended


def _reason(session: Session, ended: str) -> str:
    shown, _ = short_reason(ended)
    if is_stopped_by_person(ended):
        return f"{shown}."
    if _is_error(session, ended):
        return f"An error ended it. {_sentence(shown)}"
    return _sentence(shown)


def _sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    shown = text.strip()
    # An address or a path begins as it is written.
    first = shown.split(" ", 1)[0]
    begun = shown if "/" in first else f"{shown[:1].upper()}{shown[1:]}"
    return f"{begun}{'' if shown.endswith(('.', '!', '?')) else '.'}"


def _advice(session: Session, ended: str) -> str:
    best = session.best
    start = f"from {revision(best)}, the best revision" if best else "with a first kernel"
    if _has_no_kernel_offline(session, ended):
        return (
            "The offline author has no kernel for this problem: in the cell, --author openai asks a model, "
            "--author manual you and any chat."
        )
    if _is_error(session, ended):
        return f"Correct the cause named above, then go on {start}; finished rounds are kept."
    if waiting := waiting_round(session):
        return f"Going on asks about {revision(waiting)} again; finished rounds are kept."
    if is_stopped_by_person(ended):
        return f"Going on starts {start}; finished rounds are kept."
    if end_kind(ended) is EndKind.BUDGET:
        if _are_rounds_spent(session, ended):
            return f"{MORE} more rounds would start {start}."
        return f"Run the cell again with a larger limit to go on {start}."
    if end_kind(ended).is_final:
        return (
            "Going on would end for the same reason: export the kernel, or run the cell again with another "
            "author (--author openai or manual)."
        )
    return f"Correct the cause named above, then go on {start}; finished rounds are kept."


def _has_no_kernel_offline(session: Session, ended: str) -> bool:
    """Return whether the offline author ended without a kernel, and not because a person stopped it."""
    is_unwritten = not any(item.candidate for item in session.rounds)
    return session.author == "offline" and is_unwritten and not is_stopped_by_person(ended)


def _may_go_on(session: Session, ended: str) -> bool:
    """Return whether the same author may go on, and would not end at once for the same reason."""
    if _has_no_kernel_offline(session, ended):
        return False
    is_spent = end_kind(ended) is EndKind.BUDGET and not _are_rounds_spent(session, ended)
    return not is_spent and not end_kind(ended).is_final


def _are_rounds_spent(session: Session, ended: str) -> bool:
    """Return whether the budget that ended the session is that of its rounds."""
    return ended == budget_spent(session) and _are_rounds_done(session)


def _steps(session: Session, name: str, ended: str) -> tuple[EndStep, ...]:
    steps = []
    is_spent, waiting = _are_rounds_done(session), waiting_round(session)
    if _may_go_on(session, ended):
        rounds = f" --rounds {rounds_to_go_on(session)}" if is_spent else ""
        label = f"{MORE} more rounds" if is_spent else "Go on"
        starts = "starts from the best revision" if session.best else "asks for a first kernel again"
        does = f"asks about {revision(waiting)} again" if waiting else starts
        steps.append(EndStep(action="more", label=label, typed=f"%cutegen resume {name}{rounds}", does=does))
    if session.best:
        file = kernel_path(name)
        does = "judges the best kernel once more and writes it as a module"
        steps.append(
            EndStep(
                action="export",
                label="Export the kernel",
                typed=f"%cutegen export {name} -o {file}",
                does=does,
            )
        )
    if session.rounds:
        file = f"{name}{SUFFIX}"
        does = "writes the whole session as one file, to keep or to pass on"
        steps.append(
            EndStep(
                action="bundle",
                label="Save the session",
                typed=f"%cutegen export {name} -o {file}",
                does=does,
            )
        )
    return tuple(steps)


def kernel_path(name: str) -> str:
    """Return the name of the file that takes a session's best kernel."""
    return f"{name}_kernel.py"


def unused(path: str) -> str:
    """Return the path, with a number before its suffix if there is such a file already."""
    wanted = Path(path)
    number = 2
    while wanted.exists():
        wanted = Path(path).with_stem(f"{Path(path).stem}_{number}")
        number += 1
    return str(wanted)


def end_view(session: Session | None, name: str, ended: str) -> dict[str, object] | None:
    """Return the end of a session for the panel; None while it takes decisions."""
    if not ended:
        return None
    found = ending(session, name, ended)
    return {
        "kind": found.kind.value,
        "reason": visible(found.reason),
        "more": [visible(one) for one in found.more],
        "advice": visible(found.advice),
        "steps": [
            {"action": one.action, "label": one.label, "typed": one.typed, "does": one.does}
            for one in found.steps
        ],
    }


def ended_bundle(found: SessionEnd, name: str, panel: str, said: str, store: str = "") -> dict[str, str]:
    """Return the output that takes the panel's place, by MIME type.

    `panel` is the mark by which the buttons reach the kernel while it runs, `said` what an action came to,
    `store` the option that names the session's folder, for the commands that a new kernel may run.
    """
    shown = EndStep(
        action="reopen",
        label="Show the panel again",
        typed=f"%cutegen panel {name}",
        does="to look at its rounds",
    )
    # A session that never opened has no record, and its panel nothing to show.
    below = " Its record is below." if found.steps else ""
    ended = f"{name} has ended. {found.reason} {found.advice}{below}"
    placed = tuple(replace(one, typed=f"{one.typed}{store}") for one in found.steps)
    steps = (*placed, shown) if placed else ()
    html = fill("ended", Style.RECORD, ended=ended, steps=steps, panel=panel, said=said)
    text = "".join(f"\n  {one.typed}  {one.does}" for one in steps)
    said_text = f"\n{said}" if said else ""
    return {"text/html": html, "text/plain": visible(f"{ended}{said_text}{text}")}

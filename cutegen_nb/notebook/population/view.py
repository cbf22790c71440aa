"""JSON view of a population for the panel: kernels, epochs, the gate of an epoch, and the running slots.

Text is plain and shown as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.history.spending import rounds_spent
from cutegen_nb.analysis.population.epochs import EpochSummary, epoch_line, epoch_summaries
from cutegen_nb.analysis.population.summary import PopulationRow, population_rows, speed_source
from cutegen_nb.core.round import Action
from cutegen_nb.core.session import Session
from cutegen_nb.loop.population.gate import settings_changed
from cutegen_nb.loop.population.planning import forbidden
from cutegen_nb.loop.population.slot_progress import SlotProgress, SlotState
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.report.markup import visible

EPOCH_ACTIONS = frozenset(
    action.value for action in (Action.PIN, Action.DROP, Action.REQUEST, Action.FORBID, Action.BUDGET)
)
"""Actions of the panel that only the gate of an epoch takes."""


def population_view(session: Session | None, gate: Gate | None) -> dict[str, object]:
    """Return kernels, epochs and the open gate of an epoch; empty for a chain."""
    draft = gate.draft if gate else None
    if session is None or (session.plan.population == 1 and not session.epochs):
        return {}
    found = population_rows(session, draft)
    place = zone(session.facts, session.device)
    best = session.best.number if session.best else None
    members = sum(row.member for row in found)
    return {
        "source": speed_source(session),
        "zone": visible(place.text()) if place else "",
        "rows": [_row(session, row, best, can_drop=row.member and members > 1) for row in found],
        "epochs": [_epoch(item) for item in epoch_summaries(session, draft)],
        "gate": _gate(session, gate) if gate and draft else None,
    }


def _row(session: Session, row: PopulationRow, best: int | None, *, can_drop: bool) -> dict[str, object]:
    return {
        "number": row.number,
        "label": row.label,
        "epoch": row.epoch,
        "descent": " of ".join(filter(None, [row.move, " and ".join(f"r{one}" for one in row.parents)])),
        "strategy": visible(row.strategy),
        "statement": visible(row.aligned or row.statement),
        "corrections": [visible(words) for words in row.corrections],
        "speed": times(row.speed) if row.speed is not None else "",
        "time": duration(row.seconds) if row.seconds is not None else "",
        "outcome": visible(row.outcome),
        "note": visible(row.note),
        "carries": row.optimisations,
        "bound": row.bound,
        "best": row.number == best,
        "member": row.member,
        "pinned": row.pinned,
        "can_pin": session.rounds[row.number].approved and not row.pinned,
        "can_drop": can_drop,
    }


def _epoch(item: EpochSummary) -> dict[str, object]:
    return {
        "number": item.number,
        "text": epoch_line(item),
        "said": [
            *(visible(f"timed in the same turns: {words}") for words in item.duels),
            *(visible(words) for words in item.decisions),
        ],
    }


def _gate(session: Session, gate: Gate) -> dict[str, object]:
    decisions = gate.draft.decisions if gate.draft else ()
    changed = settings_changed(decisions)
    banned = forbidden(session, decisions)
    tried = dict.fromkeys(item.strategy.name for item in session.rounds if item.strategy)
    return {
        "id": gate.id,
        "epoch": gate.number,
        "title": f"Epoch {gate.number} is over: who goes on, and with what?",
        "epochs": changed.get("epochs", session.budget.epochs),
        "population": changed.get("population", session.plan.population),
        "strategies": [visible(name) for name in tried if name not in banned],
        "forbidden": [visible(name) for name in banned],
    }


def slots_view(slots: Sequence[SlotProgress]) -> list[dict[str, object]]:
    """Return the slots of the running epoch; `since` is Unix time in seconds, 0 unless one runs."""
    return [
        {
            "number": item.number,
            "move": item.move.value,
            "from": _parents(item),
            "strategy": visible(item.strategy),
            "state": item.state.value,
            "doing": visible(item.doing),
            "since": _unix(item.started_at) if item.state is SlotState.RUNNING else 0,
            "revision": f"r{item.round}" if item.round is not None else "",
        }
        for item in slots
    ]


def _parents(item: SlotProgress) -> str:
    return f"r{item.base}" + (f" and r{item.other}" if item.other is not None else "")


def _unix(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp() if stamp else 0.0


def epoch_sentence(gate: Gate | None, slots: Sequence[SlotProgress]) -> str:
    """Return the sentence on an epoch that runs or waits at its gate."""
    if gate is not None and gate.draft is not None:
        return f"Epoch {gate.number} waits for you: who goes on?"
    done = sum(item.state is SlotState.DONE for item in slots)
    return f"Working on epoch {slots[0].epoch}, {done} of {len(slots)} slots done:"


def slots_text(slots: Sequence[SlotProgress]) -> str:
    """Return the running epoch in words, and a line for each of its slots."""
    done = sum(item.state is SlotState.DONE for item in slots)
    lines = [f"epoch {slots[0].epoch}, {done} of {len(slots)} slots done"]
    for item in slots:
        what = ", ".join(filter(None, [f"{item.move.value} of {_parents(item)}", item.strategy]))
        state = {
            SlotState.PLANNED: "waits for a free worker",
            SlotState.RUNNING: item.doing or "starts",
            SlotState.DONE: f"done, r{item.round}",
        }[item.state]
        lines.append(f"  slot {item.number}, {what}: {state}")
    return "\n".join(lines)


def used_words(session: Session) -> str:
    """Return the rounds and epochs of a session, with their limits."""
    rounds = f"{rounds_spent(session)} of at most {session.budget.rounds} rounds"
    if session.plan.population == 1:
        return rounds
    epochs = session.budget.epochs
    limit = f" of at most {epochs}" if epochs is not None else ""
    return f"{rounds}, {len(session.epochs)}{limit} epochs of {session.plan.population} slots"

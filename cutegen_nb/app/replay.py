"""Replay of a recorded session from its stored replies, evaluations and decisions; no kernel runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cutegen_nb.analysis.figures.quantity import duration, moment
from cutegen_nb.analysis.population.epochs import decision_sentence, epoch_line, epoch_summaries
from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.replaying import GATE_PROMPT, RecordedDecisions, replay_session
from cutegen_nb.loop.session import OnEpoch, OnRound
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.store.bundle import SUFFIX, read_bundle
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, SystemClock, library_of, make_guide


def recorded_session(name: str, store: SqliteStore) -> Session:
    """Load a session by its name in the store, or from a ``.cutegen`` file. Raises StoreError if absent."""
    return read_bundle(Path(name)) if name.endswith(SUFFIX) else store.load(name)


def recording_line(recorded: Session) -> str:
    """Return a line that says when the session was recorded, on which device and by which author."""
    return (
        f"{recorded.name}, recorded from {moment(recorded.created_at)} on {recorded.device.label}, "
        f"written by {recorded.author}: nothing runs now"
    )


def before_decision(recorded: Session, number: int) -> Session:
    """Return the session as it stood at the gate of round `number`: evaluated, and nothing decided on it.

    Rounds that came later are left out. Raises UsageError for a round that it has not.
    """
    item = next((one for one in recorded.rounds if one.number == number), None)
    if item is None:
        raise UsageError(f"{recorded.name} has {len(recorded.rounds)} rounds, from r0: there is no r{number}")
    asked = replace(item, decisions=tuple(one for one in item.decisions if one.gate == GATE_PROMPT))
    epochs = tuple(one for one in recorded.epochs if item.slot and one.number < item.slot.epoch)
    earlier = tuple(one for one in recorded.rounds if one.number < number)
    return replace(recorded, rounds=(*earlier, asked), epochs=epochs, stopped="")


async def replayed(  # noqa: PLR0913 - a recording, its effects and callbacks
    recorded: Session,
    store: SqliteStore,
    progress: Progress,
    settings: Settings,
    *,
    on_round: OnRound | None = None,
    on_epoch: OnEpoch | None = None,
) -> Session:
    """Replay a session and store the copy under a free name: ``NAME_replay``, or ``NAME_replay_2`` on."""
    taken = set(store.names())
    name, number = f"{recorded.name}_replay", 1
    while name in taken:
        number += 1
        name = f"{recorded.name}_replay_{number}"
    effects = Effects(
        author=ReplayAuthor(recorded),
        evaluator=RecordedEvaluations(recorded),
        approver=RecordedDecisions(recorded),
        clock=SystemClock(),
        library=library_of(settings),
        progress=progress,
        guide=make_guide(settings),
    )
    return await replay_session(recorded, effects, store, name, on_round=on_round, on_epoch=on_epoch)


def epoch_words(session: Session) -> str:
    """Return the newest epoch in a line: its members, their best speed, and what persons decided."""
    epoch = epoch_summaries(session)[-1]
    made = [one for one in session.epochs[-1].decisions if one.by.startswith("person:")]
    said = "; ".join(decision_sentence(one) for one in made)
    return f"{epoch_line(epoch)} {said}".rstrip()


def round_words(item: Round) -> str:
    """Return a round in one line: strategy, verdict, time, relation and note."""
    strategy = f"{item.slot.move.value}: {item.title}" if item.slot else item.title
    compared = f", {item.comparison.words}" if item.comparison else ""
    note = f" ({item.note})" if item.note else ""
    became = item.evaluation.verdict_words if item.evaluation else round_label(item)
    timing = item.evaluation.timing if item.evaluation else None
    time = f", {duration(timing.median_ms / 1e3)} measured" if timing else ""
    return f"r{item.number}  {strategy}: {became}{time}{compared}{note}"

"""`cutegen-nb replay`: a session of the store or of a bundle, shown again as it was recorded."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cutegen_nb.authors.replay import RecordedEvaluations, ReplayAuthor
from cutegen_nb.cli.commands import NONE_PASSED, PASSED, Answer, settings_of
from cutegen_nb.cli.output import session_json
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.loop.replaying import RecordedDecisions, replay_session
from cutegen_nb.loop.round import Effects
from cutegen_nb.loop.session import OnRound
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.store.bundle import SUFFIX, read_bundle
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, SystemClock, library_of, make_guide, open_store

SUMMARY = (
    "show a stored session again, round by round, as it was recorded, and keep that as SESSION_replay; "
    "nothing is asked and nothing runs"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "session",
        metavar="SESSION",
        help=f"a name that `cutegen-nb sessions` lists, or a file that ends in {SUFFIX}",
    )


async def replay(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Run a recorded session again; the result is stored as a session of its own."""
    settings = settings_of(options)
    with open_store(settings) as store:
        recorded = recorded_session(options.session, store)
        terminal.say(recorded_words(recorded))
        session = await replayed(
            recorded,
            store,
            terminal.progress,
            settings,
            on_round=lambda _, item: terminal.say(round_words(item)),
        )
    terminal.clear()
    status = PASSED if session.best else NONE_PASSED
    if options.json:
        return Answer(status=status, text=json.dumps(session_json(session, None), indent=2))
    report = f"`cutegen-nb report {session.name} -o {session.name}.html` draws it"
    return Answer(status=status, text=f"{session.name}: {session.stopped}\n{report}")


def recorded_session(name: str, store: SqliteStore) -> Session:
    """The session of a store or of a bundle. Raises StoreError when there is none."""
    return read_bundle(Path(name)) if name.endswith(SUFFIX) else store.load(name)


def recorded_words(recorded: Session) -> str:
    """Where and when it was recorded, in a line."""
    return (
        f"{recorded.name}, recorded from {recorded.created_at} on {recorded.device.name} "
        f"({recorded.device.kind.value}), written by {recorded.author}: nothing runs now"
    )


async def replayed(
    recorded: Session,
    store: SqliteStore,
    progress: Progress,
    settings: Settings,
    *,
    on_round: OnRound | None = None,
) -> Session:
    """A recorded session run again and stored under a free name, ``NAME_replay`` or with a number."""
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
    return await replay_session(recorded, effects, store, name, on_round=on_round)


def round_words(item: Round) -> str:
    """A round in a line, with where and when it was recorded."""
    strategy = item.strategy.name if item.strategy else "first kernel"
    compared = f", {item.comparison.relation.value}" if item.comparison else ""
    recorded = item.evaluation.recorded if item.evaluation else ""
    note = f" ({item.note})" if item.note else ""
    return f"r{item.number}  {strategy}: {round_label(item)}{compared}{note}  [{recorded or 'no evaluation'}]"

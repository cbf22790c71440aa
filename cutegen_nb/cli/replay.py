"""`cutegen-nb replay`: replay of a recorded session from the store or a ``.cutegen`` file."""

from __future__ import annotations

import argparse
import json

from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.app.output import session_json
from cutegen_nb.app.replay import epoch_words, recorded_session, recording_line, replayed, round_words
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.wiring import open_store


async def replay(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Replay a recorded session and store the copy as a new session."""
    settings = settings_of(options)
    with open_store(settings) as store:
        recorded = recorded_session(options.session, store)
        terminal.say(recording_line(recorded))
        session = await replayed(
            recorded,
            store,
            terminal.progress,
            settings,
            on_round=lambda _, item: terminal.say(round_words(item)),
            on_epoch=lambda whole, _: terminal.say(epoch_words(whole)),
        )
    terminal.clear()
    status = PASSED if session.best else NONE_PASSED
    if options.json:
        return CommandResult(status=status, text=json.dumps(session_json(session, None), indent=2))
    report = f"`cutegen-nb report {session.name} -o {session.name}.html` draws it"
    return CommandResult(status=status, text=f"{session.name}: {ended_words(session.stopped)}\n{report}")

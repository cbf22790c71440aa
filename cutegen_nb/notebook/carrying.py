"""Requests that a person carries to a model and the replies brought back, and replay in a notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.source.screen import screen
from cutegen_nb.app.replay import (
    before_decision,
    epoch_words,
    recorded_session,
    recording_line,
    replayed,
    round_words,
)
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.round import Epoch, Prompt, Reply, Round, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.notebook.saved_record import record
from cutegen_nb.prompting.parse import Proposal, StrategyOver, parse_reply
from cutegen_nb.prompting.reply_faults import Unusable, split_thoughts
from cutegen_nb.prompting.strategy_reply import (
    NoStrategy,
    StatedAlignment,
    StatedStrategy,
    parse_alignment,
    parse_strategy,
)
from cutegen_nb.report.markup import Style, fill, visible
from cutegen_nb.wiring import Settings


def shown_prompt(prompt: Prompt) -> DisplayResult:
    """Return the whole prompt as text, and as HTML with a button that copies it."""
    text = request_text(prompt)
    page = fill("prompt", Style.RECORD, text=text)
    return DisplayResult({"text/html": page, "text/plain": visible(text)})


def request_text(prompt: Prompt) -> str:
    """Return the whole request as it is pasted into a chat: standing instructions and the request."""
    return f"{prompt.system.rstrip()}\n\n---\n\n{prompt.user.rstrip()}\n" if prompt.system else prompt.user


def request_id(prompt: Prompt, number: int) -> str:
    """Identifier of a request of round `number`, so that a reply to another one can be refused."""
    return f"reply:{number}:{prompt.digest[:12]}"


def short_path(path: Path) -> str:
    """Return a path from the notebook's folder, else from the home folder (``~``); unchanged outside both."""
    for folder, prefix in ((Path.cwd(), Path()), (Path.home(), Path("~"))):
        if path.is_relative_to(folder):
            return str(prefix / path.relative_to(folder))
    return str(path)


def lacking(prompt: Prompt, text: str, library: Library) -> str:
    """Return what a reply lacks, in sentences; empty for a reply that gives a kernel to evaluate.

    The reply is read as the loop reads it, and its kernel is screened, so that no round is spent on it.
    """
    proposal = _parsed(prompt, text)
    if isinstance(proposal, Unusable):
        return proposal.reason
    if not isinstance(proposal, Proposal):
        return ""
    refusals = [item for item in screen(proposal.source, library) if item.severity is Severity.DECIDES]
    return " ".join(f"{item.message.rstrip('.')}{_at(item.line)}." for item in refusals)


def reply_words(prompt: Prompt, text: str) -> str:
    """Name what a usable reply gives: a kernel with its size, or the end of its strategy."""
    proposal = _parsed(prompt, text)
    if isinstance(proposal, StrategyOver):
        return f"This ends the strategy: {proposal.end.value}."
    if isinstance(proposal, StatedStrategy):
        return f"This states the strategy {proposal.name}."
    if isinstance(proposal, StatedAlignment | NoStrategy):
        return "This answers the request."
    lines = len(proposal.source.splitlines()) if isinstance(proposal, Proposal) else 0
    return f"This gives a kernel of {lines} lines."


def _parsed(
    prompt: Prompt, text: str
) -> Proposal | StrategyOver | StatedStrategy | StatedAlignment | NoStrategy | Unusable:
    """Read a reply as the loop does: code, or the words that the request asks for."""
    thoughts, words = split_thoughts(text)
    reply = Reply(text=words, usage=Usage(), reasoning=thoughts)
    if prompt.purpose in {"cross", "invent"}:
        return parse_strategy(reply, may_decline=prompt.purpose == "cross")
    if prompt.purpose == "align":
        return parse_alignment(reply)
    may_end = prompt.stage is not None and prompt.strategy is not None
    found = parse_reply(reply, prompt.parent.source if prompt.parent else None, may_end=may_end)
    if isinstance(found, Unusable) and prompt.purpose == "reply" and prompt.stage is None:
        # A request that is made again may have been one for words; the loop knows which, and judges it.
        stated = (parse_strategy(reply, may_decline=True), parse_alignment(reply))
        return next((one for one in stated if not isinstance(one, Unusable)), found)
    return found


def _at(line: int | None) -> str:
    return f" (line {line})" if line else ""


def replay_here(engine: EventLoopThread, name: str, folder: Path) -> tuple[Session, str]:
    """Replay a session of the store or a bundle; return the new session and a text, a line a round."""
    settings = Settings(folder=folder)
    lines: list[str] = []

    def told(_: Session, item: Round) -> None:
        lines.append(round_words(item))

    def closed(whole: Session, _: Epoch) -> None:
        lines.append(epoch_words(whole))

    async def play() -> tuple[Session, Session]:
        store = await engine.lease(settings)
        try:
            recorded = recorded_session(name, store)
            return recorded, await replayed(
                recorded, store, _ignored, settings, on_round=told, on_epoch=closed
            )
        finally:
            await engine.give_back(settings)

    recorded, session = engine.result(play())
    text = [recording_line(recorded), *lines, f"{session.name}: {ended_words(session.stopped)}"]
    return session, "\n".join(text)


def shown_gate(engine: EventLoopThread, name: str, folder: Path, number: int) -> DisplayResult:
    """Show a recorded session at the gate of a round: its verdict and figures are there, its decision not."""
    settings = Settings(folder=folder)

    async def read() -> Session:
        store = await engine.lease(settings)
        try:
            return recorded_session(name, store)
        finally:
            await engine.give_back(settings)

    session = before_decision(engine.result(read()), number)
    return DisplayResult(record(session, f"r{number} waits for your decision"))


def _ignored(text: str) -> None:
    """Ignore the progress: a replay is too short to report it."""


class PanelPerson:
    """Person of a notebook, as `wiring.Person`: addressed through the panel, with no terminal input."""

    def __init__(
        self, progress: Progress, say: Callable[[str], None], replies: asyncio.Queue[str | Declined]
    ) -> None:
        self.progress = progress
        self.say = say
        self._replies = replies
        self.paste: Callable[[], Awaitable[str | None]] | None = self._reply

    async def _reply(self) -> str:
        """Wait for a reply from the panel or a cell. Raises Declined when the person brings none."""
        brought = await self._replies.get()
        if isinstance(brought, Declined):
            raise brought
        return brought

    async def read_line(self, question: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Return None: a notebook asks no questions in a terminal."""
        return None

    async def edit_text(self, text: str, suffix: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Return None: a notebook opens no editor."""
        return None

"""A session at work: the loop's coroutine on the engine, and what is going on in it as one value."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from cutegen_nb.authors.manual import WAITING, ManualAuthor
from cutegen_nb.core.errors import CutegenError, UsageError
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Prompt
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.round import Effects
from cutegen_nb.loop.session import Replan, open_session, run_session
from cutegen_nb.notebook.approver import Answer, Gate, PanelApprover
from cutegen_nb.notebook.engine import Engine
from cutegen_nb.notebook.faults import as_sentence
from cutegen_nb.notebook.merging import merge_answer
from cutegen_nb.notebook.record import record, waiting
from cutegen_nb.notebook.view import Live
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, make_effects, repairs_of

_CARRY = f"{WAITING}: `%cutegen prompt` shows the prompt, a cell under `%%cutegen reply` answers it"
"""What is told while a person carries a prompt to a model."""
_STARTING = "starting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a cell asked for."""

    problem: Problem
    """Named as the session is to be."""
    settings: Settings
    """Author, device, policy, folder."""
    budget: Budget
    """When to stop."""
    plan: Replan | None
    """What changes in how it goes from stage to stage; None for nothing."""
    attended: bool
    """Whether a panel shows it, for a person who is there."""
    store: SqliteStore
    """Leased from the engine; given back at the session's end."""


class RunningSession:
    """One session of this kernel, from its order to its end. Made on the main thread, works on the engine's.

    `session`, `live` and `shown` are replaced whole, never changed, so that any thread may look at them.
    """

    def __init__(self, order: Order, engine: Engine, on_change: Callable[[], None]) -> None:
        """`on_change` is called from any thread. Raises ConfigurationError for a setting the author lacks."""
        self.order = order
        self.session: Session | None = None
        self.live = Live(doing=_STARTING, since=time.time())
        self.shown = waiting(order.problem.name, f"{_STARTING} …")
        """The durable record as it stands, by MIME type."""
        self.error: Exception | None = None
        """Why the session could not go on, when that was our fault or its request's."""
        self.ended = threading.Event()
        self._engine = engine
        self._on_change = on_change
        self._approver = PanelApprover(person=order.settings.person, on_gate=self._gate)
        self.replies: asyncio.Queue[str] = asyncio.Queue()
        """Replies that a person brought from elsewhere, for the author ``manual``."""
        self._effects = self._make_effects()
        self._stop_words: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The session's name; the asked-for one until it is open."""
        return self.session.name if self.session else self.order.problem.name

    @property
    def gate(self) -> Gate | None:
        """The decision that is waited for."""
        return self._approver.gate

    @property
    def asked(self) -> Prompt | None:
        """The prompt that a person is to carry to a model, or is to decide on now."""
        author = self._effects.author
        carried = author.asked if isinstance(author, ManualAuthor) else None
        return carried or (self.gate.prompt if self.gate else None)

    def take_reply(self, text: str) -> str:
        """Take a reply that a person brought, and say so. Raises UsageError when none is waited for."""

        async def taking() -> str:
            author = self._effects.author
            if not isinstance(author, ManualAuthor) or author.asked is None or not self.replies.empty():
                raise UsageError(
                    f"{self.name} waits for no reply now: `%cutegen status` says what it does, and only "
                    "--author manual takes replies"
                )
            self.replies.put_nowait(text)
            number = len(self.session.rounds) if self.session else 0
            return f"Taken: {len(text):,} characters as the reply of r{number}."

        return self._engine.result(taking())

    def start(self) -> None:
        """Begin; returns at once."""
        future: Future[None] = self._engine.submit(self._run())
        future.add_done_callback(self._finished)

    async def _run(self) -> None:
        """Everything, on a store that `start` leased."""
        self._task = asyncio.current_task()
        try:
            await self._refine()
        except asyncio.CancelledError:
            if self._stop_words is None:
                raise
            self._record_stop(self._stop_words)
        finally:
            await self._engine.give_back(self.order.settings)

    async def _refine(self) -> None:
        order = self.order
        effects = self._effects
        session = await open_session(order.problem, effects, order.store, order.budget, plan=order.plan)
        self._keep(session)
        session = await run_session(
            session,
            effects,
            order.store,
            on_round=lambda whole, _: self._keep(whole),
            repairs=repairs_of(order.settings),
        )
        self._keep(session, ended=session.stopped)

    def _make_effects(self) -> Effects:
        settings = self.order.settings
        # The policy here only keeps make_effects from building an approver for a terminal.
        effects = make_effects(
            replace(settings, policy="auto"), _Person(self), self._engine.evaluator(settings)
        )
        return replace(effects, approver=self._approver) if settings.policy == "ask" else effects

    def _record_stop(self, words: str) -> None:
        """A stop in mid-round: the round in flight is not kept, who stopped it is."""
        if self.session is None:
            self._change(doing="", ended=words)
            self._draw()
            return
        self.order.store.stop(self.session.name, words)
        self._keep(replace(self.session, stopped=words), ended=words)

    def _finished(self, future: Future[None]) -> None:
        """Called when the coroutine is over, however it ended."""
        fault = None if future.cancelled() else future.exception()
        if isinstance(fault, Exception):
            self.error = fault
            self._change(doing="", gate="", ended=str(as_sentence(fault)))
            self._draw()
        elif not self.live.ended:
            self._change(doing="", gate="", ended="the kernel ended it; finished rounds are kept")
        self.ended.set()
        self._on_change()

    def progress(self, text: str) -> None:
        """What is being done now."""
        text = _CARRY if text == WAITING else text
        if text != self.live.doing:
            self._change(doing=text, since=time.time())

    def say(self, text: str) -> None:
        """Sentences for the person, a line each; a panel shows them in one paragraph."""
        sentences = " ".join(f"{line.rstrip('.')}." for line in text.splitlines())
        self._change(notice=sentences if "\n" in text else text)

    def _gate(self, gate: Gate | None) -> None:
        if gate is None:
            self._change(gate="", prompt=None, attempts=(), comparison=None)
            return
        self._change(
            doing="",
            since=time.time(),
            gate=gate.kind,
            prompt=gate.prompt,
            attempts=gate.attempts,
            comparison=gate.comparison,
        )

    def _keep(self, session: Session, *, ended: str = "") -> None:
        self.session = session
        self.live = replace(self.live, doing="", ended=ended)
        self._draw()

    def _change(self, **members: object) -> None:
        self.live = replace(self.live, **members)  # type: ignore[arg-type]
        self._on_change()

    def _draw(self) -> None:
        """Draw the record: after each round and at the end, for it takes a good part of a second."""
        if self.session is None:
            self.shown = waiting(self.name, self.live.ended)
        else:
            live_panel = self.order.attended and not self.live.ended
            self.shown = record(self.session, self.live.ended, beside_panel=live_panel)
        self._on_change()

    def post(self, message: dict[str, object]) -> None:
        """Take what a person did in the panel. From any thread; only hands over."""
        self._engine.loop.call_soon_threadsafe(self._posted, message)

    def _posted(self, message: dict[str, object]) -> None:
        try:
            self._change(notice=self._decide(self._meant(message)))
        except CutegenError as refusal:
            self._change(notice=str(refusal))

    def _meant(self, message: dict[str, object]) -> Answer:
        """An answer from what the panel sent. Raises UsageError for what makes none."""
        if message.get("action") != "merge":
            return _answer(message)
        named = message.get("revisions")
        revisions = [str(one) for one in named] if isinstance(named, list) else []
        return merge_answer(self.gate, revisions, self.name)

    def decide(self, answer: Answer) -> str:
        """What a line magic decided; the sentence that says what it did. Raises UsageError."""

        async def deciding() -> str:
            said = self._decide(answer)
            self._change(notice=said)
            return said

        return self._engine.result(deciding())

    def _decide(self, answer: Answer) -> str:
        if self.ended.is_set() or self.live.ended:
            raise UsageError(
                f"{self.name} has ended ({self.live.ended}): run its cell again, "
                f"or `%cutegen resume {self.name}`"
            )
        if answer.action is Action.STOP and self.gate is None:
            return self._stop_now(answer.reason)
        return self._approver.take(answer)

    def _stop_now(self, reason: str) -> str:
        """Cancel what is being done: its worker is killed, and no signal goes to the kernel."""
        assert self._task is not None
        number = len(self.session.rounds) if self.session else 0
        words = f": {reason.strip()}" if reason.strip() else ""
        doing = f" while {self.live.doing}" if self.live.doing else ""
        self._stop_words = f"person:{self.order.settings.person} stopped it in round {number}{doing}{words}"
        self._task.cancel()
        return f"Stopped in round {number}{doing}; finished rounds are kept."

    def stop_and_wait(self, reason: str, timeout_s: float) -> bool:
        """Stop whatever is going on, from the main thread, and wait; False if it had ended by itself."""

        async def stopping() -> bool:
            if self.ended.is_set() or self.live.ended:
                return False
            self._decide(Answer(action=Action.STOP, reason=reason))
            return True

        stopped = self._engine.result(stopping())
        self.ended.wait(timeout_s)
        return stopped


class _Person:
    """How an author speaks to the person of a notebook: through the panel; nobody types at a terminal."""

    def __init__(self, running: RunningSession) -> None:
        self.progress = running.progress
        self.say = running.say
        self.paste: Callable[[], Awaitable[str | None]] | None = running.replies.get

    async def read_line(self, question: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Nobody reads questions here."""
        return None

    async def edit_text(self, text: str, suffix: str) -> str | None:  # noqa: ARG002 - the protocol's
        """Nobody edits here."""
        return None


def _answer(message: dict[str, object]) -> Answer:
    """An answer from what the panel sent. Raises UsageError for an unknown action."""
    word, number = str(message.get("action", "")), message.get("round", -1)
    if word not in set(Action):
        raise UsageError(f"the panel sent an unknown action {word!r}: load the page again")
    edited = str(message.get("edited", ""))
    if word == Action.BRANCH and not edited.strip():
        edited = f"r{number}"
    return Answer(
        action=Action(word),
        reason=str(message.get("reason", "")),
        edited=edited,
        gate=str(message.get("gate", "")),
    )

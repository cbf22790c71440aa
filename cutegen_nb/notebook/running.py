"""Running session of a notebook: the loop's coroutine on the engine's thread, with its live state."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from cutegen_nb.analysis.history.ended import ended_words, few_ended, short_reason, stored_stop
from cutegen_nb.authors.manual import WAITING, ManualAuthor
from cutegen_nb.core.errors import CutegenError, Declined, UsageError
from cutegen_nb.core.ports import ReplyGrowth
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Prompt, Round, is_ended_strategy
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.resuming import stop_round
from cutegen_nb.loop.session import Replan, decided_before, open_session, without_waiting
from cutegen_nb.loop.stopping import stopped_by_decision
from cutegen_nb.notebook.approver import Answer, Gate, PanelApprover, answer_from, restoring
from cutegen_nb.notebook.carrying import PanelPerson, lacking
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import as_notebook_error
from cutegen_nb.notebook.merging import merge_answer
from cutegen_nb.notebook.saved_record import record, waiting
from cutegen_nb.notebook.view import Live
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, make_effects, max_repairs, slots_at_once

_WAITING_FOR_REPLY = (
    f"{WAITING}: copy the request from the panel or `%cutegen prompt`, and paste the reply there or into a "
    "cell under `%%cutegen reply`"
)
"""Progress text while the author ``manual`` waits for a reply that a person brings."""
_STARTING = "starting"
_STOP_S = 10.0
"""Seconds that a command waits for a session that was stopped to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRequest:
    """Request of a cell for a session."""

    problem: Problem
    """Problem under the name that the session shall have."""
    settings: Settings
    """Author, device, policy and folder."""
    budget: Budget
    """Limits on rounds, tokens, dollars and time."""
    plan: Replan | None
    """Function that changes the plan of stages; None for no change."""
    attended: bool
    """True if a panel shows the session to a person."""
    store: SqliteStore
    """Store leased from the engine; the session returns it at its end."""


class RunningSession:
    """Session from its request to its end; made on the main thread, executed on the engine's.

    `session`, `live` and `shown` are replaced whole and never mutated, so any thread may read them.
    """

    def __init__(self, order: SessionRequest, engine: EventLoopThread, on_change: Callable[[], None]) -> None:
        """Prepare the session; `on_change` is called from any thread.

        Raises ConfigurationError when the author lacks a setting.
        """
        self.order = order
        self.session: Session | None = None
        self.live = Live(doing=_STARTING, since=time.time(), began=time.time())
        self.shown = waiting(order.problem.name, f"{_STARTING} …")
        """Latest record for the notebook file, by MIME type."""
        self.error: Exception | None = None
        """Exception that ended the session; None for a normal end or a stop."""
        self.ended = threading.Event()
        self._engine = engine
        self._on_change = on_change
        self._approver = PanelApprover(person=order.settings.person, on_gate=self._gate)
        self.replies: asyncio.Queue[str | Declined] = asyncio.Queue()
        """Replies that a person brought from a model, or brings no more, for the author ``manual``."""
        self._effects = self._make_effects()
        self._stop_words: str | None = None
        self._is_stopping = False
        self._ended_strategy = ""
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """Name of the session; the requested name until the session is open."""
        return self.session.name if self.session else self.order.problem.name

    @property
    def gate(self) -> Gate | None:
        """Open gate; None while no decision is pending."""
        return self._approver.gate

    @property
    def asked(self) -> Prompt | None:
        """Prompt that a person is to carry to a model or to decide on; None if there is none."""
        author = self._effects.author
        carried = author.asked if isinstance(author, ManualAuthor) else None
        return carried or (self.gate.prompt if self.gate else None)

    def take_reply(self, text: str) -> str:
        """Pass a person's reply to the author ``manual`` and return a confirmation.

        Raises UsageError when the author waits for none, or with what the reply lacks.
        """

        async def taking() -> str:
            said = self._reply(text)
            self._change(notice=said)
            return said

        return self._engine.result(taking())

    def _reply(self, text: str) -> str:
        asked = self.live.carried
        if asked is None or not self.replies.empty():
            raise UsageError(
                f"{self.name} waits for no reply now: `%cutegen status` says what it does, and only "
                "--author manual takes replies"
            )
        missing = lacking(asked, text, self.order.problem.library)
        if missing:
            raise UsageError(f"the reply was not taken: {missing}")
        self.replies.put_nowait(text)
        number = len(self.session.rounds) if self.session else 0
        return f"Taken: {len(text):,} characters as the reply of r{number}."

    def _skip_repair(self) -> str:
        """End the wait for a repair: the revision that did not pass goes to its gate. Raises UsageError."""
        asked = self.live.carried
        if asked is None or asked.purpose != "repair" or not self.replies.empty():
            raise UsageError(f"{self.name} waits for no repair now, so that there is none to leave out")
        self.replies.put_nowait(Declined("the person asked for no repair"))
        return "No repair: the kernel is decided upon as it is."

    def start(self) -> None:
        """Start the coroutine and return at once."""
        future: Future[None] = self._engine.submit(self._run())
        future.add_done_callback(self._finished)

    async def _run(self) -> None:
        """Run the session to its end, return the store's lease, and draw the end; a stop is recorded."""
        self._task = asyncio.current_task()
        session: Session | None
        try:
            session = await self._refine()
            words = session.stopped
        except asyncio.CancelledError:
            if self._stop_words is None:
                raise
            session, words = self._stopped(self._stop_words), self._stop_words
        finally:
            # Before the drawing, which takes a second or two: another process may want to write.
            await self._engine.give_back(self.order.settings)
        if session is not None:
            self._keep(session, ended=words)
        else:
            self._change(doing="", ended=words, carried=None)
            self._draw()

    async def _refine(self) -> Session:
        order = self.order
        session = await open_session(order.problem, self._effects, order.store, order.budget, plan=order.plan)
        finished = without_waiting(session)
        self._keep(finished)
        if session.plan.population == 1:  # the rounds of an epoch are decided side by side
            self._approver.resume(len(finished.rounds), decided_before(session, order.store))
        return await refine(
            session,
            self._effects,
            order.store,
            on_round=self._finished_round,
            repairs=max_repairs(order.settings),
            slots=slots_at_once(order.settings, session.plan.population),
            on_slots=lambda slots: self._change(slots=slots),
            on_epoch=lambda whole, _: self._keep(whole),
        )

    def _finished_round(self, whole: Session, made: Round) -> None:
        """Draw a finished round; one at which the session was stopped is drawn with the end."""
        if not stopped_by_decision(made):
            self._keep(whole)

    def _make_effects(self) -> Effects:
        settings = self.order.settings
        # With any other policy, make_effects would build an approver for a terminal.
        effects = make_effects(
            replace(settings, policy="auto"),
            PanelPerson(self.progress, self.say, self.replies),
            self._engine.evaluator(settings),
        )
        return replace(effects, approver=self._approver) if settings.policy == "ask" else effects

    def _stopped(self, words: str) -> Session | None:
        """Store the reason of a stop within a round; return the stored session, None where none is open."""
        if self.session is None:
            return None
        by = f"person:{self.order.settings.person}"
        return stop_round(self.order.store, self.session.name, words, self.live.sent, by)

    def _finished(self, future: Future[None]) -> None:
        """Handle the end of the coroutine: finished, failed or cancelled."""
        fault = None if future.cancelled() else future.exception()
        if isinstance(fault, Exception):
            self.error = fault
            self._change(doing="", gate=None, carried=None, sent=None, ended=str(as_notebook_error(fault)))
            self._draw()
        elif not self.live.ended:
            self._change(
                doing="",
                gate=None,
                carried=None,
                sent=None,
                ended="the session ended with the Jupyter kernel; finished rounds are kept",
            )
        self.ended.set()
        self._on_change()

    def progress(self, text: str) -> None:
        """Set the progress text and its start time, if the text is new."""
        author = self._effects.author
        carried = author.asked if text == WAITING and isinstance(author, ManualAuthor) else None
        text = _WAITING_FOR_REPLY if text == WAITING else text
        if is_ended_strategy(text):
            self._ended_strategy = text
        if isinstance(text, ReplyGrowth):
            self._grow(text)
        elif text != self.live.doing or carried is not self.live.carried:
            files = author.files if carried and isinstance(author, ManualAuthor) else None
            self._change(doing=text, since=time.time(), carried=carried, files=files)

    def _grow(self, phrase: ReplyGrowth) -> None:
        """Show more of a streamed reply; its step began with its first part."""
        since = self.live.since if self.live.writing else time.time()
        self._change(doing=str(phrase), since=since, writing=phrase.written)

    def say(self, text: str) -> None:
        """Show a notice to the person; several lines become sentences of one paragraph."""
        sentences = " ".join(f"{line.rstrip('.')}." for line in text.splitlines())
        self._change(notice=sentences if "\n" in text else text)

    def _gate(self, gate: Gate | None) -> None:
        if gate is None:
            self._change(gate=None, began=time.time(), sent=self._sent(), writing="")
            return
        ended, self._ended_strategy = self._ended_strategy, ""
        if ended and gate.prompt:
            # Without this notice the same question would seem to be asked twice.
            told = few_ended((ended,))
            self._change(notice=f"No kernel came: the author ended {told}. The next strategy is asked about.")
        elif gate.prompt and (failed := gate.without_kernel):
            self._change(notice=failed)
        if gate.attempts and self.live.notice == self._approver.sent:
            self._change(notice="")
        self._change(doing="", since=time.time(), gate=gate, carried=None, sent=None, writing="")

    def _sent(self) -> Prompt | None:
        """Return the request that the gate before has sent, as it was edited; None after another gate."""
        prompt, made = self.live.gate.prompt if self.live.gate else None, self._approver.latest
        if prompt is None or made is None or made.action not in {Action.APPROVE, Action.EDIT}:
            return None
        return replace(prompt, user=made.edited) if made.edited else prompt

    def _keep(self, session: Session, *, ended: str = "") -> None:
        self.session = session
        self.live = replace(self.live, doing="", ended=ended, carried=None, sent=None, writing="")
        self._draw()

    def _change(self, **members: object) -> None:
        self.live = replace(self.live, **members)  # type: ignore[arg-type]
        self._on_change()

    def _draw(self) -> None:
        """Draw the record. Called after each round and at the end only, as it takes part of a second."""
        if self.session is None:
            self.shown = waiting(self.name, ended_words(self.live.ended))
        else:
            live_panel = self.order.attended and not self.live.ended
            self.shown = record(self.session, self.live.ended, beside_panel=live_panel)
        self._on_change()

    def post(self, message: dict[str, object]) -> None:
        """Pass an action of the panel to the engine's loop. May be called from any thread."""
        self._engine.loop.call_soon_threadsafe(self._posted, message)

    def _posted(self, message: dict[str, object]) -> None:
        try:
            self._change(notice=self._done(message))
        except CutegenError as refusal:
            self._change(notice=str(refusal), refused=str(refusal))

    def _done(self, message: dict[str, object]) -> str:
        """Carry out an action of the panel and return a confirmation. Raises UsageError."""
        if message.get("action") == "reply":
            return self._reply(str(message.get("edited", "")))
        if message.get("action") == "skip":
            return self._skip_repair()
        return self._decide(self._meant(message))

    def _meant(self, message: dict[str, object]) -> Answer:
        """Convert a decision of the panel, a merge included, to an answer. Raises UsageError."""
        if message.get("action") == "restore":
            return restoring(self.gate, message.get("attempt"))
        if message.get("action") != "merge":
            return answer_from(message)
        named = message.get("revisions")
        revisions = [str(one) for one in named] if isinstance(named, list) else []
        return merge_answer(self.gate, revisions, self.name)

    def compare_with(self, number: int | None) -> None:
        """Store the round that all others are compared with. May be called from any thread."""
        self._engine.submit(self._store("The choice", lambda store, name: store.compare(name, number)))

    def keep_draft(self, draft: str) -> None:
        """Store what a person has typed and not sent. May be called from any thread."""
        self._engine.submit(self._store("What you typed", lambda store, name: store.keep_draft(name, draft)))

    async def _store(self, what: str, change: Callable[[SqliteStore, str], None]) -> None:
        if self.session is None:
            return
        try:  # an ended session has given its lease back
            store = await self._engine.lease(self.order.settings)
            try:
                change(store, self.session.name)
            finally:
                await self._engine.give_back(self.order.settings)
        except CutegenError as refusal:
            self._change(
                notice=f"{what} was not stored ({refusal}); it is lost when the Jupyter kernel ends."
            )

    def decide(self, answer: Answer) -> str:
        """Apply the decision of a line magic and return a confirmation. Raises UsageError."""

        async def deciding() -> str:
            said = self._decide(answer)
            self._change(notice=said)
            return said

        return self._engine.result(deciding())

    def _decide(self, answer: Answer) -> str:
        if self.ended.is_set() or self.live.ended:
            raise UsageError(
                f"{self.name} has ended ({short_reason(self.live.ended)[0]}): run its cell again, "
                f"or `%cutegen resume {self.name}`"
            )
        if answer.action is Action.STOP and self.gate is None:
            return self._stop_now(answer.reason)
        said = self._approver.take(answer)
        self._is_stopping = answer.action is Action.STOP
        return said

    def _stop_now(self, reason: str) -> str:
        """Cancel the session's task, which kills its worker; the notebook's kernel gets no signal."""
        assert self._task is not None
        number = len(self.session.rounds) if self.session else 0
        # What follows a colon and a space would be stored as words of the stop ("openai:name" has no space).
        step = self.live.doing.partition(": ")[0]
        doing = f" while {step}" if step else ""
        by = f"person:{self.order.settings.person}"
        self._stop_words = stored_stop(by, f"in round {number}", reason, step)
        self._task.cancel()
        self._is_stopping = True
        return f"Stopped in round {number}{doing}; finished rounds are kept."

    def stop_and_wait(self, reason: str, timeout_s: float) -> bool:
        """Stop the session and wait `timeout_s` seconds at most; False if it had ended by itself.

        Called from the main thread.
        """

        async def stopping() -> bool:
            if self.ended.is_set() or self.live.ended:
                return False
            self._decide(Answer(action=Action.STOP, reason=reason))
            return True

        stopped = self._engine.result(stopping())
        self.ended.wait(timeout_s)
        return stopped

    def is_at_work(self) -> bool:
        """Return whether it has not ended, after a wait for a stop that was taken.

        Called from the main thread.
        """
        if self._is_stopping:
            self.ended.wait(_STOP_S)
        return not self.ended.is_set()

"""What a kernel knows of its sessions: those at work, their screens, and the one meant when none is named."""

from __future__ import annotations

import asyncio
import builtins
import functools
import keyword
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.session import Replan
from cutegen_nb.notebook.arguments import DEFAULT_ROUNDS
from cutegen_nb.notebook.attendance import attendance
from cutegen_nb.notebook.engine import Engine
from cutegen_nb.notebook.faults import NotebookUsageError, as_sentence
from cutegen_nb.notebook.handle import SessionHandle, Workshop
from cutegen_nb.notebook.running import Order, RunningSession
from cutegen_nb.notebook.screen import Screen
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.wiring import DEFAULT_FOLDER, Settings, open_store

_SLICE_S = 0.1
_STOP_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asked to be refined, before it is known who decides and under which name."""

    problem: Problem
    """Named as asked for."""
    settings: Settings
    """With an absolute folder."""
    policy: str | None = None
    """``ask`` or ``auto`` where it was given."""
    rounds: int | None = None
    """At most; None for what the session had, or the default."""
    budget: Budget | None = None
    """What it may spend besides rounds; None for what the session had."""
    plan: Replan | None = None
    """What changes in how it goes from stage to stage; None for nothing."""
    strict: bool = False
    """Whether no approved kernel is a failure of the cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """A session with its outputs."""

    running: RunningSession
    screen: Screen


class Desk:
    """The sessions of one kernel."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.engine = Engine()
        self._open: dict[str, _Open] = {}
        self._current = ""

    def start(self, wish: Wish) -> None:
        """Refine. With a person there it returns at once; otherwise at the session's end.

        Raises CutegenError for what cannot be begun, and for what ended an unattended session.
        """
        decided = attendance(self.shell, wish.policy)
        settings = replace(wish.settings, policy=decided.policy)
        screen = Screen(_running_loop() if decided.attended else None)
        self._check_free(wish.problem.name)
        store = self.engine.result(self.engine.lease(settings))
        try:
            running = self._made(replace(wish, settings=settings), store, screen, attended=decided.attended)
        except BaseException:
            self.engine.result(self.engine.give_back(settings))
            raise
        name = running.name
        self._open[name] = _Open(running=running, screen=screen)
        self._current = name
        self.shell.user_ns[name] = self.handle(running)
        screen.open(running, panel=decided.attended)
        running.start()
        if not decided.attended:
            self._to_its_end(running, screen, strict=wish.strict)

    def _made(self, wish: Wish, store: SqliteStore, screen: Screen, *, attended: bool) -> RunningSession:
        """The session, under a name that is free, with everything checked that can be before it starts."""
        name, stored = _settled_name(store, wish.problem)
        self._check_free(name)
        known = stored.budget if stored else Budget(rounds=DEFAULT_ROUNDS)
        order = Order(
            problem=replace(wish.problem, name=name),
            settings=wish.settings,
            budget=replace(wish.budget or known, rounds=wish.rounds or known.rounds),
            plan=wish.plan,
            attended=attended,
            store=store,
        )
        return RunningSession(order, self.engine, screen.request)

    def _to_its_end(self, running: RunningSession, screen: Screen, *, strict: bool) -> None:
        try:
            while not running.ended.wait(_SLICE_S):
                screen.refresh()
        except KeyboardInterrupt:
            stopped = running.stop_and_wait("the cell was interrupted", _STOP_S)
            screen.refresh()
            by_itself = f" ({running.name} had ended by itself: {running.live.ended})"
            raise NotebookUsageError(
                f"interrupted; finished rounds are kept{'' if stopped else by_itself}: "
                "run the cell again to go on"
            ) from None
        screen.refresh()
        if running.error is not None:
            raise as_sentence(running.error) from running.error
        if strict and (running.session is None or running.session.best is None):
            raise NotebookUsageError(f"{running.name} ended with no approved kernel: {running.live.ended}")

    def _check_free(self, name: str) -> None:
        """No variable of the person's own is overwritten, and no session at work is started twice."""
        opened = self._open.get(name)
        if opened is not None and not opened.running.ended.is_set():
            raise NotebookUsageError(
                f"{name} is at work already: `%cutegen panel {name}` shows it, `%cutegen stop` ends it, "
                "--name starts another beside it"
            )
        if hasattr(builtins, name) or keyword.iskeyword(name):
            raise NotebookUsageError(
                f"{name} is a name of Python itself: give the session another with --name"
            )
        known = self.shell.user_ns
        if name in known and not isinstance(known[name], SessionHandle):
            raise NotebookUsageError(
                f"{name} is a variable of yours ({type(known[name]).__name__}) and is left alone: "
                f"give the session another name with --name, or `del {name}`"
            )

    def find(self, name: str | None = None) -> RunningSession:
        """A session of this kernel; the one started last unless named. Raises UsageError."""
        wanted = name or self._current
        for opened in self._open.values():
            if wanted in {opened.running.name, opened.running.order.problem.name} and wanted:
                return opened.running
        known = ", ".join(self._open)
        if wanted and known:
            raise NotebookUsageError(f"no session {wanted!r} in this kernel: there is {known}")
        raise NotebookUsageError(
            "no session in this kernel: start one with %%cutegen, or take one up with `%cutegen resume`"
        )

    def screen(self, running: RunningSession) -> Screen:
        """The outputs of a session."""
        return self._open[running.order.problem.name].screen

    def handle(self, running: RunningSession) -> SessionHandle:
        """The session as an object that follows it."""
        return SessionHandle(running.name, lambda: running.session, self._workshop(running.order.settings))

    def stored_handle(self, name: str | None, folder: Path | None) -> SessionHandle:
        """A session of this kernel, or one from the store; the newest unless named. Raises UsageError."""
        wanted = name or self._current
        if wanted in self._open and folder is None:
            return self.handle(self._open[wanted].running)
        session = self.stored(wanted, folder)
        kind = "simulator" if session.device.kind is DeviceKind.SIMULATOR else "cuda"
        return SessionHandle(session.name, lambda: session, self._workshop(Settings(device=kind)))

    def stored(self, name: str, folder: Path | None) -> Session:
        """A session from the store; the newest for an empty name. Raises StoreError, UsageError."""
        names = self.stored_names(folder)
        if not names:
            raise NotebookUsageError("no session is stored yet: start one with %%cutegen")
        if name and name not in names:
            raise NotebookUsageError(f"no session {name!r} is stored: there is {', '.join(names)}")
        with open_store(Settings(folder=absolute(folder)), writable=False) as store:
            return store.load(name or names[-1])

    def stored_names(self, folder: Path | None = None) -> tuple[str, ...]:
        """Names of the stored sessions, oldest first; none where there is no store."""
        if not (absolute(folder) / FILE_NAME).is_file():
            return ()
        with open_store(Settings(folder=absolute(folder)), writable=False) as store:
            return store.names()

    def names(self) -> tuple[str, ...]:
        """Sessions of this kernel."""
        return tuple(self._open)

    def wait(self, running: RunningSession, timeout_s: float | None) -> None:
        """Hold this cell until the session has ended or a decision is waited for.

        Clicks reach the kernel only between cells (ipykernel 6 and 7.4), so that nobody could answer here.
        """
        screen = self.screen(running)
        slices = 0
        while not running.ended.wait(_SLICE_S) and running.gate is None:
            screen.refresh()
            slices += 1
            if timeout_s is not None and slices * _SLICE_S >= timeout_s:
                break
        screen.refresh()

    def _workshop(self, settings: Settings) -> Workshop:
        def judge(session: Session, candidate: Candidate) -> Evaluation:
            evaluator = self.engine.evaluator(settings)
            try:
                return self.engine.result(
                    evaluator.evaluate(session.problem, candidate, lambda _: None, Tier.C)
                )
            except CutegenError as error:
                raise as_sentence(error) from error

        return Workshop(make=functools.partial(self._module, settings), judge=judge)

    def _module(self, settings: Settings, session: Session, candidate: Candidate) -> Any:  # noqa: ANN401
        from cutegen_nb.gpu.serving import ServedModule  # noqa: PLC0415 - imports torch, which only this needs

        evaluator = self.engine.evaluator(settings)

        def call(request: Any) -> Any:  # noqa: ANN401 - gpu's own values
            try:
                return self.engine.result(evaluator.serve(session.problem, candidate, request))
            except CutegenError as error:
                raise as_sentence(error) from error

        return ServedModule(name=session.name, call=call)

    def close(self) -> None:
        """End every session and every process of theirs."""
        for opened in self._open.values():
            opened.screen.close_with("The extension was unloaded; load it and use `%cutegen resume`.")
        self.engine.close()
        self._open.clear()


def absolute(folder: Path | None) -> Path:
    """The folder of the sessions, independent of a later `os.chdir`."""
    return Path(os.path.abspath((folder or DEFAULT_FOLDER).expanduser()))  # noqa: PTH100 - links stay as given


def _settled_name(store: SqliteStore, problem: Problem) -> tuple[str, Session | None]:
    """The name `open_session` will come to, and the stored session that goes on under it."""
    taken = set(store.names())
    chosen, number = problem.name, 1
    while chosen in taken:
        stored = store.load(chosen)
        if stored.problem.digest == problem.digest:
            return chosen, stored
        number += 1
        chosen = f"{problem.name}_{number}"
    return chosen, None


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise NotebookUsageError(
            "this kernel runs cells without an event loop, so that no panel could be answered: "
            "use --policy auto"
        ) from None

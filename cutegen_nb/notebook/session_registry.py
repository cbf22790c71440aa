"""Registry of a kernel's sessions and their outputs, with the default session of the magics."""

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

from cutegen_nb.analysis.history.ended import short_reason
from cutegen_nb.app.arguments import DEFAULT_ROUNDS
from cutegen_nb.app.ending import kernel_path, rounds_to_go_on, unused
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.session import Replan, other_name
from cutegen_nb.notebook.attendance import attendance
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError, as_notebook_error
from cutegen_nb.notebook.handle import SessionHandle, WorkerFunctions
from cutegen_nb.notebook.running import RunningSession, SessionRequest
from cutegen_nb.notebook.screen import Screen
from cutegen_nb.store.bundle import SUFFIX
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.wiring import DEFAULT_FOLDER, Settings, open_store, settings_for

_SLICE_S = 0.1
"""Seconds between two redrawings while a cell waits for a session."""
_STOP_S = 10.0
"""Seconds that an interrupted cell waits for its session to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineRequest:
    """Request of a person to refine a problem, before policy and session name are settled."""

    problem: Problem
    """Problem under the requested name."""
    settings: Settings
    """Settings with an absolute folder."""
    policy: str | None = None
    """``ask`` or ``auto``; None if not given."""
    rounds: int | None = None
    """Rounds at most; None for the stored session's limit, or the default."""
    budget: Budget | None = None
    """Limits besides rounds; None for the stored session's limits."""
    plan: Replan | None = None
    """Function that changes the plan of stages; None for no change."""
    strict: bool = False
    """True if the cell fails when no kernel was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SessionOutputs:
    """Session with its outputs."""

    running: RunningSession
    screen: Screen


class SessionRegistry:
    """Registry of the sessions of one kernel."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.engine = EventLoopThread()
        self._open: dict[str, _SessionOutputs] = {}
        self._current = ""

    def start(self, wish: RefineRequest) -> None:
        """Start a session; return at once if a person attends, else at the session's end.

        Raises CutegenError when the session cannot start, or an unattended session fails.
        """
        decided = attendance(self.shell, wish.policy)
        settings = replace(wish.settings, policy=decided.policy)
        screen = Screen(_running_loop() if decided.attended else None, self._after_end)
        self._check_free(wish.problem.name)
        running = self._opened(replace(wish, settings=settings), screen, attended=decided.attended)
        renamed = other_name(wish.problem.name, running.name)
        if renamed:
            tell = running.say if decided.attended else print
            tell(f"{renamed}.")
        screen.open(running, panel=decided.attended)
        running.start()
        if not decided.attended:
            self._to_its_end(running, screen, strict=wish.strict)

    def _opened(self, wish: RefineRequest, screen: Screen, *, attended: bool) -> RunningSession:
        """Make a session known in this kernel, with a lease of its store; it is not started."""
        store = self.engine.result(self.engine.lease(wish.settings))
        try:
            running = self._made(wish, store, screen, attended=attended)
        except BaseException:
            self.engine.result(self.engine.give_back(wish.settings))
            raise
        self._open.pop(running.name, None)  # the order is that of the last starts
        self._open[running.name] = _SessionOutputs(running=running, screen=screen)
        self._current = running.name
        self.shell.user_ns[running.name] = self.handle(running)
        return running

    def _after_end(self, kind: str, running: RunningSession) -> str:
        """Go on with an ended session in its own outputs, or write its kernel or the whole of it to a file.

        Returns a sentence on it. Raises CutegenError.
        """
        if kind == "more":
            return self._go_on(running)
        path = kernel_path(running.name) if kind == "export" else f"{running.name}{SUFFIX}"
        return self.handle(running).export(unused(path))

    def _go_on(self, running: RunningSession) -> str:
        session = running.session
        if session is None:
            raise NotebookUsageError(
                "the problem could not be read: correct it in the cell and run the cell again"
            )
        self._check_free(running.name)
        rounds = rounds_to_go_on(session)
        wish = RefineRequest(
            problem=replace(session.problem, name=session.name),
            settings=running.order.settings,
            budget=replace(session.budget, rounds=rounds),
            rounds=rounds,
        )
        screen = self.screen(running)
        going = self._opened(wish, screen, attended=True)
        screen.go_on(going)
        going.start()
        return f"{going.name} goes on: {rounds} rounds at most."

    def _made(
        self, wish: RefineRequest, store: SqliteStore, screen: Screen, *, attended: bool
    ) -> RunningSession:
        """Make the session under a free name, or under the name of the stored session that it resumes."""
        name, stored = _settled_name(store, wish.problem)
        self._check_free(name)
        known = stored.budget if stored else wish.budget or Budget(rounds=DEFAULT_ROUNDS)
        order = SessionRequest(
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
            by_itself = f" ({running.name} had ended by itself: {short_reason(running.live.ended)[0]})"
            raise NotebookUsageError(
                f"interrupted; finished rounds are kept{'' if stopped else by_itself}: "
                "run the cell again to go on"
            ) from None
        screen.refresh()
        if running.error is not None:
            raise as_notebook_error(running.error) from running.error
        if strict and (running.session is None or running.session.best is None):
            raise NotebookUsageError(
                f"{running.name} ended with no approved kernel: {short_reason(running.live.ended)[0]}"
            )

    def _check_free(self, name: str) -> None:
        """Raise UsageError if `name` is a running session, a name of Python or a variable of the person."""
        opened = self._open.get(name)
        if opened is not None and opened.running.is_at_work():
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
        """Return a session of this kernel, by default the one started last. Raises UsageError."""
        wanted = name or self._current
        for opened in self._open.values():
            if wanted in {opened.running.name, opened.running.order.problem.name} and wanted:
                return opened.running
        known = ", ".join(self._open)
        if wanted and known:
            raise NotebookUsageError(f"no session {wanted!r} runs in this notebook; running: {known}")
        raise NotebookUsageError(
            "no session runs in this notebook: start one with %%cutegen, or take one up with "
            "`%cutegen resume`"
        )

    def asked(self, name: str | None = None) -> RunningSession:
        """Return the session that an answer is for: the one started last of those that have not ended.

        Where all have ended it is the one started last. Raises UsageError.
        """
        current = self.find(name)
        if name or not current.ended.is_set():
            return current
        at_work = [item.running for item in self._open.values() if not item.running.ended.is_set()]
        return at_work[-1] if at_work else current

    def screen(self, running: RunningSession) -> Screen:
        """Return the outputs of a session."""
        return self._open[running.order.problem.name].screen

    def handle(self, running: RunningSession) -> SessionHandle:
        """Return a handle that follows a running session."""
        return SessionHandle(running.name, lambda: running.session, self._workshop(running.order.settings))

    def stored_handle(self, name: str | None, folder: Path | None, *, device: str = "") -> SessionHandle:
        """Return the handle of a session of this kernel or of the store.

        Without a name: the session started last, else the newest stored one. Its kernels run on the session's
        device, or on `device` of `DEVICES`. Raises UsageError.
        """
        wanted = name or self._current
        if wanted in self._open and folder is None and not device:
            return self.handle(self._open[wanted].running)
        session = self.stored(wanted, folder)
        kind = "simulator" if session.device.kind is DeviceKind.SIMULATOR else "cuda"
        settings = Settings(device=device or kind)
        return SessionHandle(session.name, lambda: session, self._workshop(settings))

    def stored(self, name: str, folder: Path | None) -> Session:
        """Load a session from the store; the newest for an empty name. Raises StoreError, UsageError."""
        names = self.stored_names(folder)
        if not names:
            raise NotebookUsageError("no session is stored yet: start one with %%cutegen")
        if name and name not in names:
            raise NotebookUsageError(f"no session {name!r} is stored: there is {', '.join(names)}")
        with open_store(Settings(folder=absolute(folder)), writable=False) as store:
            return store.load(name or names[-1])

    def stored_names(self, folder: Path | None = None) -> tuple[str, ...]:
        """Return the names of the stored sessions, oldest first; empty without a store."""
        if not (absolute(folder) / FILE_NAME).is_file():
            return ()
        with open_store(Settings(folder=absolute(folder)), writable=False) as store:
            return store.names()

    def names(self) -> tuple[str, ...]:
        """Return the names of this kernel's sessions."""
        return tuple(self._open)

    def wait(self, running: RunningSession, timeout_s: float | None) -> None:
        """Block the cell until the session has ended, a gate is open or `timeout_s` seconds have passed.

        Clicks reach the kernel only between cells (ipykernel 6 and 7.4), so a gate cannot be answered here.
        """
        screen = self.screen(running)
        slices = 0
        while not running.ended.wait(_SLICE_S) and running.gate is None:
            screen.refresh()
            slices += 1
            if timeout_s is not None and slices * _SLICE_S >= timeout_s:
                break
        screen.refresh()

    def _workshop(self, settings: Settings) -> WorkerFunctions:
        def judge(session: Session, candidate: Candidate) -> Evaluation:
            evaluator = self.engine.evaluator(settings_for(session, settings))
            try:
                return self.engine.result(
                    evaluator.evaluate(session.problem, candidate, lambda _: None, Tier.C)
                )
            except CutegenError as error:
                raise as_notebook_error(error) from error

        return WorkerFunctions(make=functools.partial(self._module, settings), judge=judge)

    def _module(self, settings: Settings, session: Session, candidate: Candidate) -> Any:  # noqa: ANN401
        from cutegen_nb.evaluator.worker.remote_call import ServedModule  # noqa: PLC0415 - imports torch, which only this needs

        evaluator = self.engine.evaluator(settings_for(session, settings))

        def call(request: Any) -> Any:  # noqa: ANN401 - gpu's own values
            try:
                return self.engine.result(evaluator.serve(session.problem, candidate, request))
            except CutegenError as error:
                raise as_notebook_error(error) from error

        return ServedModule(name=session.name, call=call)

    def close(self) -> None:
        """Cancel every session and end its subprocesses; the panels show the reason."""
        for opened in self._open.values():
            opened.screen.close_with("The extension was unloaded; load it and use `%cutegen resume`.")
        self.engine.close()
        self._open.clear()


def absolute(folder: Path | None) -> Path:
    """Return the folder of the sessions as an absolute path, independent of a later `os.chdir`."""
    return Path(os.path.abspath((folder or DEFAULT_FOLDER).expanduser()))  # noqa: PTH100 - links stay as given


def _settled_name(store: SqliteStore, problem: Problem) -> tuple[str, Session | None]:
    """Return the name that `open_session` will choose, and the stored session resumed under it."""
    taken = set(store.names())
    chosen, number = problem.name, 1
    while chosen in taken:
        stored = store.load(chosen)
        if stored.problem.states(problem):
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

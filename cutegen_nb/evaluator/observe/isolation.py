"""Isolation of candidate code from the judge that shares its process.

While the candidate's own code is on the stack:

- The evaluator is told before and after. A result that arrives in between was not sent by the judge.
- The judge's and the problem's modules are not in ``sys.modules``. A candidate that looks there for the
  reference, for a tolerance or for a sign of being judged finds what any other process would show.
- Audit events of its own lines (`audit`) are reported at once, before it can end the process.

Afterwards timers, signal handlers, tracing and garbage collector callbacks, which would run its code later,
are removed.

None of this is a security boundary: the candidate shares the process, and whoever reads this file can undo
it. It makes the common ways visible and the rest a deliberate act. The boundary is the package `isolated`:
before a revision may become the best, its values are judged in another process. Nothing done in this one
makes a wrong value right there. Evidence of a kernel's work and time comes from a process that holds the
candidate, here as there. Whoever takes that trouble can forge it.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from cutegen_nb.evaluator.observe.audit import AuditedAction, AuditListener

OURS = "cutegen_nb"
"""Name of the judge's package. The problem's modules are called ``cutegen_nb_problem_…``."""
Send = Callable[..., None]
"""Type of ``Channel.send``, which sends a message to the evaluator."""


@dataclass(slots=True)
class _HiddenModules(MetaPathFinder, Loader):
    """Import hook that keeps our modules while they are out of ``sys.modules``, for our own code only."""

    candidate: str
    """Path of the candidate's file."""
    kept: dict[str, ModuleType] = field(default_factory=dict)
    """Hidden modules by name."""

    def hide(self) -> None:
        self.kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
        sys.meta_path.insert(0, self)

    def show(self) -> None:
        sys.meta_path[:] = [item for item in sys.meta_path if item is not self]
        sys.modules.update(self.kept)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - importlib's signature
        target: ModuleType | None = None,  # noqa: ARG002 - importlib's signature
    ) -> ModuleSpec | None:
        """Give our own code the module it had. Raises ModuleNotFoundError for the candidate."""
        if not _is_ours(fullname):
            return None
        if _importer(sys._getframe(1)) == self.candidate:  # noqa: SLF001 - who asks is the question
            message = f"No module named {fullname!r}"
            raise ModuleNotFoundError(message, name=fullname)
        return ModuleSpec(fullname, self) if fullname in self.kept else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.kept[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module was executed before it was hidden."""


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith((f"{OURS}.", f"{OURS}_problem_"))


def _importer(frame: FrameType | None) -> str:
    """File of the code that imports: the innermost frame outside the import system."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" not in file:
            return file
        frame = frame.f_back
    return ""


@dataclass(frozen=True, slots=True)
class _ProcessHooks:
    """Signal handlers and garbage collector callbacks, by which candidate code could run after its turn."""

    handlers: dict[int, Any]
    callbacks: list[Any]

    @classmethod
    def now(cls) -> _ProcessHooks:
        handlers = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
        return cls(handlers, list(gc.callbacks))

    def again(self) -> None:
        """Restore them, and end tracing, profiling and timers."""
        sys.settrace(None)
        sys.setprofile(None)
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0.0)
        gc.callbacks[:] = self.callbacks
        for number, handler in self.handlers.items():
            if signal.getsignal(number) != handler:
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@dataclass(slots=True, kw_only=True)
class CandidateIsolation:
    """Isolation of one candidate in one worker."""

    send: Send
    """Sends a message to the evaluator."""
    unseen: _HiddenModules
    """Our modules, out of the candidate's sight."""
    _own_turn: _ProcessHooks = field(init=False)
    _depth: int = 0

    def enter(self) -> None:
        """Begin a turn of the candidate's code. Turns may be nested."""
        self._depth += 1
        if self._depth == 1:
            self.send("entering")
            self.unseen.hide()
            self._own_turn = _ProcessHooks.now()

    def leave(self) -> None:
        """End a turn of the candidate's code, whether it returned or raised."""
        self._depth -= 1
        if self._depth == 0:
            self._own_turn.again()
            self.unseen.show()
            self.send("leaving")

    def tell(self, reached: AuditedAction) -> None:
        """Report an action of the candidate's."""
        self.send("reached", finding=reached.kind, message=reached.message, line=reached.line)


_installed: list[CandidateIsolation] = []


def take(send: Send, candidate: Path) -> None:
    """Isolate the candidate in the file `candidate` whenever its code runs from now on."""
    isolation = CandidateIsolation(send=send, unseen=_HiddenModules(str(candidate)))
    # For good: an audit hook cannot be removed.
    AuditListener(candidate=str(candidate), tell=isolation.tell).listen()
    _installed[:] = [isolation]


@contextmanager
def candidate_code() -> Iterator[None]:
    """Isolate one call into the candidate. Does nothing before `take`."""
    if not _installed:
        yield
        return
    isolation = _installed[0]
    isolation.enter()
    try:
        yield
    finally:
        isolation.leave()

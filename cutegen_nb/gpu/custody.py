"""What holds while a candidate's own code is on the stack, and only then.

- The evaluator is told before and after.  A result that comes in between was not sent by the judge.
- The judge's and the problem's modules are not in ``sys.modules``: a candidate that looks there for the
  reference, for a tolerance or for a sign that it is being judged finds what any other process would show it.
- What its own lines do to the process (`reach`) is reported at once, before it can end the process.
- What it replaced of our own code is put back, and `replaced` names it.
- What would run its code later, in the judge's turn (timers, signal handlers, tracing, the collector's
  callbacks), is taken away.

None of this is a wall: the candidate shares the process, and whoever reads this file can undo it. It makes
the common ways visible and the rest a deliberate act.  The wall is `outside`: before a revision may become
the best, its values are judged in another process, and nothing that is done or said in this one makes a
wrong value right there.  What a kernel's work and time are known by is seen from a process that holds the
candidate, here as there, and can be forged by whoever takes that trouble.
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

from cutegen_nb.gpu.own_code import OwnCode
from cutegen_nb.gpu.reach import Reach, Reached

OURS = "cutegen_nb"
"""The judge's modules are called this or ``cutegen_nb.…``, the problem's ``cutegen_nb_problem_…``."""
Send = Callable[..., None]
"""``Channel.send``."""


@dataclass(slots=True)
class _Unseen(MetaPathFinder, Loader):
    """Keeps our modules while they are out of ``sys.modules``, and gives them to our own code only."""

    candidate: str
    """Path of the candidate's file."""
    kept: dict[str, ModuleType] = field(default_factory=dict)
    """Modules by name."""

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
        """Our own code gets the module it had; the candidate is told that there is none."""
        if not _is_ours(fullname):
            return None
        if _importer(sys._getframe(1)) == self.candidate:  # noqa: SLF001 - who asks is the question
            message = f"No module named {fullname!r}"
            raise ModuleNotFoundError(message, name=fullname)
        return ModuleSpec(fullname, self) if fullname in self.kept else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.kept[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed."""


def _is_ours(name: str) -> bool:
    return name == OURS or name.startswith((f"{OURS}.", f"{OURS}_problem_"))


def _importer(frame: FrameType | None) -> str:
    """File of the code that imports: the first outside the import system."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" not in file:
            return file
        frame = frame.f_back
    return ""


@dataclass(frozen=True, slots=True)
class _Turn:
    """What would run a candidate's code in the judge's turn."""

    handlers: dict[int, Any]
    callbacks: list[Any]

    @classmethod
    def now(cls) -> _Turn:
        handlers = {int(number): signal.getsignal(number) for number in signal.valid_signals()}
        return cls(handlers, list(gc.callbacks))

    def again(self) -> None:
        """Put everything back as it was."""
        sys.settrace(None)
        sys.setprofile(None)
        for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0.0)
        gc.callbacks[:] = self.callbacks
        for number, handler in self.handlers.items():
            if signal.getsignal(number) != handler:
                signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@dataclass(slots=True, kw_only=True)
class Custody:
    """Of one candidate, in one worker."""

    send: Send
    """To the evaluator."""
    candidate: Path
    """Its file."""
    _reach: Reach = field(init=False)
    _unseen: _Unseen = field(init=False)
    own_code: OwnCode = field(default_factory=OwnCode.capture)
    """Ours, put back whenever the candidate's code has ended."""
    _own_turn: _Turn = field(init=False)
    _depth: int = 0

    def __post_init__(self) -> None:
        self._reach = Reach(candidate=str(self.candidate), tell=self._tell)
        self._unseen = _Unseen(str(self.candidate))

    def watch(self) -> None:
        """Begin to see what the candidate does; for good, since no audit hook can be taken back."""
        self._reach.listen()

    def enter(self) -> None:
        """The candidate's code is about to run."""
        self._depth += 1
        if self._depth == 1:
            self.send("entering")
            self._unseen.hide()
            self._own_turn = _Turn.now()

    def leave(self) -> None:
        """It has ended, in whatever way."""
        self._depth -= 1
        if self._depth == 0:
            self._own_turn.again()
            self._unseen.show()
            self.own_code.put_back()
            self.send("leaving")

    def _tell(self, reached: Reached) -> None:
        self.send("reached", finding=reached.kind, message=reached.message, line=reached.line)


_installed: list[Custody] = []


def take(send: Send, candidate: Path) -> None:
    """From now on the candidate in the file `candidate` is in custody whenever its code runs."""
    custody = Custody(send=send, candidate=candidate)
    custody.watch()
    _installed[:] = [custody]


def replaced() -> tuple[str, ...]:
    """Full names of what the candidate replaced of ours; empty where nobody took custody."""
    return tuple(_installed[0].own_code.seen) if _installed else ()


@contextmanager
def candidate_code() -> Iterator[None]:
    """Around every call into the candidate. Does nothing where nobody took custody."""
    if not _installed:
        yield
        return
    custody = _installed[0]
    custody.enter()
    try:
        yield
    finally:
        custody.leave()

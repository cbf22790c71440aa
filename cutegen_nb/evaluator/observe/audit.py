"""Audit events (PEP 578) that a candidate's own lines raise in the process they run in.

Observed at run time and not in the source: ``getattr(sys, "_get" + "frame")()`` raises the same event as the
plain call. Only actions of the candidate's file count, direct or through the standard library. Actions of the
DSL or PyTorch on its behalf do not. Everything here is a flag for a person: a profiler's line may be honest.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

_EVENTS = {
    "sys._getframe": ("reaches-inside", "it looks at its callers' frames"),
    "sys._current_frames": ("reaches-threads", "it looks at the frames of all threads"),
    "sys.settrace": ("reaches-inside", "it traces the process"),
    "sys.setprofile": ("reaches-inside", "it traces the process"),
    "sys.addaudithook": ("reaches-inside", "it listens to the process's audit events"),
    "gc.get_objects": ("reaches-inside", "it searches the garbage collector's objects"),
    "gc.get_referrers": ("reaches-inside", "it searches for what refers to an object"),
    "gc.get_referents": ("reaches-inside", "it searches for what an object refers to"),
    "object.__setattr__": ("reaches-inside", "it replaces the inside of a function or class"),
    "ctypes.dlopen": ("reaches-inside", "it loads a shared library"),
    "ctypes.dlsym": ("reaches-inside", "it looks up a function of a shared library"),
    "ctypes.string_at": ("reaches-inside", "it reads memory by its address"),
    "ctypes.memoryview_at": ("reaches-inside", "it reads memory by its address"),
    "ctypes.cdata": ("reaches-inside", "it reads memory by its address"),
    "os.fork": ("starts-processes", "it forks"),
    "os.forkpty": ("starts-processes", "it forks"),
    "os.exec": ("starts-processes", "it executes a program"),
    "os.posix_spawn": ("starts-processes", "it starts a program"),
    "os.system": ("starts-processes", "it runs a shell"),
    "subprocess.Popen": ("starts-processes", "it starts a program"),
    "os.kill": ("starts-processes", "it sends a signal"),
    "socket.__new__": ("opens-socket", "it makes a socket"),
    "socket.connect": ("opens-socket", "it connects a socket"),
    "open": ("writes-files", "it writes a file"),
}
"""Kind and meaning of the finding, by audit event. The meaning ends a sentence."""
_WRITING_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STANDARD = sysconfig.get_paths()["stdlib"]
_INSPECTING = tuple(f"{_STANDARD}/{name}" for name in ("inspect.py", "traceback.py", "ctypes/__init__.py"))
"""Modules of the standard library that inspect frames, objects or memory for their caller."""
_MAX_FRAMES = 24
"""Frames searched outwards for the candidate: a few of the standard library's stand between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedAction:
    """First action of one kind by one line of the candidate."""

    kind: str
    """Kind of the finding."""
    message: str
    """Sentence that names the line."""
    line: int
    """Line of the candidate's file."""


@dataclass(slots=True, kw_only=True)
class AuditListener:
    """Listener for the audit events of this process."""

    candidate: str
    """Path of the candidate's file."""
    tell: Callable[[AuditedAction], None]
    """Called with each new action at once, in the thread that raised the event."""
    _seen: set[tuple[str, int]] = field(default_factory=set)
    _looking: bool = False

    def listen(self) -> None:
        """Add the audit hook, which cannot be removed."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Handling an event may raise others, such as ``sys._getframe``.
        if self._looking or event not in _EVENTS:
            return
        self._looking = True
        try:
            self._weigh(event, arguments)
        finally:
            self._looking = False

    def _weigh(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not _writes(arguments):
            return
        line = _line(sys._getframe(2), self.candidate, event)  # noqa: SLF001 - past the two functions of ours
        kind, what = _EVENTS[event]
        if line and (kind, line) not in self._seen:
            self._seen.add((kind, line))
            message = f"While it ran, {what} (line {line})."
            self.tell(AuditedAction(kind=kind, message=message, line=line))


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode, flags = (*arguments, None, None, None)[1:3]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING_FLAGS)


def _line(frame: FrameType | None, candidate: str, event: str) -> int:
    """Line of the candidate that caused the event; 0 where other code did."""
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return 0
        file = frame.f_code.co_filename
        if file == candidate:
            return frame.f_lineno
        if not _passed_through(file, event):
            return 0
        frame = frame.f_back
    return 0


def _passed_through(file: str, event: str) -> bool:
    """Return whether code of `file` only carries out what its caller asks.

    The standard library looks at frames for its own purposes (``NamedTuple``, ``logging``). For such events
    only its inspecting modules count as carrying out. NumPy and PyTorch write the files they are told to.
    """
    if event.startswith(("sys.", "gc.", "object.", "ctypes.")):
        return file in _INSPECTING
    if event == "open" and any(f"/site-packages/{name}/" in file for name in ("numpy", "torch")):
        return True
    return (file.startswith(_STANDARD) and "site-packages" not in file) or file.startswith("<frozen")

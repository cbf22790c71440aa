"""Exceptions of a simulated program: tracebacks of its own frames only, and a sentence for the report."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
import traceback
from pathlib import Path, PurePath
from types import TracebackType

from cutegen_nb.simulator.ptx.faults import SimulatorFault

_OUR_FOLDER = str(Path(__file__).absolute().parents[2])
_LONGEST = 400
"""Most characters of an exception's message in a sentence."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""ANSI escape sequences of colours."""
_CALLS = ("unanswered-call",)
"""Kinds of faults raised by calls of PyTorch or CUDA that the simulator does not answer, not by launches."""
_MEMORY_WORDS = ("not enough memory", "can't allocate memory", "Cannot allocate memory")
"""Parts of messages by which an allocation failure is recognised."""


_NO_TVM_FFI = (
    "`--enable-tvm-ffi` needs no package here, but this program imports it by itself: run `pip install "
    "apache-tvm-ffi`, which the DSL needs on a GPU too."
)


def _library_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {*site.getsitepackages(), site.getusersitepackages(), _OUR_FOLDER}
    return tuple(f"{path.rstrip(os.sep)}{os.sep}" for path in paths if path)


_LIBRARIES = _library_folders()
"""Folders of Python, of installed packages and of this package, each with a separator at its end."""


def is_own(path: str) -> bool:
    """Return whether a file is the program's, not of Python, of an installed package or of this package."""
    return not path.startswith(("<", *_LIBRARIES))


def own_frames(error: BaseException) -> BaseException:
    """Cut the tracebacks of an exception and of its causes to the program's own frames; return the exception.

    A traceback without any such frame keeps all frames but those of this package.
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = _trimmed(link.__traceback__)
        link = link.__cause__ or link.__context__
    return error


def _trimmed(trace: TracebackType | None) -> TracebackType | None:
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    own = [one for one in frames if is_own(one.tb_frame.f_code.co_filename)]
    kept = own or [one for one in frames if not one.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER)]
    result: TracebackType | None = None
    for one in reversed(kept):
        result = TracebackType(result, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return result


def show(error: BaseException) -> None:
    """Print an exception as Python would, through the hook that the program or the DSL has set."""
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    sys.stderr.flush()


def place_of(error: BaseException) -> str:
    """``file:line`` of the program's innermost frame; empty if there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{PurePath(error.filename).name}:{error.lineno}"
    steps = [one for one in traceback.extract_tb(error.__traceback__) if is_own(one.filename)]
    return f"{PurePath(steps[-1].filename).name}:{steps[-1].lineno}" if steps else ""


def sentence_of(error: BaseException, place: str) -> str:
    """Describe the exception in a sentence for the report."""
    where = f" at {place}" if place else ""
    if isinstance(error, KeyboardInterrupt):
        inside = f" {error}" if error.args else ""
        return f"The program was interrupted{where}{inside}."
    if isinstance(error, SimulatorFault) and error.kind in _CALLS:
        return f"The program's call{where} could not be answered."
    if isinstance(error, SimulatorFault):
        return f"The program's launch{where} was stopped: {error.kind}."
    text = " ".join(_COLOURS.sub("", str(error)).split())
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name == "tvm_ffi":
        return f"The program raised {said}{where}. {_NO_TVM_FFI}"
    if isinstance(error, MemoryError) or any(words in text for words in _MEMORY_WORDS):
        return f"The program ran out of this machine's memory{where}: {said}. Give it smaller sizes."
    return f"The program raised {said}{where}."

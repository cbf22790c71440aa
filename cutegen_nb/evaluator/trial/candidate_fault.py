"""Faults of a candidate inside the worker, turned into a verdict with the source line."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Outcome, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator.observe.backend import Fault
from cutegen_nb.evaluator.observe.isolation import candidate_code

_CUDA_FAULTS = {
    "illegal memory access": (Verdict.OUT_OF_BOUNDS, "out-of-bounds"),
    "illegal address": (Verdict.OUT_OF_BOUNDS, "out-of-bounds"),
    "misaligned address": (Verdict.MISALIGNED, "misaligned"),
    "launch timed out": (Verdict.TIMED_OUT, "timed-out"),
}
"""Verdict and kind of the finding, by words of a CUDA error message in lower case."""
_OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|cannot allocate memory|bad_alloc|_ALLOC_FAILED", re.IGNORECASE
)
_ADVICE = "Including non-PyTorch memory"
"""Beginning of PyTorch's second half of the message: figures of its allocator, and settings of it."""
_CONTROL = re.compile(r"\x1b\[[0-9;]*m")
"""Terminal colours (ANSI SGR sequences)."""
_OPERATION = re.compile(r'(?<=creation failed):\s*error: (?:"[^\n]*"\("[^"\n]*":\d+:\d+\): )?')
"""Line end of an MLIR error, and the source line and place that it repeats, between its two halves."""
_LONGEST_MESSAGE = 1500
"""Characters of an exception's text that are kept."""


class CandidateFault(Exception):
    """A fault of the candidate that ends its evaluation. Carries the outcome; never leaves the worker."""

    def __init__(self, outcome: Outcome, finding: Finding) -> None:
        super().__init__(finding.message)
        self.outcome = outcome
        self.finding = finding


@contextmanager
def blamed(phase: str, path: Path) -> Iterator[None]:
    """Run the candidate's code: whatever it raises becomes a CandidateFault.

    `phase` names the step in messages ("importing it", "in forward"), `path` is the candidate's file. Every
    exception is caught, SystemExit and KeyboardInterrupt too: a candidate may raise anything.
    """
    try:
        with candidate_code():
            yield
    except CandidateFault:
        raise
    except BaseException as error:  # noqa: BLE001 - the candidate may raise anything
        raise classify(error, phase, path) from None


def blaming(call: Callable[..., Any], phase: str, path: Path) -> Callable[..., Any]:
    """Wrap `call` so that whatever it raises becomes a CandidateFault.

    For many calls inside one `candidate_code` block, which `blamed` would enter for each.
    """

    def made(*given: Any) -> Any:
        try:
            return call(*given)
        except BaseException as error:  # noqa: BLE001 - the candidate may raise anything
            raise classify(error, phase, path) from None

    return made


def late_fault(error: RuntimeError, path: Path) -> CandidateFault | None:
    """Make a CandidateFault of a GPU's fault that was reported after the candidate's call; None for others.

    A launch is queued, so PyTorch reports its fault at any later call. Only the candidate's kernels are
    unknown code.
    """
    text = str(error).lower()
    return classify(error, LATER, path) if any(words in text for words in _CUDA_FAULTS) else None


def from_simulator(fault: Fault) -> CandidateFault:
    """Make a CandidateFault of the simulator's: an access outside every tensor, an opcode it lacks."""
    outcome: Outcome
    if fault.verdict is not None:
        outcome = Judged(verdict=fault.verdict)
    else:
        outcome = NotJudged(reason=fault.not_judged or NotJudgedReason.UNSUPPORTED_OPCODE)
    return CandidateFault(outcome, fault.finding)


_BY_KIND = {
    "race": Verdict.RACE,
    "async-hazard": Verdict.ASYNC_HAZARD,
    "uninitialised-read": Verdict.UNINITIALISED_READ,
    "cta-order": Verdict.RACE,
    "divergent-barrier": Verdict.DEADLOCK,
}
"""Verdict of a finding that decides, by its kind."""


def from_finding(finding: Finding) -> CandidateFault:
    """Make a CandidateFault of a finding in a launch that went on; its values may be right all the same."""
    return CandidateFault(Judged(verdict=_BY_KIND[finding.kind]), finding)


def classify(error: BaseException, phase: str, path: Path) -> CandidateFault:
    """Make a CandidateFault of an exception that the candidate raised while `phase`."""
    line, column = place(error, path)
    # The scratch folder is gone by the time the message is read: keep the file's name alone.
    text = message_of(error).replace(f"{path.parent}/", "") + _nearest_names(error)

    def fault(verdict: Verdict, kind: str, message: str) -> CandidateFault:
        finding = Finding(kind=kind, message=message, line=line, column=column)
        return CandidateFault(Judged(verdict=verdict), finding)

    name = type(error).__name__
    if isinstance(error, SystemExit):
        return fault(Verdict.EXITED, "exited", f"The candidate called exit({error.code!r}) while {phase}.")
    if ran_out_of_memory(error):
        return fault(Verdict.OUT_OF_MEMORY, "out-of-memory", f"Memory ran out while {phase}: {name}: {text}")
    for words, (verdict, kind) in _CUDA_FAULTS.items():
        if words in text.lower() and not isinstance(error, SyntaxError):
            # PyTorch's other lines are advice: on CUDA_LAUNCH_BLOCKING, say.
            told = next(one for one in text.splitlines() if words in one.lower())
            return fault(verdict, kind, f"The GPU reported a fault while {phase}: {told}")
    if _from_compiler(error):
        told = _OPERATION.sub(": ", text)
        return fault(Verdict.COMPILE_FAILED, "compile-error", f"The DSL did not compile it: {name}: {told}")
    if phase == IMPORTING:
        return fault(Verdict.COMPILE_FAILED, "import-error", f"The file did not import: {name}: {text}")
    return fault(Verdict.CRASHED, "exception", f"It raised {name} while {phase}: {text}")


def _nearest_names(error: BaseException) -> str:
    """Return the names of a module that resemble one that it lacks: ``cute.arch.warp_max``."""
    if not isinstance(error, AttributeError) or not isinstance(error.obj, ModuleType):
        return ""
    public = [name for name in vars(error.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(error.name or "", public)
    return f". Names like it there: {', '.join(near)}" if near else ""


IMPORTING = "importing it"
CONSTRUCTING = "constructing ModelNew"
RUNNING = "in forward"
LATER = "running a kernel that forward launched"
"""Phases of a candidate, as messages name them after "while"."""


def message_of(error: BaseException) -> str:
    """Text of the exception without terminal colours, cut to 1500 characters."""
    text = without_advice(_CONTROL.sub("", str(error)).strip())
    if len(text) > _LONGEST_MESSAGE:
        text = text[:_LONGEST_MESSAGE] + " …"
    return text or "(no message)"


def without_advice(text: str) -> str:
    """Return PyTorch's sentences on a GPU without memory, less its advice on settings of its allocator."""
    return text.partition(_ADVICE)[0].strip()


def place(error: BaseException, path: Path) -> tuple[int, int]:
    """Line and column, from 1, of the candidate's code that `error` points at; zeros where it does not.

    Sought in syntax errors and messages along the chain of causes first, then in the traceback.
    """
    seen: set[int] = set()
    item: BaseException | None = error
    while item is not None and id(item) not in seen:
        seen.add(id(item))
        if isinstance(item, SyntaxError) and item.filename == str(path):
            return item.lineno or 0, item.offset or 0
        named = _named_in_text(str(item), path)
        if named:
            return named
        item = item.__cause__ or item.__context__
    return _innermost(error.__traceback__, path)


def _named_in_text(text: str, path: Path) -> tuple[int, int] | None:
    """Line and column in a message of the DSL: ``…/candidate.py:12:5`` or ``File "…", line 12``."""
    name = re.escape(path.name)
    found = re.search(name + r'["\']?(?::|, line )(\d+)(?::(\d+))?', _CONTROL.sub("", text))
    return (int(found[1]), int(found[2] or 0)) if found else None


def ran_out_of_memory(error: BaseException) -> bool:
    """Return whether the host, PyTorch's allocator or a library (cuBLAS, say) got no memory."""
    return isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(str(error)) is not None


def _innermost(trace: TracebackType | None, path: Path) -> tuple[int, int]:
    line, column = 0, 0
    for frame in traceback.extract_tb(trace):
        if frame.filename == str(path):
            line, column = frame.lineno or 0, (frame.colno or 0) + 1
    return line, column


def _from_compiler(error: BaseException) -> bool:
    """Return whether the DSL refused the kernel: its own exception, or any raised while it traced one."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    if type(error).__module__.partition(".")[0] == "cutlass":
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return any(f"{'/'}cutlass{'/'}" in frame.filename.replace("\\", "/") for frame in frames)

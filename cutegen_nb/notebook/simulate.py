"""``%%simulate`` and ``%simulate``: a cell or a file run as a whole program on the simulator."""

from __future__ import annotations

import asyncio
import builtins
import codecs
import concurrent.futures
import contextlib
import keyword
import math
import os
import queue
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from IPython.display import display

from cutegen_nb.core.finding import Finding
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.simulation import Launches, ProgramRun
from cutegen_nb.notebook import arguments
from cutegen_nb.notebook.engine import LATE_S
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.notebook.session_registry import SessionRegistry
from cutegen_nb.report.program.page import record_of
from cutegen_nb.report.program.text import outcome, text
from cutegen_nb.simulator.script.run import Script, Streams, run_program

_SLICE_S = 0.05
"""Seconds between two looks at the program's output."""
_STOP_S = 10.0
"""Seconds that an interrupted cell waits for the program to end."""
_SHOWN_BYTES = 1 << 20
"""Bytes of a program's output that a cell shows at most; more makes a notebook unusable."""
_CELL_FILE = "cell.py"
_STILL_RUNNING = (
    "Still running. If a loop of the program never ends, interrupt the cell (■), or run it with "
    "`%%simulate --deadline 60`, which ends it with a report."
)


class SimulatedRun(DisplayResult):
    """Result of a simulated program, as a variable of the notebook."""

    def __init__(self, found: ProgramRun) -> None:
        super().__init__({"text/html": record_of(found), "text/plain": text(found)})
        self.found = found
        """Complete record of the run."""

    @property
    def launches(self) -> tuple[Launches, ...]:
        """Launches by kernel and configuration, with their counters."""
        return self.found.launches

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the simulator's checks."""
        return self.found.findings

    @property
    def counters(self) -> Counters:
        """Sum of the simulated counters over all launches."""
        return self.found.profile.counters


def help_text() -> str:
    """Return the help of ``%%simulate``, which also names ``%simulate``."""
    return arguments.SIMULATE_CELL.format_help().rstrip()


def run(desk: SessionRegistry, line: str, cell: str | None) -> SimulatedRun | None:
    """Run the cell, or the file that the line names; None for a request for help.

    Raises UsageError for a wrong request, and with ``--strict`` where the program fails or a finding stands.
    """
    if line.strip() in {"-h", "--help", "help"}:
        print(help_text())  # noqa: T201 - the cell's output
        return None
    options = arguments.parse_simulate(line, cell=cell is not None)
    _check_free(desk, options.name)
    limits = {"architecture": options.arch, "max_ctas": options.max_ctas, "deadline_s": options.deadline}
    if cell is None:
        program = Script(script=options.script, arguments=tuple(options.arguments), **limits)
        shown = SimulatedRun(_executed(desk, program))
    elif cell.strip():
        shown = SimulatedRun(_of_cell(desk, cell, limits))
    else:
        raise NotebookUsageError("the cell is empty: write a CuTe DSL program below %%simulate")
    if options.name:
        desk.shell.user_ns[options.name] = shown
    if options.strict and _failed(shown.found):
        display(shown)
        raise NotebookUsageError(outcome(shown.found))
    return shown


def _failed(found: ProgramRun) -> bool:
    return bool(found.decided or found.not_simulated or found.exit_status)


def _of_cell(desk: SessionRegistry, cell: str, limits: dict[str, Any]) -> ProgramRun:
    """Run the cell from a file; the magic is its line 1, so line numbers agree with the editor."""
    with tempfile.TemporaryDirectory(prefix="cutegen-") as folder:
        path = Path(folder) / _CELL_FILE
        path.write_text(f"# %%simulate\n{cell}", encoding="utf-8")
        return _executed(desk, Script(script=str(path), folder=os.getcwd(), **limits))  # noqa: PTH109


def _executed(desk: SessionRegistry, program: Script) -> ProgramRun:
    """Run the program on the engine's loop and show its output from the cell's thread as it arrives."""
    output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.put)
    future = desk.engine.submit(run_program(program, streams))
    screen = _Screen(output)
    late_at = time.monotonic() + LATE_S
    try:
        while not future.done():
            screen.show()
            if program.deadline_s is None and time.monotonic() > late_at:
                print(_STILL_RUNNING, flush=True)  # noqa: T201 - the output of the cell
                late_at = math.inf
            with contextlib.suppress(concurrent.futures.TimeoutError):
                future.exception(_SLICE_S)
    except KeyboardInterrupt:
        future.cancel()
        concurrent.futures.wait([future], _STOP_S)
        raise NotebookUsageError("interrupted: the program was ended") from None
    finally:
        screen.show(last=True)
    return future.result()


class _Screen:
    """Output of a program in a cell, up to `_SHOWN_BYTES`."""

    def __init__(self, output: queue.SimpleQueue[bytes]) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = _SHOWN_BYTES
        self._dropped = 0

    def show(self, *, last: bool = False) -> None:
        """Show the output since the previous call; `last` also reports the bytes left out."""
        while not self._output.empty():
            chunk = self._output.get()
            kept = chunk[: self._left]
            self._left -= len(kept)
            self._dropped += len(chunk) - len(kept)
            sys.stdout.write(self._decoder.decode(kept))
        if last:
            sys.stdout.write(self._decoder.decode(b"", final=True))
            if self._dropped:
                sys.stdout.write(f"\n… and {self._dropped:,} more bytes of output that are not shown here\n")
        sys.stdout.flush()


def _check_free(desk: SessionRegistry, name: str | None) -> None:
    """Raise UsageError if the result's variable is a name of Python or holds another object."""
    if name is None:
        return
    if not name.isidentifier() or keyword.iskeyword(name) or hasattr(builtins, name):
        raise NotebookUsageError(f"--name {name!r} cannot be a variable: use letters, digits and _")
    known = desk.shell.user_ns
    if name in known and not isinstance(known[name], SimulatedRun):
        raise NotebookUsageError(
            f"{name} is a variable of yours ({type(known[name]).__name__}) and is left alone: "
            f"choose another --name, or `del {name}`"
        )

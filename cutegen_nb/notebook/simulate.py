"""``%%simulate``: a cell, or a file, as a whole program on the simulator."""

from __future__ import annotations

import asyncio
import builtins
import codecs
import concurrent.futures
import contextlib
import keyword
import os
import queue
import sys
import tempfile
from pathlib import Path
from typing import Any

from IPython.display import display

from cutegen_nb.core.evaluation import Finding
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.simulation import Launches, ProgramRun
from cutegen_nb.notebook import arguments
from cutegen_nb.notebook.desk import Desk
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.handle import Shown
from cutegen_nb.report.simulation import outcome, text
from cutegen_nb.report.simulation_page import record_of
from cutegen_nb.simulator.script_run import Program, Streams, run_program

_SLICE_S = 0.05
_STOP_S = 10.0
_SHOWN_BYTES = 1 << 20
"""Most of a program's output that a cell shows: more makes a notebook unusable."""
_CELL_FILE = "cell.py"


class SimulatedRun(Shown):
    """What a program did on the simulator, as a variable."""

    def __init__(self, found: ProgramRun) -> None:
        super().__init__({"text/html": record_of(found), "text/plain": text(found)})
        self.found = found
        """All of it."""

    @property
    def launches(self) -> tuple[Launches, ...]:
        """Launches by kernel and configuration, with their counts."""
        return self.found.launches

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks found."""
        return self.found.findings

    @property
    def counters(self) -> Counters:
        """Simulated counts of all launches together."""
        return self.found.profile.counters


def help_text() -> str:
    """Help of the cell's form, and what the line's form adds."""
    return arguments.SIMULATE_CELL.format_help().rstrip()


def run(desk: Desk, line: str, cell: str | None) -> SimulatedRun | None:
    """Run the cell, or the file that the line names, and give what came of it.

    Raises UsageError for a wrong request, and with ``--strict`` where the program fails or a finding stands.
    """
    if line.strip() in {"-h", "--help", "help"}:
        print(help_text())  # noqa: T201 - the cell's output
        return None
    options = arguments.parse_simulate(line, cell=cell is not None)
    _check_free(desk, options.name)
    limits = {"architecture": options.arch, "max_ctas": options.max_ctas, "deadline_s": options.deadline}
    if cell is None:
        program = Program(script=options.script, arguments=tuple(options.arguments), **limits)
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


def _of_cell(desk: Desk, cell: str, limits: dict[str, Any]) -> ProgramRun:
    """The cell as a file, whose lines have the numbers that the editor shows: the magic is the first."""
    with tempfile.TemporaryDirectory(prefix="cutegen-") as folder:
        path = Path(folder) / _CELL_FILE
        path.write_text(f"# %%simulate\n{cell}", encoding="utf-8")
        return _executed(desk, Program(script=str(path), folder=os.getcwd(), **limits))  # noqa: PTH109


def _executed(desk: Desk, program: Program) -> ProgramRun:
    """Run it on the engine's loop and show its output here, in the cell's thread, as it comes."""
    output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.put)
    future = desk.engine.submit(run_program(program, streams))
    screen = _Screen(output)
    try:
        while not future.done():
            screen.show()
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
    """Shows what a program printed, up to a bound."""

    def __init__(self, output: queue.SimpleQueue[bytes]) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = _SHOWN_BYTES
        self._dropped = 0

    def show(self, *, last: bool = False) -> None:
        """Show what has come since."""
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


def _check_free(desk: Desk, name: str | None) -> None:
    """A variable for the result: a name of Python's own, or one that holds something else, is left alone."""
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

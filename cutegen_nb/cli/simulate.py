"""``cutegen-nb simulate``: execution of a GPU program on the simulator, with a report."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from cutegen_nb.app.output import simulation_json
from cutegen_nb.cli.answer import FAULT, CommandResult
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.simulation import ProgramRun
from cutegen_nb.report.html.page import check_target, write_whole
from cutegen_nb.report.program.text import text
from cutegen_nb.simulator.script.run import Script, Streams, check, run_program

FOUND = 3
"""Exit status when a check decides against one of the program's kernels."""
_INTERRUPT_S = 30.0
"""Seconds after Ctrl-C in which the program may end itself and its report be made."""
_HINT_S = 2.0
"""Seconds after Ctrl-C until the hint that a second Ctrl-C ends the program at once."""
DESCRIPTION = """
Run a CuTe DSL program written for a GPU, unmodified, with no GPU, and report what its kernels did.

torch.cuda looks available and tensors say cuda; they stay on the CPU. Every kernel launch is executed,
checked and counted. The program's own output comes as it is; the report goes to standard error.
There are no times: what the program prints as one is not, and between CUDA events it finds 999999.
"""
EPILOG = """
exit status: the program's own; 3 when a finding stands against a kernel; 2 for wrong use, or when the
simulator could not run a part of the program; 124 at the deadline; 130 interrupted; 128 + N after signal N

examples:
  cutegen-nb simulate sgemm.py --mnk 128,128,64 --iterations 1
  cutegen-nb simulate --arch sm_89 --html gemm.html gemm.py
  cutegen-nb simulate -m pytest -q test_gemm.py
"""


def describe(parser: argparse.ArgumentParser) -> None:
    """Set description, epilog and usage of the parser; arguments after SCRIPT.py are the program's own."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION.strip(), EPILOG.strip()
    parser.usage = (
        "%(prog)s [options] SCRIPT.py [its arguments]\n       %(prog)s [options] -m MODULE [its arguments]"
    )


async def simulate(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Run the program, then report its launches on standard error, as JSON and as a page."""
    if options.script is None:
        message = "simulate needs SCRIPT.py, the program to run; see `cutegen-nb simulate --help`"
        raise UsageError(message)
    program = Script(
        script=options.script,
        arguments=tuple(options.arguments),
        is_module=options.is_module,
        architecture=options.arch,
        max_ctas=options.max_ctas,
        deadline_s=options.deadline,
    )
    check(program)
    json_target = _target(options.json, "report.json") if options.json not in {None, "-"} else None
    html_target = _target(options.html, "report.html") if options.html else None
    to_stdout = options.json == "-"
    with _interrupts_are_the_programs(terminal):
        run = await run_program(program, Streams(stdout=sys.stderr.fileno() if to_stdout else None))
    terminal.say(f"\n{text(run)}")
    report = json.dumps(simulation_json(run), indent=2) if options.json else ""
    if json_target:
        write_whole(report + "\n", json_target)
        terminal.say(f"report: {json_target}")
    if html_target:
        _write_page(run, html_target, terminal)
    return CommandResult(status=status_of(run), text=report if to_stdout else "")


def status_of(run: ProgramRun) -> int:
    """Return the exit status: 3 for a finding, 2 for a part not simulated, else the program's own."""
    if run.decided:
        return FOUND
    return FAULT if run.not_simulated else run.exit_status


def _target(path: str, example: str) -> Path:
    target = check_target(path, example)
    if target.exists() and not target.is_file():
        message = f"{path} is no ordinary file; name one to write the report to"
        raise UsageError(message)
    return target


def _write_page(run: ProgramRun, target: Path, terminal: Terminal) -> None:
    from cutegen_nb.report.program.page import page_of  # noqa: PLC0415 - pygments, for --html only

    write_whole(page_of(run), target)
    terminal.say(f"report: {target}")


@contextlib.contextmanager
def _interrupts_are_the_programs(terminal: Terminal) -> Iterator[None]:
    """Leave Ctrl-C to the program, which receives SIGINT too.

    A second Ctrl-C, or a program still running after `_INTERRUPT_S`, cancels the run.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    pending: list[asyncio.TimerHandle] = []

    def interrupted() -> None:
        if pending:
            task.cancel()
            return
        hint = f"the program has {_INTERRUPT_S:.0f} s to end itself; Ctrl-C again ends it, with no report"
        pending.append(loop.call_later(_HINT_S, terminal.say, hint))
        pending.append(loop.call_later(_INTERRUPT_S, task.cancel))

    # Signals can be handled in the main thread only; elsewhere none arrives.
    with contextlib.suppress(RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for handle in pending:
            handle.cancel()

"""``cutegen-nb simulate``: a program written for a GPU, run on the simulator, and a report of it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from cutegen_nb.cli.commands import FAULT, Answer
from cutegen_nb.cli.output import simulation_json
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.simulation import ProgramRun
from cutegen_nb.report.page import check_target, write_whole
from cutegen_nb.report.simulation import text
from cutegen_nb.simulator.architectures import ARCHITECTURES, DEFAULT_ARCHITECTURE
from cutegen_nb.simulator.script_run import Program, Streams, check, run_program

FOUND = 3
"""Exit status when a finding stands against one of the program's kernels."""
_INTERRUPT_S = 30.0
"""How long the program has to end itself after Ctrl-C, and its report to be made: a busy machine is slow."""
_HINT_S = 2.0
"""After this a person hears that a second Ctrl-C ends it at once."""
SUMMARY = "run a CuTe DSL program written for a GPU, unmodified, with no GPU, and report what its kernels did"
DESCRIPTION = """
Run a CuTe DSL program written for a GPU, unmodified, with no GPU, and report what its kernels did.

torch.cuda looks available and tensors say cuda; they stay on the CPU. Every kernel launch is executed,
checked and counted. The program's own output comes as it is; the report goes to standard error.
There are no times: what the program prints as one is not, and between CUDA events it finds nan.
"""
EPILOG = """
exit status: the program's own; 3 when a finding stands against a kernel; 2 for wrong use, or when the
simulator could not run a part of the program; 124 at the deadline; 130 interrupted; 128 + N after signal N

examples:
  cutegen-nb simulate sgemm.py --mnk 128,128,64 --iterations 1
  cutegen-nb simulate --arch sm_89 --html gemm.html gemm.py
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command; those after SCRIPT.py are the program's."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description, parser.epilog = DESCRIPTION.strip(), EPILOG.strip()
    parser.usage = "%(prog)s [options] SCRIPT.py [its arguments]"
    parser.add_argument(
        "script", nargs="?", metavar="SCRIPT.py", help="the program; what follows it is for the program"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        default=DEFAULT_ARCHITECTURE,
        help=f"what kernels are compiled for (default: {DEFAULT_ARCHITECTURE})",
    )
    parser.add_argument(
        "--max-ctas",
        type=positive,
        metavar="N",
        help="run N CTAs of each larger grid: the first, the last and evenly spaced ones. Results are then "
        "incomplete, so that the program's own check of them may fail",
    )
    parser.add_argument(
        "--deadline", type=seconds, metavar="S", help="end the program after S seconds (default: never)"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the report as JSON; - for standard output, the program's own then goes to standard error",
    )
    parser.add_argument("--html", metavar="FILE", help="write the report as one HTML file")


def positive(word: str) -> int:
    """A whole number from 1."""
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        message = f"{word!r} is not a number of CTAs: give a whole number from 1"
        raise argparse.ArgumentTypeError(message)
    return int(word)


def seconds(word: str) -> float:
    """A number of seconds above 0."""
    with contextlib.suppress(ValueError):
        if 0 < (value := float(word)) < float("inf"):
            return value
    message = f"{word!r} is not a number of seconds above 0"
    raise argparse.ArgumentTypeError(message)


async def simulate(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Run the program, then say what its kernels did."""
    if options.script is None:
        message = "simulate needs SCRIPT.py, the program to run; see `cutegen-nb simulate --help`"
        raise UsageError(message)
    program = Program(
        script=options.script,
        arguments=tuple(options.arguments),
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
    return Answer(status=status_of(run), text=report if to_stdout else "")


def status_of(run: ProgramRun) -> int:
    """The exit status that a run leads to."""
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
    from cutegen_nb.report.simulation_page import page_of  # noqa: PLC0415 - pygments, for --html only

    write_whole(page_of(run), target)
    terminal.say(f"report: {target}")


@contextlib.contextmanager
def _interrupts_are_the_programs(terminal: Terminal) -> Iterator[None]:
    """Leave Ctrl-C to the program, which it reaches too; end it when it does not go, or at a second one."""
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

    # Elsewhere than in a main thread no signal arrives at all.
    with contextlib.suppress(RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        for handle in pending:
            handle.cancel()

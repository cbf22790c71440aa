"""`cutegen-nb`: the headless twin of the notebook."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NoReturn

from cutegen_nb import __version__
from cutegen_nb.cli import authors as authoring
from cutegen_nb.cli import batches as batching
from cutegen_nb.cli import bundles as bundling
from cutegen_nb.cli import checks as checking
from cutegen_nb.cli import commands as work
from cutegen_nb.cli import exploits as exploiting
from cutegen_nb.cli import instructions as listing
from cutegen_nb.cli import layout as drawing
from cutegen_nb.cli import limits as limiting
from cutegen_nb.cli import merge as merging
from cutegen_nb.cli import profile as counting
from cutegen_nb.cli import profiles as profiling
from cutegen_nb.cli import prompt as prompting
from cutegen_nb.cli import replay as replaying
from cutegen_nb.cli import simulate as simulating
from cutegen_nb.cli.commands import FAULT, Answer
from cutegen_nb.cli.streams import use_plain_letters, write_out
from cutegen_nb.cli.terminal import Terminal, visible
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.wiring import BASELINES, DEFAULT_FOLDER, DEVICES, POLICIES

_INTERRUPTED = 130

Command = Callable[[argparse.Namespace, Terminal], Awaitable[Answer]]


class _WrongUse(SystemExit):
    """Ends the process; the sentence has been written to standard error."""

    def __init__(self, sentence: str) -> None:
        super().__init__(FAULT)
        self.sentence = sentence


class _Parser(argparse.ArgumentParser):
    """Says one sentence about a wrong command line, with the nearest right word where there is one."""

    def error(self, message: str) -> NoReturn:
        sentence = f"{message}; see `{self.prog} --help`"
        sys.stderr.write(f"cutegen-nb: error: {sentence}\n")
        raise _WrongUse(sentence)


def _nearest(word: str, known: Sequence[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


def _rounds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        message = f"{text!r} is not a number of rounds: give a whole number from 1"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def make_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser, and that of each command by its name."""
    parser = _Parser(
        prog="cutegen-nb",
        description="Refine CuTe DSL kernels round by round. `cutegen-nb demo` shows how; "
        "`cutegen-nb COMMAND --help` says more of a command.",
        epilog="exit status: 0 it passed; 1 nothing did; 2 wrong use, or our fault; 3 `simulate` found "
        "something; 130 interrupted",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cutegen-nb {__version__}")
    adding = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    commands: dict[str, argparse.ArgumentParser] = {}

    def command(
        name: str, job: Command, summary: str, example: str, *, json: bool = True
    ) -> argparse.ArgumentParser:
        made = adding.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example: {example}",
            allow_abbrev=False,
        )
        made.set_defaults(work=job)
        if json:
            made.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        commands[name] = made
        return made

    _add_refining(command)
    _add_judging(command)
    made = command("simulate", simulating.simulate, simulating.SUMMARY, "", json=False)
    simulating.add_options(made)
    command("checks", checking.checks, checking.SUMMARY, "cutegen-nb checks --json")
    made = command("exploits", exploiting.run_exploits, exploiting.SUMMARY, "cutegen-nb exploits --json")
    exploiting.add_options(made)
    _add_device(made)
    made = command(
        "instructions", listing.instructions, listing.SUMMARY, "cutegen-nb instructions --arch sm_80"
    )
    listing.add_options(made)
    _add_exchange(command)
    drawing.add_options(command("layout", drawing.layout, drawing.SUMMARY, drawing.EXAMPLE))
    _add_records(command)
    _add_prompt(command)
    made = command("replay", replaying.replay, replaying.SUMMARY, "cutegen-nb replay relu")
    replaying.add_options(made)
    _add_store(made)
    _add_counting(command)
    made = command("profiles", profiling.profiles, profiling.SUMMARY, "cutegen-nb profiles check local")
    profiling.add_options(made)
    made = command(
        "doctor",
        work.doctor,
        "say what this machine offers and what will run where",
        "cutegen-nb doctor",
    )
    _add_device(made)
    _add_store(made)
    return parser, commands


def _add_refining(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Commands that run rounds."""
    made = command("demo", work.demo, "refine a shipped problem", "cutegen-nb demo")
    _add_running(made, rounds=6)
    made = command(
        "run", work.run, "refine the problem of a file", "cutegen-nb run relu.py --rounds 4 --json"
    )
    made.add_argument(
        "problem", metavar="PROBLEM.py", help="Model, get_inputs, get_init_inputs; or a function"
    )
    made.add_argument("--name", help="name of the session; the file's name unless given")
    _add_running(made, rounds=6)


def _add_judging(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Commands that look at a problem, and at a kernel for it."""
    made = command(
        "problem",
        work.problem,
        "say what is known of a problem, and which wrong answers would pass",
        "cutegen-nb problem relu.py --json",
    )
    made.add_argument("problem", metavar="PROBLEM.py", help="the reference")
    _add_device(made)
    made = command(
        "evaluate",
        work.evaluate,
        "judge one kernel file against a problem",
        "cutegen-nb evaluate relu.py my_relu.py",
    )
    made.add_argument("problem", nargs="?", metavar="PROBLEM.py", help="the reference")
    made.add_argument("candidate", nargs="?", metavar="CANDIDATE.py", help="a file with ModelNew")
    made.add_argument("--batch", metavar="JOBS.jsonl", help="what `cutegen-nb pending` wrote, in their place")
    made.add_argument(
        "-o",
        "--output",
        metavar="RESULTS.jsonl",
        help="with --batch: a line a result, as soon as it is there",
    )
    made.add_argument(
        "--tier",
        choices=[tier.value for tier in Tier],
        default=Tier.A.value,
        help="how closely to look: A as every round, B as before it may become best, C as before an export",
    )
    _add_device(made)
    _add_baseline(made)


def _add_records(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Commands that read what is stored."""
    made = command(
        "sessions",
        work.sessions,
        "list the sessions, or show one's lineage",
        "cutegen-nb sessions relu",
    )
    made.add_argument("session", nargs="?", metavar="SESSION", help="show how its revisions came about")
    _add_store(made)
    made = command("merge", merging.merge, merging.SUMMARY, merging.EXAMPLE)
    merging.add_options(made)
    _add_store(made)
    made = command(
        "report",
        work.report,
        "write a session as one HTML file",
        "cutegen-nb report relu -o relu.html",
    )
    made.add_argument("session", metavar="SESSION", help="a name that `cutegen-nb sessions` lists")
    made.add_argument("-o", "--output", metavar="FILE.html", required=True, help="where to write it")
    _add_store(made)


def _add_exchange(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Commands that take sessions and kernels to other machines and back."""
    exporting = command(
        "export", bundling.export_session, bundling.EXPORT, "cutegen-nb export relu -o relu.cutegen"
    )
    importing = command("import", bundling.import_session, bundling.IMPORT, "cutegen-nb import relu.cutegen")
    verifying = command("verify", bundling.verify, bundling.VERIFY, "cutegen-nb verify relu_kernel.py")
    bundling.add_options(exporting, importing, verifying)
    waiting = command("pending", batching.pending, batching.PENDING, "cutegen-nb pending relu -o jobs.jsonl")
    absorbing = command("absorb", batching.absorb_results, batching.ABSORB, "cutegen-nb absorb results.jsonl")
    batching.add_options(waiting, absorbing)
    for one in (exporting, importing, waiting, absorbing):
        _add_store(one)
    for one in (exporting, verifying):
        _add_device(one)


def _add_prompt(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The command that shows a request."""
    made = command(
        "prompt", prompting.prompt, prompting.SUMMARY, "cutegen-nb prompt relu.py --stage generate"
    )
    prompting.add_options(made)
    _add_device(made)
    _add_store(made)


def _add_counting(command: Callable[..., argparse.ArgumentParser]) -> None:
    made = command("profile", counting.profile, counting.SUMMARY, counting.EXAMPLE)
    counting.add_options(made)
    _add_device(made)


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where kernels run (default: auto)")


def _add_baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline",
        action="append",
        choices=BASELINES,
        help="what a GPU's times are compared with; may be given twice (default: eager)",
    )


def _add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store", type=Path, metavar="DIR", help=f"the folder of the sessions ({DEFAULT_FOLDER})"
    )


def _add_running(parser: argparse.ArgumentParser, rounds: int) -> None:
    authoring.add_options(parser)
    parser.add_argument(
        "--rounds", type=_rounds, default=rounds, metavar="K", help=f"rounds at most (default: {rounds})"
    )
    parser.add_argument(
        "--policy", choices=POLICIES, default="auto", help="who decides: auto, or ask at the terminal"
    )
    limiting.add_options(parser)
    _add_device(parser)
    _add_baseline(parser)
    _add_store(parser)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line. Ends the process with status 2 and a sentence when it is wrong."""
    parser, commands = make_parser()
    first = next((word for word in arguments if not word.startswith("-")), "")
    if first and first not in commands:
        parser.error(f"there is no command {first!r}{_nearest(first, list(commands))}")
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        parser.exit(FAULT)
    if unknown:
        known = [word for action in commands[options.command]._actions for word in action.option_strings]  # noqa: SLF001 - argparse offers no other way to list them
        commands[options.command].error(f"unknown argument {unknown[0]!r}{_nearest(unknown[0], known)}")
    return options


async def _work(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Run the command so that a request to end it, or a closed terminal, passes through every `finally`."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            # One that is ignored (nohup) stays so.
            if signal.getsignal(number) is signal.SIG_DFL:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    answer: Answer = await options.work(options, terminal)
    return answer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. 0: the best passed; 1: none did; 2: wrong use or our fault; 130: interrupted."""
    use_plain_letters()
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = parse(given)
    except _WrongUse as wrong:
        if "--json" in given:
            write_out(json.dumps({"error": wrong.sentence}))
        raise
    terminal = Terminal()
    try:
        answer = asyncio.run(_work(options, terminal))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _failed(options, terminal, "interrupted", _INTERRUPTED, _kept(options))
    except CutegenError as error:
        return _failed(options, terminal, f"error: {error}")
    except Exception as error:  # noqa: BLE001 - the entry: a person gets a sentence, never a traceback
        fault = f"error: {type(error).__name__}: {error}; this is a fault of cutegen-nb: please report it"
        return _failed(options, terminal, fault)
    unwritten = write_out(visible(answer.text))
    if unwritten:
        terminal.say(f"cutegen-nb: error: {unwritten}")
        return FAULT
    return answer.status


def _failed(
    options: argparse.Namespace, terminal: Terminal, what: str, status: int = FAULT, kept: str = ""
) -> int:
    """Say it where a person reads, and in JSON where a program does."""
    terminal.say(f"cutegen-nb: {what}{f'; {kept}' if kept else ''}")
    # `simulate` takes the name of a file.
    if vars(options).get("json") is True:
        write_out(json.dumps({"error": what.removeprefix("error: ")}))
    return status


def _kept(options: argparse.Namespace) -> str:
    """What an interrupt leaves, and how to go on."""
    if options.command == "run":
        return "finished rounds are kept: `cutegen-nb run` again"
    if options.command == "demo":
        return "finished rounds are kept: `cutegen-nb sessions` lists them, `cutegen-nb demo` begins anew"
    if options.command == "simulate":
        return "the program was ended and there is no report; --deadline S ends it with one"
    if options.command == "evaluate" and options.batch:
        return "finished results are kept: the same command again does the rest"
    return f"`cutegen-nb {options.command}` again begins anew"


if __name__ == "__main__":
    sys.exit(main())

"""Entry point and argument parser of `cutegen-nb`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NoReturn

from cutegen_nb import __version__
from cutegen_nb.app.arguments import add_arguments, nearest
from cutegen_nb.app.commands import command_line_commands, magic_commands
from cutegen_nb.cli import (
    batches,
    bundles,
    campaign,
    checks,
    commands,
    exploits,
    instructions,
    layout,
    merge,
    population,
    profile,
    profiles,
    prompt,
    replay,
    simulate,
    strategies,
)
from cutegen_nb.cli.answer import FAULT, CommandResult
from cutegen_nb.cli.streams import use_plain_letters, write_out
from cutegen_nb.cli.teaching import mark
from cutegen_nb.cli.terminal import Terminal, visible
from cutegen_nb.core.errors import CutegenError

_INTERRUPTED = 130
"""Exit status after an interrupt: 128 + SIGINT."""
_ENDING_S = 2.0
"""Seconds that a cancelled command has before another interrupt ends the process. A terminal and a program
around this one may both send the same interrupt."""

Handler = Callable[[argparse.Namespace, Terminal], Awaitable[CommandResult]]


class _WrongUse(SystemExit):
    """Exit for a wrong command line, raised after the sentence was written to standard error."""

    def __init__(self, sentence: str) -> None:
        super().__init__(FAULT)
        self.sentence = sentence


class _Parser(argparse.ArgumentParser):
    """Parser that reports a wrong command line in one sentence."""

    def error(self, message: str) -> NoReturn:
        sentence = f"{message}; see `{self.prog} --help`"
        sys.stderr.write(f"cutegen-nb: error: {sentence}\n")
        raise _WrongUse(sentence)


def _did_you_mean(word: str, known: Sequence[str]) -> str:
    found = nearest(word, known)
    return f"; did you mean {found}?" if found else ""


def _meant(word: str, commands: Sequence[str]) -> str:
    """Say that a command is the notebook's alone, or name the nearest one."""
    if any(item.name == word for item in magic_commands()):
        return f": `%cutegen {word}` is of the notebook"
    return _did_you_mean(word, commands)


HANDLERS: dict[str, Handler] = {
    "demo": commands.demo,
    "run": commands.run,
    "resume": commands.resume,
    "campaign": campaign.campaign,
    "evaluate": commands.evaluate,
    "simulate": simulate.simulate,
    "profile": profile.profile,
    "sessions": commands.sessions,
    "population": population.population,
    "report": commands.report,
    "export": bundles.export_session,
    "doctor": commands.doctor,
    "problem": commands.problem,
    "prompt": prompt.prompt,
    "replay": replay.replay,
    "merge": merge.merge,
    "import": bundles.import_session,
    "verify": bundles.verify,
    "pending": batches.pending,
    "absorb": batches.absorb_results,
    "layout": layout.layout,
    "checks": checks.checks,
    "exploits": exploits.run_exploits,
    "instructions": instructions.instructions,
    "profiles": profiles.profiles,
    "strategies": strategies.strategies,
    "assignment": mark.assignment,
    "mark": mark.mark,
}
"""Handler of each command of `command_line_commands`, by name."""

_EXIT_STATUSES = (
    "exit status: 0 it passed; 1 nothing did; 2 wrong use, or our fault; 3 `simulate` found something; "
    "130 interrupted"
)
_DEV = "dev"
"""Prefix under which the help lists the rarer commands; each also works without it."""


def make_parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the main parser, and the parser of each command by its name."""
    parser = _Parser(
        prog="cutegen-nb",
        description="Refine CuTe DSL kernels round by round. `cutegen-nb demo` shows it on this machine; "
        "`cutegen-nb COMMAND --help` explains a command.",
        epilog=_EXIT_STATUSES,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"cutegen-nb {__version__}")
    adding = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", parser_class=_Parser)
    parsers: dict[str, argparse.ArgumentParser] = {}
    for item in command_line_commands():
        # argparse lists a command only where it has help.
        listed: dict[str, Any] = {"help": item.summary} if item.everyday else {}
        made = adding.add_parser(
            item.name,
            prog=f"cutegen-nb {item.name}" if item.everyday else f"cutegen-nb {_DEV} {item.name}",
            description=item.summary,
            epilog=f"example: {item.example}",
            allow_abbrev=False,
            **listed,
        )
        if item.name == "simulate":
            simulate.describe(made)
        add_arguments(made, item.arguments or ())
        parsers[item.name] = made
    adding.add_parser(
        _DEV,
        prog=f"cutegen-nb {_DEV}",
        help="List the other commands (merge, mark, strategies …).",
        add_help=False,
    )
    return parser, parsers


def _dev_help() -> str:
    """Return the help of ``cutegen-nb dev``: a line for each command that is not an everyday one."""
    others = [item for item in command_line_commands() if not item.everyday]
    lines = [f"  {item.name:<14}{item.summary}" for item in others]
    return "\n".join(
        [
            "usage: cutegen-nb dev COMMAND",
            "",
            *lines,
            "",
            "`cutegen-nb COMMAND --help` explains one; `dev` may be left out.",
        ]
    )


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line. Raises SystemExit with status 2 if it is wrong."""
    parser, parsers = make_parser()
    first = next((word for word in arguments if not word.startswith("-")), "")
    if first == _DEV:
        place = arguments.index(_DEV)
        arguments = [*arguments[:place], *arguments[place + 1 :]]
        first = next((word for word in arguments if not word.startswith("-")), "")
        if not first:
            write_out(_dev_help())
            parser.exit(0)
    if first and first not in parsers:
        parser.error(f"there is no command {first!r}{_meant(first, list(parsers))}")
    options, unknown = parser.parse_known_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        parser.exit(FAULT)
    if unknown:
        known = [word for action in parsers[options.command]._actions for word in action.option_strings]  # noqa: SLF001 - argparse offers no other way to list them
        parsers[options.command].error(f"unknown argument {unknown[0]!r}{_did_you_mean(unknown[0], known)}")
    options.typed = tuple(arguments)
    return options


class Interrupts:
    """Handler of SIGINT: the first interrupt cancels the command, one seconds later ends the process.

    Workers end with this process, so that ending it at once leaves nothing running.
    """

    def __init__(
        self,
        cancel: Callable[[], object],
        end: Callable[[], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Do nothing yet; `cancel` ends the command in order, `end` the process. `now` reads a clock in s."""
        self._cancel = cancel
        self._end = end
        self._now = now
        self._first: float | None = None

    def __call__(self) -> None:
        """Handle one interrupt."""
        if self._first is None:
            self._first = self._now()
            self._cancel()
        elif self._now() - self._first > _ENDING_S:
            self._end()


async def _work(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Run the command; SIGINT, SIGTERM and SIGHUP cancel it, so that every `finally` is executed."""
    task = asyncio.current_task()
    assert task is not None

    def end() -> None:
        os._exit(_failed(options, terminal, "interrupted", _INTERRUPTED, _kept(options)))

    with contextlib.suppress(NotImplementedError, RuntimeError):
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, Interrupts(task.cancel, end))
    for number in (signal.SIGTERM, signal.SIGHUP):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            # A signal that is ignored, as under nohup, stays ignored.
            if signal.getsignal(number) is signal.SIG_DFL:
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await HANDLERS[options.command](options, terminal)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    0: the best passed; 1: none did; 2: wrong use or our fault; 3: `simulate` found something;
    130: interrupted.
    """
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
    """Report a failure on standard error, and with ``--json`` also as JSON on standard output."""
    terminal.say(f"cutegen-nb: {what}{f'; {kept}' if kept else ''}")
    # The ``--json`` of `simulate` is the name of a file, not True.
    if vars(options).get("json") is True:
        write_out(json.dumps({"error": what.removeprefix("error: ")}))
    return status


def _kept(options: argparse.Namespace) -> str:
    """Return a sentence on the results that an interrupt leaves and the command that continues."""
    if options.command == "campaign":
        return "finished rounds are kept: the same command goes on with the campaign"
    if options.command in {"run", "resume"}:
        return "finished rounds are kept: the same command goes on with the session"
    if options.command == "demo":
        return "finished rounds are kept: `cutegen-nb sessions` lists them, `cutegen-nb demo` begins anew"
    if options.command == "simulate":
        return "the program was ended and there is no report; --deadline S ends it with one"
    if options.command == "evaluate" and options.batch:
        return "finished results are kept: the same command again does the rest"
    return f"`cutegen-nb {options.command}` again begins anew"


if __name__ == "__main__":
    sys.exit(main())

"""Parsers of the lines of `%cutegen`, `%%cutegen` and `%%simulate`, with their help."""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Sequence
from typing import NoReturn

from cutegen_nb.app.arguments import add_arguments
from cutegen_nb.app.command import Command
from cutegen_nb.app.commands import command_line_commands, magic_commands
from cutegen_nb.app.kernel_commands import SIMULATE_MAGIC as SIMULATE_ARGUMENTS
from cutegen_nb.app.session_commands import CELL as CELL_ARGUMENTS
from cutegen_nb.notebook.faults import NotebookUsageError

CELL_WORDS = ("edit", "steer", "reject", "reply", "check")
"""Words after ``%%cutegen`` that make the cell the text of a decision or a reply, or an exercise's answer."""


_LIKE_A_CHOICE = 0.7
"""Least similarity of a choice that is suggested: below it all are listed, as of architectures."""


class _Parser(argparse.ArgumentParser):
    """Parser that raises NotebookUsageError where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        word = self.prog.split()[-1].lstrip("%")
        help_of = {"simulate": f"{self.prog}?", "cutegen": "%cutegen help"}.get(word, f"%cutegen help {word}")
        if message.startswith("the following arguments are required"):
            usage = " ".join(self.format_usage().removeprefix("usage:").split())
            message = f"something is missing: `{usage}`"
        raise NotebookUsageError(f"{message}; see `{help_of}`")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is not a choice, and name the nearest one. Overrides argparse's method."""
        if action.choices is not None and value not in action.choices:
            known = nearest(str(value), [str(one) for one in action.choices], _LIKE_A_CHOICE)
            raise argparse.ArgumentError(action, f"there is no {str(value)!r}{known}")


def _parser(prog: str, summary: str, epilog: str = "") -> _Parser:
    return _Parser(
        prog=prog,
        description=summary,
        epilog=epilog,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _make_parser(command: Command) -> _Parser:
    made = _parser(
        f"%cutegen {command.name}",
        command.summary,
        f"example: {command.example}" if command.example.startswith("%") else "",
    )
    add_arguments(made, command.magic or ())
    if command.words:  # shown here, and read by `_wordy`
        made.add_argument("words", nargs="*", metavar="WORDS", help=command.words)
    return made


def _cell_parser() -> _Parser:
    made = _parser(
        "%%cutegen",
        "Refine the problem in this cell: a KernelBench file (Model, get_inputs, get_init_inputs), or a "
        "function\nand get_inputs. The session becomes a variable under its name.",
        "`%%cutegen edit`, `steer` and `reject` take the cell as the text of a decision,\n"
        "`%%cutegen reply` as the reply of a model to which you carried the request (--author manual).\n"
        "`%%cutegen check NAME` checks the cell as the answer to an exercise of the lessons.",
    )
    add_arguments(made, CELL_ARGUMENTS)
    return made


def _simulate_parser(prog: str, summary: str, epilog: str) -> _Parser:
    made = _parser(prog, summary, epilog)
    add_arguments(made, SIMULATE_ARGUMENTS)
    return made


def _simulate_file_parser() -> _Parser:
    made = _simulate_parser(
        "%simulate",
        "Run a program of a file on the simulator and show what its kernels did.",
        "example: %simulate gemm.py --mnk 256,256,64",
    )
    made.add_argument("script", metavar="SCRIPT.py", help="the program; what follows it is for the program")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own")
    return made


CELL = _cell_parser()
SIMULATE_CELL = _simulate_parser(
    "%%simulate",
    "Run this cell, a CuTe DSL program written for a GPU, on the simulator, and show what its kernels did.\n"
    "\nThe cell is a program of its own, in a process of its own: it sees no variable of the notebook and\n"
    "leaves none. torch.cuda looks available; tensors say cuda, and stay on the CPU. Launches are executed,\n"
    "checked and counted. There are no times: between CUDA events the program finds 999999.",
    "`%simulate SCRIPT.py [its arguments]` does the same with a file.",
)
SIMULATE_FILE = _simulate_file_parser()
PARSERS = {item.name: _make_parser(item) for item in magic_commands()}
WORDY = tuple(item.name for item in magic_commands() if item.words)
"""Commands that take free text, quotes and dashes included, after their options."""


def split_command(line: str) -> tuple[str, str]:
    """Split a line into its command and the rest; an empty line is ``status``.

    Raises UsageError, with the nearest command, for an unknown one.
    """
    word, _, rest = line.strip().partition(" ")
    if not word:
        return "status", ""
    if word in {"-h", "--help"}:
        return "help", rest
    _must_be_known(word)
    return word, rest.strip()


def _must_be_known(word: str) -> None:
    """Raise UsageError for an unknown command, with the nearest one or the right form."""
    if word in PARSERS:
        return
    if word == "reply":
        raise NotebookUsageError("the reply of a model is a cell: put `%%cutegen reply` above it")
    if word == "check":
        raise NotebookUsageError(
            "an answer is a cell: put `%%cutegen check NAME`, with two %, above a kernel and its `launch`"
        )
    if any(item.name == word for item in command_line_commands()):
        raise NotebookUsageError(f"`{word}` is a command of the terminal: `!cutegen-nb {word} --help`")
    raise NotebookUsageError(f"there is no `%cutegen {word}`{nearest(word, list(PARSERS))}")


def parse_command(name: str, rest: str) -> argparse.Namespace:
    """Parse the options of a line magic. Raises UsageError."""
    if name in WORDY:
        return _wordy(rest)
    return _parsed(PARSERS[name], rest)


def parse_simulate(line: str, *, cell: bool) -> argparse.Namespace:
    """Parse the options of ``%%simulate`` (`cell`) or ``%simulate``. Raises UsageError."""
    return _parsed(SIMULATE_CELL if cell else SIMULATE_FILE, line)


def parse_cell(line: str) -> argparse.Namespace:
    """Parse the options of ``%%cutegen``. Raises UsageError."""
    word = line.split(maxsplit=1)[0] if line.strip() else ""
    if word in PARSERS:
        raise NotebookUsageError(
            f"`{word}` takes no cell: type `%cutegen {word}`, with one %, in a cell of its own"
        )
    if word and not word.startswith("-"):
        raise NotebookUsageError(f"there is no `%%cutegen {word}`{nearest(word, CELL_WORDS)}")
    return _parsed(CELL, line)


def _parsed(parser: _Parser, line: str) -> argparse.Namespace:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise NotebookUsageError(f"the options cannot be read ({error}): close the quotation mark") from error
    known = [word for action in parser._actions for word in action.option_strings]  # noqa: SLF001 - no other list
    options, unknown = parser.parse_known_args(words)
    if unknown and not unknown[0].startswith("-"):
        parser.error(f"{unknown[0]!r} is one word too many")
    if unknown:
        parser.error(f"unknown argument {unknown[0]!r}{nearest(unknown[0].partition('=')[0], known)}")
    if getattr(options, "named", None):
        options.session = options.named
    return options


def _wordy(rest: str) -> argparse.Namespace:
    """Parse ``[--name NAME] WORDS`` without shlex: an apostrophe in the words is no quotation mark."""
    name: str | None = None
    words = rest.strip()
    first, _, after = words.partition(" ")
    option, _, value = first.partition("=")
    if option == "--name":
        name, words = (value, after.strip()) if value else _cut_at_space(after)
        if not name:
            raise NotebookUsageError("`--name` needs the name of a session after it")
    elif option.startswith("--") and difflib.get_close_matches(option, ["--name"], cutoff=0.7):
        raise NotebookUsageError(f"unknown argument {option!r}: did you mean --name?")
    if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'":
        words = words[1:-1]
    return argparse.Namespace(name=name, words=words)


def _cut_at_space(text: str) -> tuple[str, str]:
    name, _, words = text.strip().partition(" ")
    return name, words.strip()


def nearest(word: str, known: Sequence[str], least: float = 0.5) -> str:
    """Return ``: did you mean …?``, or the list of known words if none has `least` similarity."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=least)
    return f": did you mean {found[0]}?" if found else f": there is {', '.join(known)}"


def help_text(command: str = "") -> str:
    """Return the help of one command, or of all. Raises UsageError for an unknown one."""
    if command in {"", "cutegen", "%%cutegen"}:
        lines = [f"  %cutegen {name:<10} {parser.description}" for name, parser in PARSERS.items()]
        told = "each with more under `%cutegen help COMMAND`"
        return "\n".join([f"commands, {told}:", *lines, "", "above a cell:", "", CELL.format_help().rstrip()])
    _must_be_known(command)
    return PARSERS[command].format_help().rstrip()

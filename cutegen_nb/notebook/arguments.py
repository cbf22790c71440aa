"""The words of `%cutegen` and `%%cutegen`, with their help."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cutegen_nb.cli.authors import add_options as add_author
from cutegen_nb.cli.limits import add_options as add_limits
from cutegen_nb.core.session import Schedule
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.simulator.architectures import ARCHITECTURES, DEFAULT_ARCHITECTURE
from cutegen_nb.wiring import AUTHORS, BASELINES, DEFAULT_FOLDER, DEVICES, POLICIES

DEFAULT_ROUNDS = 6
CHOICES = {
    "--author": AUTHORS,
    "--device": DEVICES,
    "--policy": POLICIES,
    "--baseline": BASELINES,
    "--arch": ARCHITECTURES,
    "--schedule": tuple(item.value for item in Schedule),
}
"""Options with a closed list of values, for completion."""
CELL_WORDS = ("edit", "steer", "reject", "reply")
"""Words after ``%%cutegen`` that make the cell the text of a decision."""


class _Parser(argparse.ArgumentParser):
    """Raises one sentence where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        word = self.prog.split()[-1].lstrip("%")
        help_of = {"simulate": f"{self.prog}?", "cutegen": "%cutegen help"}.get(word, f"%cutegen help {word}")
        if message.startswith("the following arguments are required"):
            usage = " ".join(self.format_usage().removeprefix("usage:").split())
            message = f"something is missing: `{usage}`"
        raise NotebookUsageError(f"{message}; see `{help_of}`")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """With the nearest of what there is, where argparse only lists it."""
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(
                action,
                f"there is no {str(value)!r}{nearest(str(value), [str(one) for one in action.choices])}",
            )


def _rounds(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rounds: give a whole number from 1")
    return int(text)


def _ctas(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of CTAs: give a whole number from 1")
    return int(text)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")


def _parser(prog: str, summary: str, epilog: str = "") -> _Parser:
    return _Parser(
        prog=prog,
        description=summary,
        epilog=epilog,
        add_help=False,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    add_author(parser)
    parser.add_argument("--device", choices=DEVICES, default="auto", help="where kernels run (default: auto)")
    _add_going_on(parser, f"{DEFAULT_ROUNDS}, or as many as a session has that is taken up")
    parser.add_argument(
        "--baseline",
        action="append",
        choices=BASELINES,
        help="what a GPU's times are compared with; may be given twice (default: eager)",
    )
    parser.add_argument("--strict", action="store_true", help="fail the cell when no kernel was approved")
    add_limits(parser)


def _add_going_on(parser: argparse.ArgumentParser, rounds: str) -> None:
    parser.add_argument("--rounds", type=_rounds, metavar="K", help=f"rounds at most (default: {rounds})")
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        help="who decides: ask you, or auto (default: ask where somebody can answer)",
    )
    parser.add_argument(
        "--store", type=Path, metavar="DIR", help=f"the folder of the sessions ({DEFAULT_FOLDER})"
    )


def _cell_parser() -> _Parser:
    parser = _parser(
        "%%cutegen",
        "Refine the problem in this cell: a KernelBench file (Model, get_inputs, get_init_inputs), or a "
        "function\nand get_inputs. The session becomes a variable under its name.",
        "`%%cutegen edit`, `steer` and `reject` take the cell as the text of a decision,\n"
        "`%%cutegen reply` as the reply of a model to which you carried the prompt (--author manual).",
    )
    parser.add_argument("--name", help="name of the session and its variable (default: the function's name)")
    parser.add_argument(
        "--problem", metavar="FILE.py", help="read the problem from a file; the cell is ignored"
    )
    _add_running(parser)
    return parser


def _run_parser() -> _Parser:
    parser = _parser(
        "%cutegen run", "Refine the problem of a file.", "example: %cutegen run relu.py --rounds 4"
    )
    parser.add_argument("problem", metavar="FILE.py", help="as for the cell magic")
    parser.add_argument("--name", help="name of the session and its variable (default: the file's name)")
    _add_running(parser)
    return parser


def _resume_parser() -> _Parser:
    parser = _parser(
        "%cutegen resume",
        "Take up a stored session, after a kernel restart for instance.",
        "example: %cutegen resume gelu --rounds 8",
    )
    parser.add_argument("session", nargs="?", metavar="NAME", help="its name (default: the newest)")
    _add_going_on(parser, "as many as it had")
    return parser


def _plain(name: str, summary: str, words: str = "") -> _Parser:
    parser = _parser(f"%cutegen {name}", summary)
    parser.add_argument("--name", help="the session (default: the one started last)")
    if words:  # shown here, and read by `_wordy`
        parser.add_argument("words", nargs="*", metavar="WORDS", help=words)
    return parser


def _stored(name: str, summary: str) -> _Parser:
    parser = _of_kernel(name, summary, "the session (default: the one started last, else the newest stored)")
    parser.add_argument("--store", type=Path, metavar="DIR", help=f"its folder ({DEFAULT_FOLDER})")
    return parser


def _of_kernel(name: str, summary: str, what: str = "the session (default: the one started last)") -> _Parser:
    parser = _parser(f"%cutegen {name}", summary)
    parser.add_argument("session", nargs="?", metavar="NAME", help=what)
    parser.add_argument("--name", dest="named", metavar="NAME", help="the same as NAME alone")
    return parser


def _replay_parser() -> _Parser:
    parser = _parser("%cutegen replay", "Show a recorded session again: nobody is asked and nothing runs.")
    parser.add_argument("session", metavar="NAME", help="a stored session, or a .cutegen file")
    parser.add_argument("--store", type=Path, metavar="DIR", help=f"its folder ({DEFAULT_FOLDER})")
    return parser


def _make_parsers() -> dict[str, _Parser]:
    made = {
        "status": _stored("status", "Say what the session is doing, or what it waits for."),
        "approve": _plain("approve", "Send the prompt, or build on the revision.", "kept with the decision"),
        "reject": _plain("reject", "Do not build on the revision, and say why.", "why; the author is told"),
        "overrule": _plain(
            "overrule",
            "Build on a revision although the evidence speaks against it, and say why.",
            "why the evidence is wrong; kept with the verdict",
        ),
        "steer": _plain(
            "steer", "Ask something more: of this request, or of the next one.", "what; the author is told"
        ),
        "edit": _plain(
            "edit", "Put the prompt or the kernel into a new cell to edit, or take it from a file."
        ),
        "branch": _plain("branch", "Go on from another revision: %cutegen branch r1"),
        "merge": _plain(
            "merge", "Judge the changes of two revisions as one: %cutegen merge r3 r4:1,2 (of r4 two hunks)"
        ),
        "stop": _plain(
            "stop", "End the session now; what runs is killed, finished rounds are kept.", "why; kept with it"
        ),
        "wait": _plain("wait", "Wait in this cell until the session has ended or needs you."),
        "prompt": _plain(
            "prompt", "The prompt that waits, with a button that copies it; %%cutegen reply answers."
        ),
        "replay": _replay_parser(),
        "rounds": _stored("rounds", "The rounds as a DataFrame."),
        "diff": _plain("diff", "The change between two revisions, the last two or: %cutegen diff r0 r2"),
        "report": _stored("report", "Print the whole record."),
        "panel": _of_kernel("panel", "Show the panel of a session of this kernel again."),
        "export": _plain(
            "export",
            "Write .py, the best kernel, judged at tier C first; .html, the report; or .cutegen, everything.",
        ),
        "resume": _resume_parser(),
        "run": _run_parser(),
        "sessions": _parser(
            "%cutegen sessions", "List the stored sessions, or show how one's revisions came about."
        ),
        "doctor": _parser("%cutegen doctor", "Say what this machine offers and what will run where."),
        "help": _parser("%cutegen help", "Explain a command."),
    }
    made["edit"].add_argument("file", nargs="?", metavar="FILE", help="the new text (default: a new cell)")
    made["export"].add_argument("file", nargs="?", metavar="FILE", help="what is written, by its ending")
    made["export"].add_argument(
        "--unchecked", action="store_true", help="do not judge the kernel at tier C before writing it"
    )
    made["branch"].add_argument("revision", metavar="rN", help="one that passed")
    made["merge"].add_argument(
        "revisions",
        nargs=2,
        metavar="rN[:HUNK,…]",
        help="its hunks are numbered as in a diff from the revision that both came from",
    )
    made["diff"].add_argument("revisions", nargs="*", metavar="rN", help="the old one and the new one")
    made["wait"].add_argument("--timeout", type=_seconds, metavar="S", help="seconds at most")
    made["sessions"].add_argument("session", nargs="?", metavar="NAME", help="show its lineage")
    made["sessions"].add_argument(
        "--store", type=Path, metavar="DIR", help=f"their folder ({DEFAULT_FOLDER})"
    )
    made["help"].add_argument("command", nargs="?", metavar="COMMAND")
    return made


def _simulate_parser(prog: str, summary: str, epilog: str) -> _Parser:
    parser = _parser(prog, summary, epilog)
    parser.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        default=DEFAULT_ARCHITECTURE,
        help=f"what kernels are compiled for (default: {DEFAULT_ARCHITECTURE})",
    )
    parser.add_argument(
        "--max-ctas",
        type=_ctas,
        metavar="N",
        help="run N CTAs of each larger grid; results are then incomplete",
    )
    parser.add_argument("--deadline", type=_seconds, metavar="S", help="end the program after S seconds")
    parser.add_argument("--name", help="a variable for what was found: launches, findings, counters")
    parser.add_argument(
        "--strict", action="store_true", help="fail the cell when the program fails or a finding stands"
    )
    return parser


def _simulate_file_parser() -> _Parser:
    parser = _simulate_parser(
        "%simulate",
        "Run a program of a file on the simulator and show what its kernels did.",
        "example: %simulate gemm.py --mnk 256,256,64",
    )
    parser.add_argument("script", metavar="SCRIPT.py", help="the program; what follows it is for the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own")
    return parser


CELL = _cell_parser()
SIMULATE_CELL = _simulate_parser(
    "%%simulate",
    "Run this cell, a CuTe DSL program written for a GPU, on the simulator, and show what its kernels did.\n"
    "\nThe cell is a program of its own, in a process of its own: it sees no variable of the notebook and\n"
    "leaves none. torch.cuda looks available; tensors say cuda, and stay on the CPU. Launches are executed,\n"
    "checked and counted. There are no times: between CUDA events the program finds nan.",
    "`%simulate SCRIPT.py [its arguments]` does the same with a file.",
)
SIMULATE_FILE = _simulate_file_parser()
PARSERS = _make_parsers()
WORDY = ("reject", "overrule", "steer", "stop", "approve")
"""Commands whose rest is the person's own words, quotes and dashes included."""


def split_command(line: str) -> tuple[str, str]:
    """The command and what follows it. Raises UsageError, with the nearest, for an unknown one."""
    word, _, rest = line.strip().partition(" ")
    if not word:
        return "status", ""
    if word in {"-h", "--help"}:
        return "help", rest
    _must_be_known(word)
    return word, rest.strip()


def _must_be_known(word: str) -> None:
    """Raises UsageError, with the nearest or with the form that there is, for an unknown command."""
    if word in PARSERS:
        return
    if word == "reply":
        raise NotebookUsageError("the reply of a model is a cell: put `%%cutegen reply` above it")
    raise NotebookUsageError(f"there is no `%cutegen {word}`{nearest(word, list(PARSERS))}")


def parse_command(name: str, rest: str) -> argparse.Namespace:
    """The options of a line magic. Raises UsageError in a sentence."""
    if name in WORDY:
        return _wordy(rest)
    return _parsed(PARSERS[name], rest)


def parse_simulate(line: str, *, cell: bool) -> argparse.Namespace:
    """The options of ``%%simulate`` or ``%simulate``. Raises UsageError in a sentence."""
    return _parsed(SIMULATE_CELL if cell else SIMULATE_FILE, line)


def parse_cell(line: str) -> argparse.Namespace:
    """The options of a cell magic. Raises UsageError in a sentence."""
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
    """``[--name NAME] WORDS``; an apostrophe in them is no quotation mark."""
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


def nearest(word: str, known: Sequence[str]) -> str:
    """``: did you mean …?``, or nothing."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f": did you mean {found[0]}?" if found else f": there is {', '.join(known)}"


def help_text(command: str = "") -> str:
    """Help of one command, or of all."""
    if command in {"", "cutegen", "%%cutegen"}:
        lines = [f"  %cutegen {name:<9} {parser.description}" for name, parser in PARSERS.items()]
        told = "each with more under `%cutegen help COMMAND`"
        return "\n".join([f"commands, {told}:", *lines, "", "above a cell:", "", CELL.format_help().rstrip()])
    _must_be_known(command)
    return PARSERS[command].format_help().rstrip()

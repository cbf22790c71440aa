"""Options and operands of the commands, each stated once for the command line and the magics."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.library import Library, LibraryFamily, parse_library
from cutegen_nb.core.session import Schedule
from cutegen_nb.core.stage import Stage
from cutegen_nb.simulator.state.architectures import ARCHITECTURES, DEFAULT_ARCHITECTURE
from cutegen_nb.wiring import AUTHORS, BASELINES, DEFAULT_FOLDER, DEVICES, POLICIES

DEFAULT_ROUNDS = 6
"""Rounds of a chain when ``--rounds`` is not given."""
DEFAULT_EPOCHS = 4
"""Epochs of a population when ``--epochs`` is not given, as many as cuPilot's repository reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Option or operand: the words and settings of ``argparse``'s ``add_argument``."""

    words: tuple[str, ...]
    """Option strings, or the name of an operand."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``add_argument``."""
    group: tuple[str, str] | None = None
    """Title and description of the group in the help."""

    def but(self, **settings: Any) -> Argument:  # noqa: ANN401 - argparse's keyword arguments
        """Return the same argument with other settings."""
        return replace(self, settings={**self.settings, **settings})


def argument(*words: str, **settings: Any) -> Argument:  # noqa: ANN401 - argparse's keyword arguments
    """Make an argument from the parameters of ``add_argument``."""
    return Argument(words=words, settings=settings)


def add_arguments(parser: argparse.ArgumentParser, arguments: Sequence[Argument]) -> None:
    """Add the arguments to a parser, in order, those of one group under its title."""
    groups: dict[tuple[str, str], Any] = {}
    for item in arguments:
        place: Any = parser
        if item.group is not None:
            if item.group not in groups:
                groups[item.group] = parser.add_argument_group(*item.group)
            place = groups[item.group]
        place.add_argument(*item.words, **item.settings)


def nearest(word: str, known: Sequence[str]) -> str:
    """Return the known word nearest to `word`; empty where none is like it."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), "")


def _whole(what: str) -> Any:  # noqa: ANN401 - a type of argparse
    """Return an argparse type for whole numbers from 1; `what` names the number in the error message."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}: give a whole number from 1")
        return int(text)

    return parse


def _amount(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not an amount: give a number above 0")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (value := float(text)) < math.inf:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")


def _library(text: str) -> Library:
    try:
        return parse_library(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


JSON = argument("--json", action="store_true", help="print one JSON object instead of text")
DEVICE = argument("--device", choices=DEVICES, default="auto", help="where kernels run (default: auto)")
TARGET = argument(
    "--target",
    metavar="GPU",
    help="on the simulator, the GPU to estimate times for and to compile kernels for: H200, A100, RTX4090 … "
    "(default: estimates for this machine's GPU, else an H200; kernels compiled for sm_80)",
)
COMPILED_FOR = TARGET.but(
    help="the GPU that the simulator compiles for: H200, A100, RTX4090 … (default: sm_80)"
)
STORE = argument("--store", type=Path, metavar="DIR", help=f"the folder of the sessions ({DEFAULT_FOLDER})")
BASELINE = argument(
    "--baseline",
    action="append",
    choices=BASELINES,
    help="what a GPU's times are compared with; may be given twice (default: both)",
)
VERBOSE = argument(
    "--verbose",
    action="store_true",
    help="after the verdict everything behind it: every check, the counts, the evidence, the stages",
)
NO_HISTORY = argument(
    "--no-history",
    action="store_true",
    help="neither use nor extend what earlier sessions learnt: `strategies` lists it",
)
STRICT = argument("--strict", action="store_true", help="fail the cell when no kernel was approved")
PROMPTS = argument(
    "--prompts",
    type=Path,
    metavar="DIR",
    help="a folder of your own templates; the shipped one stands in for any that it lacks",
)
SESSION = argument("session", metavar="SESSION", help="a name that `cutegen-nb sessions` lists")
PROBLEM = argument("problem", metavar="PROBLEM.py", help="the reference")
OUTPUT = argument("-o", "--output", required=True, help="where to write it")
TIER = argument("--tier", choices=[tier.value for tier in Tier])
ROUNDS = argument("--rounds", type=_whole("a number of rounds"), metavar="K")
POLICY = argument("--policy", choices=POLICIES)
ARCHITECTURE = argument(
    "--arch",
    choices=ARCHITECTURES,
    default=DEFAULT_ARCHITECTURE,
    help=f"what kernels are compiled for (default: {DEFAULT_ARCHITECTURE})",
)
MAX_CTAS = argument(
    "--max-ctas",
    type=_whole("a number of CTAs"),
    metavar="N",
    help="run N CTAs of each larger grid: the first, the last and evenly spaced ones. Results are then "
    "incomplete, so that the program's own check of them may fail",
)
DEADLINE = argument(
    "--deadline", type=_seconds, metavar="S", help="end the program after S seconds (default: never)"
)
LIBRARY = argument(
    "--library",
    type=_library,
    default=(),
    metavar="PARTS",
    help=f"parts that PyTorch may compute beside the kernels, such as conv,matmul: "
    f"{', '.join(LibraryFamily)} (default: none)",
)
WORKERS = argument(
    "--workers",
    type=_whole("a number of workers"),
    default=1,
    metavar="W",
    help="evaluations at once: one a GPU, on the simulator one a CPU core at most (default: 1)",
)
RAY = argument(
    "--ray",
    metavar="ADDRESS",
    help="evaluate on a Ray cluster: auto, local or host:port (needs cutegen-nb[cluster])",
)
TIMEOUT = argument("--timeout", type=_seconds, metavar="S", help="seconds at most")

AUTHOR = (
    argument("--author", choices=AUTHORS, default="offline", help="who writes (default: offline)"),
    argument("--model", help="the model's name, for --author openai (or CUTEGEN_MODEL)"),
    argument("--base-url", metavar="URL", help="its server (or OPENAI_BASE_URL)"),
    argument(
        "--profile",
        metavar="NAME",
        help="a model and its server by a name of the config file: `cutegen-nb profiles` lists them",
    ),
)
"""Options that select the author, the model and its server."""

_BUDGETS = (
    "budgets besides --rounds",
    (
        "The round that reaches a budget is still finished and stored; then the session ends. Run it again "
        "with a larger budget to continue."
    ),
)
_POPULATION = (
    "a population instead of a chain",
    "Each epoch extends the kernels, crosses their strategies, and keeps the best and the different ones.",
)
_NUMBER = _whole("a number")
LIMITS = (
    Argument(
        words=("--tokens",),
        settings={"type": _NUMBER, "metavar": "N", "help": "tokens at most, asked and answered"},
        group=_BUDGETS,
    ),
    Argument(
        words=("--dollars",),
        settings={
            "type": _amount,
            "metavar": "X",
            "help": "US dollars at most, at the profile's price; without a price it has no effect",
        },
        group=_BUDGETS,
    ),
    Argument(
        words=("--minutes",),
        settings={
            "type": _amount,
            "metavar": "M",
            "help": "minutes at most that the rounds take, gates included",
        },
        group=_BUDGETS,
    ),
    Argument(
        words=("--gpu-minutes",),
        settings={
            "type": _amount,
            "metavar": "M",
            "help": "minutes at most that evaluations hold a GPU; none is interrupted",
        },
        group=_BUDGETS,
    ),
    Argument(
        words=("--person-minutes",),
        settings={
            "type": _amount,
            "metavar": "M",
            "help": "minutes at most that gates wait for a person; an open gate goes on waiting",
        },
        group=_BUDGETS,
    ),
    argument(
        "--schedule",
        choices=[item.value for item in Schedule],
        help="when the author sees counters by line. plateau: after rounds without a gain; paper: at "
        "CuTeGen's fixed depth; start: from the first passing kernel on; never (default: plateau)",
    ),
    argument(
        "--plateau",
        type=_NUMBER,
        metavar="K",
        help="rounds without a gain that are a plateau (default: 2); --schedule paper has none",
    ),
    Argument(
        words=("--population",),
        settings={
            "type": _NUMBER,
            "metavar": "N",
            "help": "kernels that evolve side by side (default: 1, a chain)",
        },
        group=_POPULATION,
    ),
    Argument(
        words=("--epochs",),
        settings={
            "type": _NUMBER,
            "metavar": "E",
            "help": f"epochs of a population at most (default: {DEFAULT_EPOCHS})",
        },
        group=_POPULATION,
    ),
    PROMPTS,
)
"""Options of the budget (read by `budget_of`), the plan (read by `plan_of`) and the templates."""

_TOTALS = (
    "budgets over the campaign",
    (
        "Checked before each problem; a problem gets what is left of the budget. Run the campaign again with "
        "a larger budget to continue."
    ),
)


def _total(word: str, metavar: str, kind: Callable[[str], float], help_text: str) -> Argument:
    settings = {"type": kind, "metavar": metavar, "help": help_text}
    return Argument(words=(word,), settings=settings, group=_TOTALS)


TOTALS = (
    _total("--total-tokens", "N", _NUMBER, "tokens at most over all problems and variants"),
    _total("--total-dollars", "X", _amount, "US dollars at most over all"),
    _total("--total-minutes", "M", _amount, "minutes at most that all rounds take"),
    _total("--total-gpu-minutes", "M", _amount, "minutes at most that evaluations hold a GPU"),
)
"""Options of the budgets over a campaign (read by `campaign_budget_of`)."""

REQUESTS = {
    "generate": Stage.CORRECT,
    "optimise": Stage.STRUCTURE,
    "profile": Stage.PROFILE,
    "tune": Stage.TUNE,
}
"""Stage of each request that ``prompt --stage`` accepts."""
FAILURE_REQUESTS = ("diagnose", "repair")
"""Requests that follow a failed candidate; ``prompt --stage`` accepts them too."""

CHOICES: dict[str, tuple[str, ...]] = {
    item.words[0]: tuple(item.settings["choices"])
    for item in (*AUTHOR, *LIMITS, DEVICE, POLICY, BASELINE, ARCHITECTURE)
    if "choices" in item.settings
}
"""Options with a closed list of values, for completion."""

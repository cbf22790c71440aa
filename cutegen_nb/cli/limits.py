"""Options on how far a session goes: budgets and the schedule of its stages."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

from cutegen_nb.core.session import Budget, Plan, Schedule
from cutegen_nb.loop.session import Replan

_MINUTE_S = 60
_BUDGETS = (
    "Looked at before each round: the round that reaches one is finished, stored and the last. "
    "The same command with a larger one goes on."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what `budget_of` and `plan_of` read, and the folder of a person's own prompts."""
    budgets = parser.add_argument_group("budgets besides --rounds", _BUDGETS)
    budgets.add_argument("--tokens", type=_whole, metavar="N", help="tokens at most, asked and answered")
    budgets.add_argument(
        "--dollars",
        type=_positive,
        metavar="X",
        help="US dollars at most, by the profile's price; without one nothing is counted",
    )
    budgets.add_argument(
        "--minutes", type=_positive, metavar="M", help="minutes at most that the rounds take, gates included"
    )
    budgets.add_argument(
        "--gpu-minutes",
        type=_positive,
        metavar="M",
        help="minutes at most that evaluations hold a GPU; none is interrupted. The simulator counts none",
    )
    budgets.add_argument(
        "--person-minutes",
        type=_positive,
        metavar="M",
        help="minutes at most that gates wait for a person; an open gate goes on waiting",
    )
    parser.add_argument(
        "--schedule",
        choices=[item.value for item in Schedule],
        help="what ends a stage: rounds without a gain (plateau), or CuTeGen's fixed depth (paper)",
    )
    parser.add_argument(
        "--plateau",
        type=_whole,
        metavar="K",
        help="rounds without a gain that are a plateau (default: 2); --schedule paper has none",
    )
    add_prompts(parser)


def add_prompts(parser: argparse.ArgumentParser) -> None:
    """Add the folder of a person's own prompts."""
    parser.add_argument(
        "--prompts", type=Path, metavar="DIR", help="your own templates; what is not there is the shipped one"
    )


def budget_of(options: argparse.Namespace, rounds: int) -> Budget:
    """The budget that the options ask for, `rounds` at most."""
    given = vars(options)
    return Budget(
        rounds=rounds,
        tokens=given.get("tokens"),
        dollars=given.get("dollars"),
        wall_s=_seconds(given.get("minutes")),
        gpu_s=_seconds(given.get("gpu_minutes")),
        person_s=_seconds(given.get("person_minutes")),
    )


def plan_of(options: argparse.Namespace) -> Replan:
    """What the options change of a session's plan; what they say nothing of stays as it is stored."""
    given = vars(options)
    schedule, plateau = given.get("schedule"), given.get("plateau")

    def changed(plan: Plan) -> Plan:
        return replace(
            plan,
            schedule=Schedule(schedule) if schedule else plan.schedule,
            plateau_rounds=plateau or plan.plateau_rounds,
        )

    return changed


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * _MINUTE_S


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        message = f"{text!r} is no number: give a whole number from 1"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        message = f"{text!r} is no amount: give a number above 0"
        raise argparse.ArgumentTypeError(message)
    return value

"""Options on how far a session goes: budgets and the schedule of its stages."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from cutegen_nb.core.session import Budget, Plan, Schedule

_MINUTE_S = 60


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what `budget_of` and `plan_of` read, and the folder of a person's own prompts."""
    parser.add_argument("--tokens", type=_whole, metavar="N", help="tokens at most, asked and answered")
    parser.add_argument(
        "--dollars",
        type=_positive,
        metavar="X",
        help="US dollars at most, by the profile's price; without one nothing is counted",
    )
    parser.add_argument("--minutes", type=_positive, metavar="M", help="minutes at most that the rounds take")
    parser.add_argument(
        "--gpu-minutes", type=_positive, metavar="M", help="minutes at most that evaluations hold a GPU"
    )
    parser.add_argument(
        "--person-minutes", type=_positive, metavar="M", help="minutes at most that gates wait for a person"
    )
    parser.add_argument(
        "--schedule",
        choices=[item.value for item in Schedule],
        help="what ends a stage: rounds without a gain (plateau), or CuTeGen's fixed depth (paper)",
    )
    parser.add_argument(
        "--plateau", type=_whole, metavar="K", help="rounds without a gain that are a plateau (default: 2)"
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


def plan_of(options: argparse.Namespace) -> Plan | None:
    """The plan that the options ask for; None where they say nothing of it."""
    given = vars(options)
    schedule, plateau = given.get("schedule"), given.get("plateau")
    if schedule is None and plateau is None:
        return None
    return Plan(schedule=Schedule(schedule or Schedule.PLATEAU), plateau_rounds=plateau or 2)


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

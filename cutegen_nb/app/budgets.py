"""Budget and plan of a session, read from command options."""

from __future__ import annotations

import argparse
from dataclasses import replace

from cutegen_nb.app.arguments import DEFAULT_EPOCHS, DEFAULT_ROUNDS
from cutegen_nb.core.search.campaign import CampaignBudget
from cutegen_nb.core.session import Budget, Plan, Schedule
from cutegen_nb.loop.session import Replan

_MINUTE_S = 60
_FIRST_ROUNDS = 3
"""Rounds in which a population may find its first kernel."""


def budget_of(options: argparse.Namespace, rounds: int | None = None) -> Budget:
    """Return the budget that the options ask for; minutes become seconds.

    `rounds` are the most rounds. Without them a chain has `DEFAULT_ROUNDS`, and a population as many as its
    epochs need and a few to find a first kernel.
    """
    given = vars(options)
    population = given.get("population") or 1
    epochs = (given.get("epochs") or DEFAULT_EPOCHS) if population > 1 else None
    if rounds is None:
        rounds = DEFAULT_ROUNDS if epochs is None else population * epochs + _FIRST_ROUNDS
    return Budget(
        rounds=rounds,
        tokens=given.get("tokens"),
        dollars=given.get("dollars"),
        wall_s=_seconds(given.get("minutes")),
        gpu_s=_seconds(given.get("gpu_minutes")),
        person_s=_seconds(given.get("person_minutes")),
        epochs=epochs,
    )


def campaign_budget_of(options: argparse.Namespace) -> CampaignBudget:
    """Return the budget over a campaign that the options ask for; minutes become seconds."""
    return CampaignBudget(
        tokens=options.total_tokens,
        dollars=options.total_dollars,
        wall_s=_seconds(options.total_minutes),
        gpu_s=_seconds(options.total_gpu_minutes),
    )


def plan_of(options: argparse.Namespace) -> Replan:
    """Return a function that applies ``--schedule``, ``--plateau`` and ``--population`` to a plan.

    A part that the options do not set keeps the plan's own value.
    """
    given = vars(options)
    schedule, plateau = given.get("schedule"), given.get("plateau")

    def changed(plan: Plan) -> Plan:
        return replace(
            plan,
            schedule=Schedule(schedule) if schedule else plan.schedule,
            plateau_rounds=plateau or plan.plateau_rounds,
            population=given.get("population") or plan.population,
        )

    return changed


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * _MINUTE_S

"""Many further calls of a candidate, each compared: races and state kept between calls show."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.catalog.check import NO_MEMORY
from cutegen_nb.evaluator.catalog.work import MANY_CALLS
from cutegen_nb.evaluator.probes.probe import Expected, Probe, decide, expected_for, probe, unjudged
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_CALLS_ON_GPU = {Tier.B: 24, Tier.C: 120}
"""Calls by tier on a GPU."""
_CALLS_ON_SIMULATOR = {Tier.B: 8, Tier.C: 40}
"""Calls by tier on the simulator, which finds a race in the first one: only kept state is left to show."""
_LEAN = 2
"""Calls if calls are dear, in any tier."""
_Answered = tuple[list[Any], Expected]
"""Inputs with their right answers."""


def many_calls(trial: Trial) -> Ending | None:
    """Call the candidate many times, each time on one of two sets of inputs by secret choice, and compare.

    Where calls are dear each takes inputs of its own, so that memory holds one set at a time.
    """
    state = trial.state
    sets: list[_Answered] = []
    usual = _CALLS_ON_GPU if trial.ground.simulation is None else _CALLS_ON_SIMULATOR
    wanted, done, why = _LEAN if state.lean else usual[trial.task.tier], 0, "no time left"
    while done < wanted and state.time_left(MANY_CALLS):
        if state.lean:
            sets.clear()
        while len(sets) < (1 if state.lean else 2):
            made = _answered(trial)
            if isinstance(made, str):
                state.skipped(MANY_CALLS, made)
                return None
            sets.append(made)
        found = probe(trial, *secrets.choice(sets), f"call {done + 6}")
        if unjudged(found):
            why = "no time left" if found.hurried else NO_MEMORY
            break
        if found.ending is not None and _about_the_work(found):
            return decide(trial, MANY_CALLS, found, f"After {done} more calls")
        done += 1
    if done == 0:
        state.skipped(MANY_CALLS, why)
        return None
    state.ran(MANY_CALLS, f"{done} calls" + ("" if done == wanted else f" of {wanted}: {why}"))
    return None


def _answered(trial: Trial) -> _Answered | str:
    """Draw inputs and compute their right answers; return the reason where there are none."""
    drawn = trial.draw(trial.secret_seed())
    expected = expected_for(trial.reference, drawn, trial.task.longest_sum, own=True)
    if isinstance(expected, str):
        return expected
    # The problem draws these inputs itself: the tolerances found for the problem hold.
    return drawn, replace(expected, gates=trial.state.gates)


def _about_the_work(found: Probe) -> bool:
    # A flag alone does not end the trial; a deciding finding does.
    return any(item.severity is Severity.DECIDES for item in found.evidence.findings)

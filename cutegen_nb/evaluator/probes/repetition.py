"""Many further calls of a candidate, each compared: races and state kept between calls show."""

from __future__ import annotations

import secrets
from dataclasses import replace

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.catalog.work import MANY_CALLS
from cutegen_nb.evaluator.probes.probe import Probe, decide, expected_for, probe
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_CALLS = {Tier.B: 24, Tier.C: 120}
"""Calls by tier."""
_LEAN = 2
"""Calls if calls are dear, in any tier."""


def many_calls(trial: Trial) -> Ending | None:
    """Call the candidate many times, each time on one of two sets of inputs by secret choice, and compare."""
    state = trial.state
    sets = []
    for _ in range(2):
        drawn = trial.draw(trial.secret_seed())
        expected = expected_for(trial.reference, drawn, trial.task.longest_sum, own=True)
        if isinstance(expected, str):
            state.skipped(MANY_CALLS, expected)
            return None
        # The problem draws these inputs itself: the tolerances found for the problem hold.
        sets.append((drawn, replace(expected, gates=state.gates)))
    wanted, done = _LEAN if state.lean else _CALLS[trial.task.tier], 0
    while done < wanted and state.time_left(MANY_CALLS):
        found = probe(trial, *secrets.choice(sets), f"call {done + 6}")
        if found.hurried:
            break
        if found.ending is not None and _about_the_work(found):
            return decide(trial, MANY_CALLS, found, f"After {done} more calls")
        done += 1
    if done == 0:
        state.skipped(MANY_CALLS, "no time left")
        return None
    state.ran(MANY_CALLS, f"{done} calls" + ("" if done == wanted else f" of {wanted}: no time left"))
    return None


def _about_the_work(found: Probe) -> bool:
    # Flags alone end nothing: a deciding finding is needed.
    return any(item.severity is Severity.DECIDES for item in found.evidence.findings)

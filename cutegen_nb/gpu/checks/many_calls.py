"""The call again and again: what is right once must be right always."""

from __future__ import annotations

import secrets
from dataclasses import replace

from cutegen_nb.core.evaluation import Severity, Tier
from cutegen_nb.gpu.checks.probing import Probe, decide, expect, probe
from cutegen_nb.gpu.checks.registry.work import MANY_CALLS
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_CALLS = {Tier.B: 24, Tier.C: 120}


def many_calls(trial: Trial) -> Ending | None:
    """Call the candidate many times, on one of two sets of inputs by secret choice, and compare each."""
    state = trial.state
    sets = []
    for _ in range(2):
        drawn = trial.draw(trial.secret_seed())
        expected = expect(trial.reference, drawn, trial.task.longest_sum, own=True)
        if isinstance(expected, str):
            state.skipped(MANY_CALLS, expected)
            return None
        # The problem's own gates hold here; only what they lack comes from these inputs.
        sets.append((drawn, replace(expected, gates=state.gates)))
    wanted, done = _CALLS[trial.task.tier], 0
    while done < wanted and state.time_left():
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
    return any(item.severity is Severity.DECIDES for item in found.evidence.findings)

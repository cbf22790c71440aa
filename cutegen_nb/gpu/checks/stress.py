"""Inputs of another scale, sign and sparsity: what computes the function is right on these as well."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.gpu import correctness
from cutegen_nb.gpu.checks.probing import decide, expect, flag, probe, unjudged
from cutegen_nb.gpu.checks.registry.function import STRESS
from cutegen_nb.gpu.checks.variants import VARIANTS, Variant, varied
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_GRACE_S = 5.0
"""Beyond the time of the closer checks, for the first two kinds of inputs, which show most."""
_CALLS_LEFT = 24
"""What only raises a flag is tried where time for so many calls is left: the checks after this one decide."""


def stress(trial: Trial) -> Ending | None:
    """WRONG_VALUES, or the candidate's own fault, on inputs that the reference handles; the first decides.

    What no problem draws (infinities, denormal numbers, 1e18) only raises a flag.
    """
    used: list[str] = []
    left_out: list[str] = []
    for variant in VARIANTS:
        calls = 2 if variant.decides else _CALLS_LEFT
        if not trial.state.time_left(calls=calls, grace_s=_GRACE_S if variant in VARIANTS[:2] else 0.0):
            left_out.append(f"{variant.name}: no time left")
            continue
        reason, ending = _one(trial, variant)
        if ending is not None:
            return ending
        (left_out if reason else used).append(f"{variant.name}: {reason}" if reason else variant.name)
    _note(trial, used, left_out)
    return None


def _one(trial: Trial, variant: Variant) -> tuple[str, Ending | None]:
    """Why the variant was not used, or its ending."""
    usual = trial.draw(trial.secret_seed())
    drawn = varied(usual, variant.change)
    if drawn is None:
        return "no input may take other values", None
    terms = float(trial.task.longest_sum)
    expected = expect(
        trial.reference,
        drawn,
        correctness.if_terms_repeat(terms) if variant.repeats else terms,
        usual=usual if variant.shrinks else None,
        units=correctness.units_lost(terms) if variant.alike else 1.0,
    )
    if isinstance(expected, str):
        return expected, None
    roomy = tuple(
        replace(gate, element=gate.element * variant.room, l2=gate.l2 * variant.room)
        for gate in expected.gates
    )
    found = probe(trial, drawn, replace(expected, gates=roomy), "a call")
    if found.ending is None:
        return "", None
    if unjudged(found):
        return found.ending[1], None
    words = f"With inputs {variant.name}{variant.hint}"
    if variant.decides:
        return "", decide(trial, STRESS, found, words)
    flag(trial, STRESS, found, variant.flag, words)
    return "", None


def _note(trial: Trial, used: list[str], left_out: list[str]) -> None:
    state = trial.state
    note = "; ".join(used)
    reasons = {item.partition(": ")[2] for item in left_out}
    if not used and len(reasons) == 1:
        note = reasons.pop()
    elif left_out:
        note += f"{'; ' if note else ''}not used: {'; '.join(left_out)}"
    if not used:
        state.skipped(STRESS, note or "no input may take other values")
    elif STRESS.name not in state.results:
        state.ran(STRESS, note)

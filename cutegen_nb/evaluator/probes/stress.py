"""Stress inputs of another scale, sign and sparsity, on which a kernel for the function is right as well."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.evaluator.catalog.correctness import STRESS
from cutegen_nb.evaluator.probes.probe import decide, expected_for, flag, probe, unjudged
from cutegen_nb.evaluator.problem.input_variants import VARIANTS, InputVariant, varied
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_ROOM = 4.0
"""Factor on the tolerances of inputs that only raise a flag: rounding there differs from one order of sums to
another."""
_LEAN = 3
"""Kinds of inputs if calls are dear; those that show most come first."""


def stress(trial: Trial) -> Ending | None:
    """Run the candidate on each kind of stress inputs that the reference handles; the first failure decides.

    Kinds that no problem draws (infinities, denormal numbers, 1e18) only raise a flag.
    """
    used: list[str] = []
    left_out: list[str] = []
    for variant in VARIANTS:
        if trial.state.lean and len(used) == _LEAN:
            break
        if not trial.state.time_left(STRESS, decides=variant.decides):
            left_out.append(f"{variant.name}: no time left")
            continue
        reason, ending = _one(trial, variant)
        if ending is not None:
            return ending
        (left_out if reason else used).append(f"{variant.name}: {reason}" if reason else variant.name)
    _note(trial, used, left_out)
    return None


def _one(trial: Trial, variant: InputVariant) -> tuple[str, Ending | None]:
    """Run one kind of inputs; return the reason if it was not used (else empty), and the ending."""
    usual = trial.draw(trial.secret_seed())
    drawn = varied(usual, variant.change)
    if drawn is None:
        return "no input may take other values", None
    expected = expected_for(
        trial.reference,
        drawn,
        trial.task.longest_sum,
        usual=usual if variant.shrinks else None,
        any_order=variant.decides,
    )
    if isinstance(expected, str):
        return expected, None
    if not variant.decides:
        # A constant factor here; a kind that decides allows the loss of any order of additions instead.
        gates = tuple(
            replace(gate, element=_ROOM * gate.element, l2=_ROOM * gate.l2) for gate in expected.gates
        )
        expected = replace(expected, gates=gates)
    found = probe(trial, drawn, expected, "a call")
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

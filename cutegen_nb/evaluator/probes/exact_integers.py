"""Exact integer inputs: products and sums of integers, compared bit for bit.

The integers have one bit more than TF32 holds, so that products in TF32 show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from cutegen_nb.evaluator.catalog.correctness import EXACT
from cutegen_nb.evaluator.probes.probe import Expected, decide, expected_for, probe, unjudged
from cutegen_nb.evaluator.problem.input_variants import may_vary, small_integers, wide_integers
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_CHUNK = 1 << 24
"""Elements compared at a time, to bound the memory of their float64 copies."""


def exact_integers(trial: Trial) -> Ending | None:
    """Run the candidate on integers; WRONG_VALUES if a result that float32 holds exactly differs at all.

    One input at a time holds wide integers and the others hold -1, 0 and 1. Partial sums are integers, which
    are exact in any order as long as they stay below 2**24. Only sets on which the reference itself agrees
    with the oracle are used. At most four inputs have their turn.
    """
    if not trial.task.exact:
        trial.state.skipped(EXACT, "the problem does more than multiply, add and choose")
        return None
    used, reason = 0, "no input may take other values"
    for turn in range(4):
        if not trial.state.time_left(EXACT):
            reason = "no time left"
            break
        drawn = _integers(trial.draw(trial.secret_seed()), turn)
        if drawn is None:
            break
        expected = _exact(expected_for(trial.reference, drawn, trial.task.longest_sum))
        if isinstance(expected, str):
            reason = expected
            continue
        found = probe(trial, drawn, expected, "a call")
        if found.ending is not None and not unjudged(found):
            return decide(trial, EXACT, found, "With integers, whose products are exact")
        used += 1
    if used:
        trial.state.ran(EXACT, f"{used} sets of integers, bit for bit")
    else:
        trial.state.skipped(EXACT, reason)
    return None


def _integers(drawn: Sequence[Any], turn: int) -> list[Any] | None:
    """Return the inputs as integers, free input number `turn` wide; None if there are fewer free inputs."""
    free = [index for index, item in enumerate(drawn) if may_vary(item)]
    if turn >= len(free):
        return None
    changes: dict[int, Callable[[torch.Tensor], torch.Tensor]] = dict.fromkeys(free, small_integers)
    # A product of a wide integer with -1, 0 or 1 is exact; TF32 rounds the wide one to 11 bits.
    changes[free[turn]] = wide_integers
    return [changes[index](item) if index in changes else item for index, item in enumerate(drawn)]


def _exact(expected: Expected | str) -> Expected | str:
    """Set the tolerances to zero if the reference itself is exact; else return the reason."""
    if isinstance(expected, str):
        return expected
    for want, true in zip(expected.answers.wanted, expected.answers.truth, strict=True):
        if true is None or not _is_exact(want, true):
            return "the reference is not exact on integers"
    gates = tuple(replace(gate, element=0.0, l2=0.0) for gate in expected.gates)
    return replace(expected, gates=gates)


def _is_exact(want: torch.Tensor, true: torch.Tensor) -> bool:
    if true.is_complex() or want.is_complex():
        return False
    # An answer that is no integer (a mean, say) may have been rounded: no order of operations is exact then.
    pairs = zip(want.reshape(-1).split(_CHUNK), true.reshape(-1).split(_CHUNK), strict=True)
    return all(
        bool((one.double() == other.double()).all())
        and (not other.is_floating_point() or bool((other == other.round()).all()))
        for one, other in pairs
    )

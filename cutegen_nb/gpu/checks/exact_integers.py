"""Products of integers are exact: one more bit than TF32 holds, and no rounding to hide behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from cutegen_nb.gpu.checks.probing import Expected, decide, expect, probe, unjudged
from cutegen_nb.gpu.checks.registry.function import EXACT
from cutegen_nb.gpu.checks.variants import is_free, small_integers, wide_integers
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_GRACE_S = 10.0
"""Beyond the time of the closer checks: no other shows a product's precision."""


def exact_integers(trial: Trial) -> Ending | None:
    """WRONG_VALUES where an integer result that float32 holds exactly comes out as anything else.

    One input at a time has wide integers and the others have -1, 0 and 1, so that every partial sum is
    exact in any order, and so in any honest kernel.
    """
    if not trial.task.exact:
        trial.state.skipped(EXACT, "the problem does more than multiply, add and choose")
        return None
    used, reason = 0, "no input may take other values"
    for turn in range(4):
        if not trial.state.time_left(calls=2, grace_s=_GRACE_S):
            reason = "no time left"
            break
        drawn = _integers(trial.draw(trial.secret_seed()), turn)
        if drawn is None:
            break
        expected = _exact(expect(trial.reference, drawn, trial.task.longest_sum))
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
    """The inputs as integers, the free one of number `turn` wide; None when there is none of that number."""
    free = [index for index, item in enumerate(drawn) if is_free(item)]
    if turn >= len(free):
        return None
    changes: dict[int, Callable[[torch.Tensor], torch.Tensor]] = dict.fromkeys(free, small_integers)
    changes[free[turn]] = wide_integers
    return [changes[index](item) if index in changes else item for index, item in enumerate(drawn)]


def _exact(expected: Expected | str) -> Expected | str:
    """The same with gates of zero, where the reference itself is exact; else the reason."""
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
    whole = not true.is_floating_point() or bool((true == true.round()).all())
    return whole and bool((want.double() == true.double()).all())

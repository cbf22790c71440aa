"""Which of several equal elements is named? PyTorch's argmax and its like name the first.

Numbers drawn at random are never equal, so that a reduction which prefers its own lane's element passes every
other check.  Asked only where the reference defines it: a sort may leave equal elements in any order.
"""

from __future__ import annotations

from typing import Any

import torch

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.gpu.checks.registry.function import TIES
from cutegen_nb.gpu.checks.variants import ROUNDED, varied
from cutegen_nb.gpu.comparing import cloned, guarded, tensors_of
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.interception import Operations
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_NAMES_THE_FIRST = frozenset({"argmax", "argmin", "max", "min"})
_IN_ANY_ORDER = frozenset({"argsort", "kthvalue", "median", "mode", "multinomial", "sort", "topk"})
_REFUSES = (RuntimeError, TypeError, ValueError, IndexError)


def ties(trial: Trial) -> Ending | None:
    """A flag where the candidate names another of several equal elements than the reference."""
    if not trial.state.time_left(calls=2):
        trial.state.skipped(TIES, "no time left")
        return None
    drawn = varied(trial.draw(trial.secret_seed()), ROUNDED.change)
    wanted = None if drawn is None else _places(trial, drawn)
    if drawn is None or wanted is None:
        trial.state.skipped(TIES, "the answer names no places, or any of several equal ones will do")
        return None
    try:
        leaves = trial.caller(guarded(drawn)).leaves
    except CandidateFault as fault:
        trial.state.skipped(TIES, f"it does not run on such inputs ({fault.finding.message[:100]})")
        return None
    trial.state.ran(TIES)
    for position, (got, want) in enumerate(zip(leaves, wanted, strict=False)):
        if want.is_floating_point() or not isinstance(got, torch.Tensor) or got.shape != want.shape:
            continue
        wrong = int((got != want).sum())
        if wrong:
            message = (
                f"With inputs {ROUNDED.name}, {wrong} of {want.numel()} elements of output {position} name "
                "another place than the reference: of several equal elements PyTorch names the first. When "
                "two partial results are equal, keep the smaller index."
            )
            finding = Finding(kind="another-of-equals", message=message, severity=Severity.FLAG)
            trial.state.flag(TIES, finding)
            break
    return None


def _places(trial: Trial, drawn: list[Any]) -> tuple[torch.Tensor, ...] | None:
    """What the reference gives, where it names places and which one is defined."""
    try:
        with Operations() as operations:
            wanted = tensors_of(trial.reference(*cloned(drawn)))
    except _REFUSES:
        return None
    named = any(not item.is_floating_point() and item.dtype is not torch.bool for item in wanted)
    defined = operations.seen & _NAMES_THE_FIRST and not operations.seen & _IN_ANY_ORDER
    return wanted if named and defined else None

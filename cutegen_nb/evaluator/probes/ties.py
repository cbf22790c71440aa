"""Ties: of several equal elements, PyTorch's argmax, argmin, max and min name the first.

Numbers drawn at random are hardly ever equal, so that a reduction that prefers its own lane's element passes
every other check. The check runs only if the reference defines the order: a sort may leave ties in any order.
"""

from __future__ import annotations

from typing import Any

import torch

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import TIES
from cutegen_nb.evaluator.observe.dispatch_watch import OperationNames
from cutegen_nb.evaluator.problem.input_variants import ROUNDED, varied
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import cloned, guarded, tensors_of
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_NAMES_THE_FIRST = frozenset({"argmax", "argmin", "max", "min"})
"""PyTorch operations that return the first index of a tie."""
_IN_ANY_ORDER = frozenset({"argsort", "kthvalue", "median", "mode", "multinomial", "sort", "topk"})
"""PyTorch operations that return indices in an order that ties leave open."""
_REFUSES = (RuntimeError, TypeError, ValueError, IndexError)
"""Errors with which a reference refuses inputs with ties; the check is skipped then."""


def ties(trial: Trial) -> Ending | None:
    """Flag a candidate whose integer outputs differ from the reference's on inputs with many ties."""
    if not trial.state.time_left(TIES, decides=False):
        trial.state.skipped(TIES, "no time left")
        return None
    drawn = varied(trial.draw(trial.secret_seed()), ROUNDED.change)
    wanted = None if drawn is None else _places(trial, drawn)
    if drawn is None or wanted is None:
        trial.state.skipped(TIES, "no output holds indices, or ties may come in any order")
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
        # Values are the same whichever of the equal elements is named; indices differ.
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
    """Return the reference's outputs, if some hold indices and ties have a defined order; else None."""
    try:
        with OperationNames() as operations:
            wanted = tensors_of(trial.reference(*cloned(drawn)))
    except _REFUSES:
        return None
    named = any(not item.is_floating_point() and item.dtype is not torch.bool for item in wanted)
    defined = operations.seen & _NAMES_THE_FIRST and not operations.seen & _IN_ANY_ORDER
    return wanted if named and defined else None

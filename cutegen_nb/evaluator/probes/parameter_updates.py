"""Parameters that change between calls, and buffers that the reference changes itself.

A candidate that packs or multiplies its weights once and keeps the result gives stale answers after the
weights are loaded or trained. For inference that may be meant, so that the check only raises flags.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import STATE
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.probes.probe import expected_for, probe
from cutegen_nb.evaluator.problem.input_variants import may_vary
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import cloned, tensors_of
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_WRONG = Judged(verdict=Verdict.WRONG_VALUES)
"""Outcome of a probe with wrong values."""
Pair = tuple[str, torch.Tensor, torch.Tensor]
"""Name of a parameter or buffer, the reference's tensor and the candidate's."""
Copies = list[tuple[torch.Tensor, torch.Tensor]]
"""Copies of the reference's tensor and of the candidate's, one pair of tensors for each `Pair`."""


def state(trial: Trial) -> Ending | None:
    """Flag a candidate that ignores changed parameters, or leaves buffers that the reference updates.

    Returns None always: nothing here decides.
    """
    if not isinstance(trial.candidate, torch.nn.Module) or not trial.reference.state_dict():
        trial.state.skipped(STATE, "the problem has no parameters")
        return None
    if not trial.state.time_left(STATE, decides=False):
        trial.state.skipped(STATE, "no time left")
        return None
    own = trial.candidate.state_dict()
    parameters = _pairs(dict(trial.reference.named_parameters()), own)
    drawn = trial.draw(trial.secret_seed())
    _buffers(trial, drawn, own)
    if any(may_vary(theirs) for _, theirs, _ in parameters):
        _parameters(trial, drawn, parameters)
    if STATE.name not in trial.state.results:
        names = (
            f"{len(parameters)} parameters changed" if parameters else "no parameter by the reference's name"
        )
        trial.state.ran(STATE, names)
    return None


def _pairs(theirs: dict[str, torch.Tensor], own: dict[str, torch.Tensor]) -> list[Pair]:
    return [
        (name, item, own[name])
        for name, item in theirs.items()
        if name in own and own[name].shape == item.shape
    ]


def _parameters(trial: Trial, drawn: list[Any], pairs: list[Pair]) -> None:
    """Scale the free parameters at random, in place and in both models, for one call; flag wrong values."""
    before = _copies(pairs)
    old = tensors_of(trial.reference(*cloned(drawn)))
    try:
        with torch.no_grad():
            for _, theirs, ours in pairs:
                if may_vary(theirs):
                    # Factors from 0.5 to 1.5 change each element and keep zeros, signs and the scale.
                    theirs.mul_(torch.empty_like(theirs).uniform_(0.5, 1.5))
                    ours.copy_(theirs)
        expected = expected_for(trial.reference, drawn, trial.task.longest_sum)
        found = None if isinstance(expected, str) else probe(trial, drawn, expected, "a call")
        wrong = found is not None and found.ending is not None and found.ending[0] == _WRONG
        stale = wrong and _answers_with(trial, drawn, old)
    finally:
        _put_back(pairs, before)
        _prepared_again(trial, drawn)
    if not wrong or found is None or found.ending is None:
        return
    what = (
        "the candidate returns the answer for the old ones: it keeps a result computed from them"
        if stale
        else f"the candidate is wrong; it may keep a result computed from the old ones: {found.ending[1]}"
    )
    message = (
        f"With parameters changed in place between two calls, as load_state_dict and an optimiser do, "
        f"{what}. For inference this may be intended; no timed call then includes preparing the parameters."
    )
    trial.state.flag(STATE, Finding(kind="kept-parameters", message=message, severity=Severity.FLAG))


def _prepared_again(trial: Trial, drawn: list[Any]) -> None:
    """Call the candidate once, so that weights cached by tensor version are prepared again."""
    with contextlib.suppress(CandidateFault):
        trial.caller(cloned(drawn))


def _answers_with(trial: Trial, drawn: list[Any], old: tuple[torch.Tensor, ...]) -> bool:
    """Return whether the candidate still gives the outputs `old`; False if it faults."""
    try:
        leaves = trial.caller(cloned(drawn)).leaves
    except CandidateFault:
        return False
    gates = trial.state.gates
    return len(leaves) == len(old) == len(gates) and all(
        tolerance.same(was, now, gate) for was, now, gate in zip(old, leaves, gates, strict=True)
    )


def _buffers(trial: Trial, drawn: list[Any], own: dict[str, torch.Tensor]) -> None:
    """Flag buffers that the reference's call changes and the candidate's does not."""
    pairs = _pairs(dict(trial.reference.named_buffers()), own)
    if not pairs:
        return
    kept = _copies(pairs)
    try:
        left = _left(trial, drawn, pairs)
    except CandidateFault:
        return  # other checks judge faults
    finally:
        _put_back(pairs, kept)
    if left:
        message = (
            f"The reference changes {', '.join(left[:4])} at each call (running statistics, say), and the "
            "candidate does not. Its outputs are right here, but a model that uses these buffers in "
            "evaluation mode would be wrong."
        )
        trial.state.flag(STATE, Finding(kind="buffers-left", message=message, severity=Severity.FLAG))


def _left(trial: Trial, drawn: list[Any], pairs: list[Pair]) -> list[str]:
    """Name the buffers that only the reference's call changes. Raises CandidateFault."""
    for _, theirs, ours in pairs:
        # Stress inputs may leave running statistics at infinity or NaN, where no call changes them any more.
        if not bool(torch.isfinite(theirs).all()):
            theirs.zero_()
            ours.zero_()
    before = _copies(pairs)
    trial.reference(*cloned(drawn))
    trial.caller(cloned(drawn))
    return [
        name
        for (name, theirs, ours), (was, had) in zip(pairs, before, strict=True)
        if not tolerance.bits_equal(theirs, was) and tolerance.bits_equal(ours, had)
    ]


def _copies(pairs: Sequence[Pair]) -> Copies:
    return [(theirs.detach().clone(), ours.detach().clone()) for _, theirs, ours in pairs]


def _put_back(pairs: Sequence[Pair], kept: Copies) -> None:
    """Restore each model from its own copies: a candidate may have prepared its tensors in place."""
    with torch.no_grad():
        for (_, theirs, ours), (was, had) in zip(pairs, kept, strict=True):
            theirs.copy_(was)
            ours.copy_(had)

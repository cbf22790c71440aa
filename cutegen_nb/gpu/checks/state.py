"""Parameters that change between calls, and buffers that the reference changes itself.

Weights are loaded and trained: a candidate that reads them once, packs or multiplies them and keeps the
product answers with the old ones from then on.  For inference that may be meant, so that it is shown and not
condemned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Finding, Judged, Severity, Verdict
from cutegen_nb.gpu import correctness
from cutegen_nb.gpu.checks.probing import expect, probe
from cutegen_nb.gpu.checks.registry.function import STATE
from cutegen_nb.gpu.checks.variants import is_free
from cutegen_nb.gpu.comparing import cloned, tensors_of
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_GRACE_S = 4.0
"""Beyond the time of the closer checks: no other looks for this."""
_WRONG = Judged(verdict=Verdict.WRONG_VALUES)
Pair = tuple[str, torch.Tensor, torch.Tensor]
"""A name, the reference's tensor and the candidate's."""
Copies = list[tuple[torch.Tensor, torch.Tensor]]
"""What the reference's tensor and the candidate's held."""


def state(trial: Trial) -> Ending | None:
    """A flag where the candidate does not follow its parameters, or leaves buffers that change."""
    if not isinstance(trial.candidate, torch.nn.Module) or not trial.reference.state_dict():
        trial.state.skipped(STATE, "the problem has no parameters")
        return None
    if not trial.state.time_left(calls=3, grace_s=_GRACE_S):
        trial.state.skipped(STATE, "no time left")
        return None
    own = trial.candidate.state_dict()
    parameters = _pairs(dict(trial.reference.named_parameters()), own)
    drawn = trial.draw(trial.secret_seed())
    _buffers(trial, drawn, own)
    if any(is_free(theirs) for _, theirs, _ in parameters):
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
    """Change each of many values in place, in both models, for one call."""
    before = _copies(pairs)
    old = tensors_of(trial.reference(*cloned(drawn)))
    try:
        with torch.no_grad():
            for _, theirs, ours in pairs:
                if is_free(theirs):
                    theirs.mul_(torch.empty_like(theirs).uniform_(0.5, 1.5))
                    ours.copy_(theirs)
        expected = expect(trial.reference, drawn, trial.task.longest_sum)
        found = None if isinstance(expected, str) else probe(trial, drawn, expected, "a call")
        wrong = found is not None and found.ending is not None and found.ending[0] == _WRONG
        stale = wrong and _answers_with(trial, drawn, old)
    finally:
        _put_back(pairs, before)
        _prepared_again(trial, drawn)
    if not wrong or found is None or found.ending is None:
        return
    what = (
        "it gives the answer to the old ones: it keeps what it made of them"
        if stale
        else f"it is wrong, as one that keeps a part of them would be: {found.ending[1]}"
    )
    message = (
        f"With parameters changed in place between two calls, as load_state_dict and an optimiser do, "
        f"{what}. For inference alone that may be meant; the time to prepare them is in no call."
    )
    trial.state.flag(STATE, Finding(kind="kept-parameters", message=message, severity=Severity.FLAG))


def _prepared_again(trial: Trial, drawn: list[Any]) -> None:
    """A call that nobody looks at: what goes by the version of its weights prepares them anew in it."""
    with contextlib.suppress(CandidateFault):
        trial.caller(cloned(drawn))


def _answers_with(trial: Trial, drawn: list[Any], old: tuple[torch.Tensor, ...]) -> bool:
    """Whether the candidate gives `old` even now; not where it fails, which is another check's to judge."""
    try:
        leaves = trial.caller(cloned(drawn)).leaves
    except CandidateFault:
        return False
    gates = trial.state.gates
    return len(leaves) == len(old) == len(gates) and all(
        correctness.same(was, now, gate) for was, now, gate in zip(old, leaves, gates, strict=True)
    )


def _buffers(trial: Trial, drawn: list[Any], own: dict[str, torch.Tensor]) -> None:
    """A flag for buffers that the reference's call changes and the candidate's does not."""
    pairs = _pairs(dict(trial.reference.named_buffers()), own)
    if not pairs:
        return
    kept = _copies(pairs)
    try:
        left = _left(trial, drawn, pairs)
    except CandidateFault:
        return  # another check's to judge: this one only looks at what changes
    finally:
        _put_back(pairs, kept)
    if left:
        message = (
            f"The reference changes {', '.join(left[:4])} at each call (running statistics, say), and the "
            "candidate leaves it: its outputs are right, and a model in evaluation would not be."
        )
        trial.state.flag(STATE, Finding(kind="buffers-left", message=message, severity=Severity.FLAG))


def _left(trial: Trial, drawn: list[Any], pairs: list[Pair]) -> list[str]:
    """Buffers that the reference's call changes and the candidate's does not. Raises CandidateFault."""
    for _, theirs, ours in pairs:
        if not bool(torch.isfinite(theirs).all()):  # statistics of stress inputs, from which nothing moves
            theirs.zero_()
            ours.zero_()
    before = _copies(pairs)
    trial.reference(*cloned(drawn))
    trial.caller(cloned(drawn))
    return [
        name
        for (name, theirs, ours), (was, had) in zip(pairs, before, strict=True)
        if not correctness.bits_equal(theirs, was) and correctness.bits_equal(ours, had)
    ]


def _copies(pairs: Sequence[Pair]) -> Copies:
    return [(theirs.detach().clone(), ours.detach().clone()) for _, theirs, ours in pairs]


def _put_back(pairs: Sequence[Pair], kept: Copies) -> None:
    """Each model's from its own: a candidate may have prepared its tensors in place."""
    with torch.no_grad():
        for (_, theirs, ours), (was, had) in zip(pairs, kept, strict=True):
            theirs.copy_(was)
            ours.copy_(had)

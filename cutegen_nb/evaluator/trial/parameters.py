"""Check that the candidate has every parameter on which the reference's answer depends.

Constant parameters (a scale of ones, a bias of zeros) are redrawn, so that a kernel that ignores them fails.
A candidate that lacks one cannot be given its values. It fails with that message before it runs.
"""

from __future__ import annotations

from typing import Any

import torch

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator.catalog.correctness import PARAMETERS
from cutegen_nb.evaluator.numerics.tolerance import bits_equal
from cutegen_nb.evaluator.problem.loader import seed_everything
from cutegen_nb.evaluator.trial.candidate import StateTransfer
from cutegen_nb.evaluator.trial.compare import cloned, tensors_of
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_NAMED = 4
"""Missing parameters that the message names at most."""


def judge_parameters(trial: Trial, shared: StateTransfer) -> Ending | None:
    """Decide WRONG_VALUES where the candidate lacks parameters that matter; None otherwise."""
    if not trial.reference.state_dict():
        trial.state.skipped(PARAMETERS, "the problem has no parameters")
        return None
    needed = _that_matter(trial, shared) if shared.missing else ()
    if not needed:
        taken = (f"its {own!r} is taken for Model's {name!r}" for name, own in shared.renamed.items())
        trial.state.ran(PARAMETERS, "; ".join(taken))
        return None
    several = len(needed) > 1
    names = ", ".join(f"{name!r} of shape {tuple(shared.missing[name].shape)}" for name in needed[:_NAMED])
    more = f" and {len(needed) - _NAMED} more" if len(needed) > _NAMED else ""
    message = (
        f"ModelNew has no parameter{'s' if several else ''} {names}{more}; Model's "
        f"{'are' if several else 'is'} redrawn, so that its answer depends on {'them' if several else 'it'}: "
        "keep Model's parameters by name. They are redrawn after construction, so fold them into other "
        "tensors in forward or in its first call, not in __init__."
    )
    finding = Finding(kind="missing-parameter", message=message)
    return trial.state.ends(PARAMETERS, Verdict.WRONG_VALUES, finding)


def _that_matter(trial: Trial, shared: StateTransfer) -> tuple[str, ...]:
    """Names of missing parameters whose redrawn values give another answer than their initial values."""
    drawn, seed = trial.draw(trial.secret_seed()), trial.secret_seed()
    held = trial.reference.state_dict()
    before = {name: tensor.clone() for name, tensor in held.items()}
    usual = _answer(trial.reference, drawn, seed)
    found = []
    for name, plain in shared.missing.items():
        _put_back(held, before)
        held[name].copy_(plain)
        other = _answer(trial.reference, drawn, seed)
        if not all(map(bits_equal, usual, other)):
            found.append(name)
    _put_back(held, before)
    return tuple(found)


def _answer(reference: torch.nn.Module, drawn: list[Any], seed: int) -> tuple[torch.Tensor, ...]:
    seed_everything(seed)
    return tuple(item.clone() for item in tensors_of(reference(*cloned(drawn))))


def _put_back(held: dict[str, torch.Tensor], before: dict[str, torch.Tensor]) -> None:
    for name, tensor in before.items():
        held[name].copy_(tensor)

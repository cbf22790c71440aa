"""Inputs that the problem's admission added, because its own would let a wrong answer pass."""

from __future__ import annotations

from cutegen_nb.core.ports import Progress
from cutegen_nb.gpu.checks.probing import decide, expect, probe, unjudged
from cutegen_nb.gpu.checks.registry.function import ADMISSION
from cutegen_nb.gpu.checks.variants import named, varied
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial


def added_inputs(trial: Trial, stage: Progress) -> Ending | None:
    """Run the candidate on each added kind of inputs; WRONG_VALUES where it is wrong on one."""
    for name in trial.task.added_inputs:
        stage(f"running inputs {name}")
        ended = _one(trial, name)
        if ended is not None:
            return ended
    added = ", ".join(trial.task.added_inputs)
    trial.state.ran(ADMISSION, f"also on inputs {added}" if added else "")
    return None


def _one(trial: Trial, name: str) -> Ending | None:
    """On its own, so that one kind's tensors are gone when the next kind's are made."""
    usual = trial.draw(trial.secret_seed())
    drawn = varied(usual, named(name).change)
    shrunk = usual if named(name).shrinks else None
    expected = None if drawn is None else expect(trial.reference, drawn, trial.task.longest_sum, usual=shrunk)
    if drawn is None or expected is None or isinstance(expected, str):
        return None
    found = probe(trial, drawn, expected, "a call")
    if found.ending is None or unjudged(found):
        return None
    return decide(trial, ADMISSION, found, f"With inputs {name}")

"""Inputs that the problem's admission added, because a wrong answer passes on the problem's own."""

from __future__ import annotations

from cutegen_nb.core.ports import Progress
from cutegen_nb.evaluator.catalog.correctness import ADMISSION
from cutegen_nb.evaluator.probes.probe import decide, expected_for, probe, unjudged
from cutegen_nb.evaluator.problem.input_variants import named, varied
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial


def added_inputs(trial: Trial, stage: Progress) -> Ending | None:
    """Run the candidate on each added kind of inputs; the first failure decides."""
    for name in trial.task.added_inputs:
        stage(f"running inputs {name}")
        ended = _one(trial, name)
        if ended is not None:
            return ended
    added = ", ".join(trial.task.added_inputs)
    trial.state.ran(ADMISSION, f"also on inputs {added}" if added else "")
    return None


def _one(trial: Trial, name: str) -> Ending | None:
    """Run the candidate on one kind of inputs; on return its tensors are freed before the next kind's."""
    usual = trial.draw(trial.secret_seed())
    drawn = varied(usual, named(name).change)
    shrunk = usual if named(name).shrinks else None
    expected = (
        None if drawn is None else expected_for(trial.reference, drawn, trial.task.longest_sum, usual=shrunk)
    )
    if drawn is None or expected is None or isinstance(expected, str):
        return None
    found = probe(trial, drawn, expected, "a call")
    if found.ending is None or unjudged(found):
        return None
    return decide(trial, ADMISSION, found, f"With inputs {name}")

"""What follows when every seed is right: inputs added by admission, the tiers above A, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType

import torch

from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.gpu.checks.added_inputs import added_inputs
from cutegen_nb.gpu.checks.exact_integers import exact_integers
from cutegen_nb.gpu.checks.layouts import layouts
from cutegen_nb.gpu.checks.many_calls import many_calls
from cutegen_nb.gpu.checks.matrix_types import matrix_types
from cutegen_nb.gpu.checks.own_outputs import own_outputs
from cutegen_nb.gpu.checks.parts import parts
from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.gpu.checks.registry.function import (
    ADMISSION,
    EXACT,
    LAYOUTS,
    MATRIX_TYPES,
    MORE_SEEDS,
    OWN_OUTPUTS,
    PARTS,
    SHAPES,
    STATE,
    STRESS,
    TIES,
)
from cutegen_nb.gpu.checks.registry.work import MANY_CALLS
from cutegen_nb.gpu.checks.shapes import shapes
from cutegen_nb.gpu.checks.state import state
from cutegen_nb.gpu.checks.stress import stress
from cutegen_nb.gpu.checks.ties import ties
from cutegen_nb.gpu.clocked import clock
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

Closer = Callable[[Trial], Ending | None]
"""One check: an outcome where it decides against the candidate."""

_VALUES: dict[str, tuple[Check, Closer]] = {
    "reading the types of matrix instructions": (MATRIX_TYPES, matrix_types),
    "trying exact integers": (EXACT, exact_integers),
    "trying stress inputs": (STRESS, stress),
    "making elements equal": (TIES, ties),
    "making parts of the inputs larger": (PARTS, parts),
    "holding on to outputs": (OWN_OUTPUTS, own_outputs),
    "changing parameters": (STATE, state),
    "calling it many times": (MANY_CALLS, many_calls),
}
"""Before the clock, because what is wrong is not timed."""


def look_closer(trial: Trial, module: ModuleType, seeds: Sequence[int], stage: Progress) -> Ending | None:
    """Run the checks of the task's tier, in order, until one decides; the candidate is timed in between.

    `module` is the candidate's, for building it at other sizes. Those come last: a kernel may well fault
    there, and on a GPU nothing runs after a fault.
    """
    trial.history.let_go()
    ended = _unless_full(trial, ADMISSION, lambda given: added_inputs(given, stage))
    closer = trial.task.tier.includes(Tier.B)
    trial.state.closer_until = time.monotonic() + trial.task.closer_s
    if ended is None and closer:
        trial.state.ran(MORE_SEEDS, f"{len(seeds)} seeds")
        ended = _values(trial, stage)
    if ended is None and trial.task.time_it is not None:
        stage("timing")
        ended = clock(trial, seeds, stage)
    if ended is None and closer:
        stage("trying other shapes")
        ended = _unless_full(trial, SHAPES, lambda given: shapes(given, module))
        if ended is None:
            stage("trying other layouts")
            ended = _unless_full(trial, LAYOUTS, layouts)
    return ended


def _values(trial: Trial, stage: Progress) -> Ending | None:
    for words, (check, run) in _VALUES.items():
        stage(words)
        ended = _unless_full(trial, check, run)
        if ended is not None:
            return ended
    return None


def _unless_full(trial: Trial, check: Check, run: Closer) -> Ending | None:
    """Run a check; where memory does not hold its inputs beside the rest, that is no fault of anybody's."""
    try:
        return run(trial)
    except (torch.OutOfMemoryError, MemoryError):
        pass
    except CandidateFault as fault:
        # The candidate ran before: what is short now is what the judge holds beside it.
        if fault.outcome != Judged(verdict=Verdict.OUT_OF_MEMORY):
            raise
    trial.state.skipped(check, "memory does not hold its inputs beside the reference and the oracle")
    return None

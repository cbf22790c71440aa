"""Checks after every seed is right: inputs added by admission, the tiers above A, and timing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from types import ModuleType

import torch

from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.evaluator.catalog.check import NO_MEMORY, Check
from cutegen_nb.evaluator.catalog.correctness import (
    ADMISSION,
    EXACT,
    MATRIX_TYPES,
    MORE_SEEDS,
    OWN_OUTPUTS,
    PARTS,
    SHAPES,
    STATE,
    STRESS,
    TIES,
)
from cutegen_nb.evaluator.catalog.work import MANY_CALLS
from cutegen_nb.evaluator.probes.added_inputs import added_inputs
from cutegen_nb.evaluator.probes.exact_integers import exact_integers
from cutegen_nb.evaluator.probes.input_parts import parts
from cutegen_nb.evaluator.probes.mma_types import matrix_types
from cutegen_nb.evaluator.probes.output_aliasing import own_outputs
from cutegen_nb.evaluator.probes.parameter_updates import state
from cutegen_nb.evaluator.probes.repetition import many_calls
from cutegen_nb.evaluator.probes.shapes import input_shapes, shapes
from cutegen_nb.evaluator.probes.stress import stress
from cutegen_nb.evaluator.probes.ties import ties
from cutegen_nb.evaluator.timing.trial_timing import clock, quick_timing
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import element_count
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

TierCheck = Callable[[Trial], Ending | None]
"""One check of a trial: returns an outcome where it decides against the candidate, else None."""

_VALUES: dict[str, tuple[Check, TierCheck]] = {
    "reading the types of matrix instructions": (MATRIX_TYPES, matrix_types),
    "trying exact integers": (EXACT, exact_integers),
    "trying stress inputs": (STRESS, stress),
    "making elements equal": (TIES, ties),
    "making parts of the inputs larger": (PARTS, parts),
    "holding on to outputs": (OWN_OUTPUTS, own_outputs),
    "changing parameters": (STATE, state),
    "calling it many times": (MANY_CALLS, many_calls),
}
"""Checks of values above tier A, by their stage in words. They precede timing: a wrong candidate is not
timed."""


def run_tier_checks(trial: Trial, module: ModuleType, seeds: Sequence[int], stage: Progress) -> Ending | None:
    """Run the checks of the task's tier, in order, until one decides; the candidate is timed among them.

    `module` is the candidate's, to build it at other sizes on the simulator; on a GPU another process does.
    """
    trial.history.release()
    ended = _unless_full(trial, ADMISSION, lambda given: added_inputs(given, stage))
    closer = trial.task.tier.includes(Tier.B)
    _begin(trial)
    if ended is None and closer and trial.task.only_if_faster and trial.task.rival is not None:
        stage("comparing with the best so far")
        ended = quick_timing(trial, seeds, stage)
        if ended is not None or trial.state.no_faster:
            return ended
    if ended is None and closer:
        trial.state.ran(MORE_SEEDS, f"{len(seeds)} seeds")
        ended = _values(trial, stage)
    if ended is None and trial.task.time_it is not None:
        stage("timing")
        ended = clock(trial, seeds, stage)
    if ended is None and closer and trial.ground.simulation is not None:
        stage(_numbered(trial, len(_VALUES), "trying other shapes"))
        ended = _unless_full(trial, SHAPES, lambda given: shapes(given, module, input_shapes(given)))
    return ended


_DEAR_ELEMENTS = 1 << 24
"""Elements of inputs and outputs (16 Mi) above which a comparison on a GPU takes longer than its launch."""
_DEAR_INSTRUCTIONS = 400_000
"""Warp instructions of one launch above which calls are dear: they take the simulator about half a second."""
_DEAR_STEPS = 4_000
"""Instructions per warp of one launch above which calls are dear: they take the simulator as long."""
_WARP = 32
"""Threads of a warp."""


def _begin(trial: Trial) -> None:
    """Decide from the work of one call whether checks make fewer calls (`lean`), and set their deadline."""
    state, simulation = trial.state, trial.ground.simulation
    state.closer_until = time.monotonic() + trial.task.closer_s
    if simulation is None:
        first = trial.history.first
        made = sum(math.prod(item.shape) for item in state.outputs)
        state.lean = made + element_count(first.drawn if first else []) > _DEAR_ELEMENTS
        return
    simulation.stop_at = max(simulation.stop_at, state.closer_until)
    launches = state.profile.launches if state.profile else ()
    state.instructions_a_warp = max(map(_instructions_a_warp, launches), default=0.0)
    most = max((item.counters.warp_instructions for item in launches), default=0)
    state.lean = most > _DEAR_INSTRUCTIONS or state.instructions_a_warp > _DEAR_STEPS


def _instructions_a_warp(launch: LaunchProfile) -> float:
    """Mean instructions per warp of a launch: its cost on the simulator, which runs warps side by side."""
    # CTAs times warps of a CTA; a CTA's last warp may be partial, hence the ceiling.
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // _WARP)
    return launch.counters.warp_instructions / max(1, warps)


def _values(trial: Trial, stage: Progress) -> Ending | None:
    for place, (words, (check, run)) in enumerate(_VALUES.items()):
        stage(_numbered(trial, place, words))
        ended = _unless_full(trial, check, run)
        if ended is not None:
            return ended
    return None


def _numbered(trial: Trial, place: int, words: str) -> str:
    """Add the place of a check among those above tier A; on the simulator the shapes are the last one."""
    count = len(_VALUES) + (trial.ground.simulation is not None)
    return f"{words} (check {place + 1} of {count})"


def _unless_full(trial: Trial, check: Check, run: TierCheck) -> Ending | None:
    """Run a check; note it as skipped where memory does not hold its inputs beside everything else."""
    try:
        return run(trial)
    except (torch.OutOfMemoryError, MemoryError):
        pass
    except CandidateFault as fault:
        # The candidate ran before: memory is short now because of what the judge holds beside it.
        if fault.outcome != Judged(verdict=Verdict.OUT_OF_MEMORY):
            raise
    trial.state.skipped(check, f"{NO_MEMORY} beside the reference and the oracle")
    return None

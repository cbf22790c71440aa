"""A correct candidate handed to the clock, and what the clock says put into the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Exhibit, Finding, Judged, OutputComparison, Verdict
from cutegen_nb.core.ports import Progress
from cutegen_nb.gpu import comparing, inputs
from cutegen_nb.gpu.candidate_module import construct, copy_state, import_candidate, write_source
from cutegen_nb.gpu.checks.registry.work import FLOOR, RECHECKED, TRACE
from cutegen_nb.gpu.comparing import cloned, tensors_of
from cutegen_nb.gpu.faults import RUNNING, CandidateFault, blaming
from cutegen_nb.gpu.harness import judge_harness
from cutegen_nb.gpu.record import Ending, Evidence, TimingTask
from cutegen_nb.gpu.second_look import second_look
from cutegen_nb.gpu.trial import Trial

_TIMED = {"wrong-when-timed": RECHECKED, "stale-result": RECHECKED, "above-roof": FLOOR}
"""Findings of the clock, by the check that they belong to; the others are the trace's."""
_OTHER_SEED = 0x5EED
_BESIDE = "best_before"
"""Folder of the candidate to beat, in that of the one that is judged."""


def clock(trial: Trial, seeds: Sequence[int], stage: Progress) -> Ending | None:
    """Time it, on a GPU; an outcome where the figures are no verdict or a wrong one."""
    state = trial.state
    if trial.task.time_it is None:
        return None
    state.timing, findings, outcome = trial.task.time_it(_task(trial, seeds, stage))
    state.findings += findings
    ended = judge_harness(trial.harness, state)
    if ended is not None:
        return ended
    for check in (TRACE, RECHECKED, FLOOR):
        state.ran(check)
    if outcome is None:
        return None
    decisive = findings[0]
    state.found(_TIMED.get(decisive.kind, TRACE), decisive.message)
    if outcome == Judged(verdict=Verdict.CHEATED):
        state.exhibits.insert(0, _exhibit(decisive, state))
    return outcome, decisive.message


def _task(trial: Trial, seeds: Sequence[int], stage: Progress) -> TimingTask:
    def check(outputs: tuple[torch.Tensor, ...], drawn: list[Any]) -> tuple[OutputComparison, ...]:
        wanted = tensors_of(trial.reference(*cloned(drawn)))
        if [(o.shape, o.dtype) for o in outputs] != [(w.shape, w.dtype) for w in wanted]:
            return ()
        gates = trial.state.gates
        found = comparing.compared(outputs, wanted, (None,) * len(wanted), gates, ())
        if all(item.matches for item in found):
            return found
        truth, _ = comparing.oracle(trial.reference, drawn, wanted)
        return second_look(
            reference=trial.reference,
            drawn=drawn,
            leaves=outputs,
            wanted=wanted,
            truth=truth,
            gates=gates,
            outputs=comparing.compared(outputs, wanted, truth, gates, ()),
        ).outputs

    return TimingTask(
        candidate=blaming(trial.candidate, RUNNING, trial.path),
        reference=trial.reference,
        draw=lambda seed: inputs.draw(trial.task.loaded, seed, trial.ground.device),
        check=check,
        gates=trial.state.gates,
        kept=lambda: _state(trial.candidate),
        seed=seeds[0] ^ _OTHER_SEED,
        compile_s=trial.state.compile_s,
        stage=stage,
        rival=lambda: _rival(trial, seeds[0]),
        rival_digest=trial.task.rival.digest if trial.task.rival else "",
    )


def _state(candidate: Callable[..., Any]) -> tuple[torch.Tensor, ...]:
    held = candidate.state_dict().values() if isinstance(candidate, torch.nn.Module) else ()
    return tuple(item for item in held if isinstance(item, torch.Tensor))


def _rival(trial: Trial, seed: int) -> Callable[..., Any] | str:
    """The candidate to beat, with the state of the reference; why not, where it cannot be had."""
    rival = trial.task.rival
    if rival is None:
        return ""
    path = write_source(rival.source, trial.task.folder / _BESIDE)
    try:
        module = import_candidate(path, f"before_{rival.digest}")
        model = construct(module, trial.task.loaded.init_inputs(), seed, trial.ground.device, path)
    except CandidateFault as fault:
        return fault.finding.message
    copy_state(trial.reference, model)
    return blaming(model, RUNNING, path)


def _exhibit(finding: Finding, state: Evidence) -> Exhibit:
    """What the clock and the trace of one call showed."""
    timing = state.timing
    figures = (
        () if timing is None else (f"median of {len(timing.samples_ms)} calls: {timing.median_ms:.4g} ms",)
    )
    return Exhibit(kind=finding.kind, statement=finding.message, trace=(finding.message, *figures))

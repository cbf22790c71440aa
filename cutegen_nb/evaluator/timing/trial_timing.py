"""Timing stage of a trial: a correct candidate is timed, and the results go into the evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, OutputComparison, Verdict
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.ports import Progress
from cutegen_nb.evaluator.catalog.work import FLOOR, RECHECKED, TRACE
from cutegen_nb.evaluator.problem import inputs
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.candidate import construct, import_candidate, share_state, write_source
from cutegen_nb.evaluator.trial.candidate_fault import RUNNING, CandidateFault, blaming
from cutegen_nb.evaluator.trial.compare import cloned, tensors_of
from cutegen_nb.evaluator.trial.conditioning import compare_outputs
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence, TimingTask
from cutegen_nb.evaluator.trial.tampering import judge_harness
from cutegen_nb.evaluator.trial.trial import Trial

_TIMED = {"wrong-when-timed": RECHECKED, "stale-result": RECHECKED, "above-roof": FLOOR}
"""Checks by the kind of timing finding that they answer for; all other kinds are the trace's."""
_OTHER_SEED = 0x5EED
"""XORed with a trial's first seed, for inputs of other seeds than the correctness runs had."""
_BESIDE = "best_before"
"""Folder of the best candidate so far, within that of the judged one."""


def quick_timing(trial: Trial, seeds: Sequence[int], stage: Progress) -> Ending | None:
    """Time the candidate quickly; note in the evidence if it is no faster than the best one so far."""
    ended = clock(trial, seeds, stage, quick=True)
    timing = trial.state.timing
    if ended is None and timing is not None:
        trial.state.no_faster = timing.no_faster
    return ended


def clock(trial: Trial, seeds: Sequence[int], stage: Progress, *, quick: bool = False) -> Ending | None:
    """Time the candidate, on a GPU; return an ending where the times are refused."""
    state = trial.state
    if trial.task.time_it is None:
        return None
    measured = trial.task.time_it(_task(trial, seeds, stage), quick=quick)
    state.timing, state.work, outcome = measured.timing, measured.work, measured.outcome
    # Of what the quick look found too, the measurement's own figures stand.
    again = {item.kind for item in measured.findings}
    earlier = trial.history.timed
    kept = [item for item in state.findings if item not in earlier or item.kind not in again]
    state.findings = [*kept, *(item for item in measured.findings if item not in kept)]
    trial.history.timed = measured.findings
    ended = judge_harness(trial.harness, state)
    if ended is not None:
        return ended
    for check in (TRACE, RECHECKED, FLOOR):
        state.ran(check)
    if outcome is None:
        return None
    decisive = measured.findings[0]
    state.found(_TIMED.get(decisive.kind, TRACE), decisive.message)
    if isinstance(outcome, Judged) and outcome.verdict in {Verdict.CHEATED, Verdict.NOT_OWN_WORK}:
        state.exhibits.insert(0, _exhibit(decisive, state))
    return outcome, decisive.message


def _task(trial: Trial, seeds: Sequence[int], stage: Progress) -> TimingTask:
    def check(outputs: tuple[torch.Tensor, ...], drawn: list[Any]) -> tuple[OutputComparison, ...]:
        wanted = tensors_of(trial.reference(*cloned(drawn)))
        if [(o.shape, o.dtype) for o in outputs] != [(w.shape, w.dtype) for w in wanted]:
            return ()
        gates = trial.state.gates
        found = compare.compared(outputs, wanted, (None,) * len(wanted), gates, ())
        if all(item.matches for item in found):
            return found
        # The float64 oracle is costly: it runs only where the comparison in the problem's dtype has failed.
        truth, _ = compare.oracle(trial.reference, drawn, wanted)
        return compare_outputs(
            reference=trial.reference,
            drawn=drawn,
            leaves=outputs,
            wanted=wanted,
            truth=truth,
            gates=gates,
            longest_sum=trial.task.longest_sum,
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
        rival=lambda: _rival_once(trial, seeds[0]),
        library=trial.task.loaded.problem.library,
        rival_digest=trial.task.rival.digest if trial.task.rival else "",
    )


def _state(candidate: Callable[..., Any]) -> tuple[torch.Tensor, ...]:
    held = candidate.state_dict().values() if isinstance(candidate, torch.nn.Module) else ()
    return tuple(item for item in held if isinstance(item, torch.Tensor))


def _rival_once(trial: Trial, seed: int) -> Callable[..., Any] | str:
    """Return the best candidate so far, as the first measurement built it."""
    if trial.history.rival is None:
        trial.history.rival = _rival(trial, seed)
    return trial.history.rival


def _rival(trial: Trial, seed: int) -> Callable[..., Any] | str:
    """Build the best candidate so far with the reference's state; the reason where that fails, as a string.

    The string is empty where there is none to build.
    """
    rival = trial.task.rival
    if rival is None:
        return ""
    path = write_source(rival.source, trial.task.folder / _BESIDE)
    try:
        module = import_candidate(path, f"before_{rival.digest}")
        model = construct(module, trial.task.loaded.init_inputs(), seed, trial.ground.device, path)
    except CandidateFault as fault:
        return fault.finding.message
    share_state(trial.task.loaded, trial.reference, model, seed)
    return blaming(model, RUNNING, path)


def _exhibit(finding: Finding, state: Evidence) -> Exhibit:
    """Make the exhibit of a timing finding: its message and the candidate's median."""
    timing = state.timing
    figures = (
        () if timing is None else (f"median of {len(timing.samples_ms)} calls: {timing.median_ms:.4g} ms",)
    )
    return Exhibit(kind=finding.kind, statement=finding.message, trace=(finding.message, *figures))

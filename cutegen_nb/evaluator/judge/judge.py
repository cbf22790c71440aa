"""Judging of one candidate, from its import to the evaluation. Runs in a worker, which is used once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from cutegen_nb.analysis.binary.listing import KernelCode
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Correctness,
    Evaluation,
    Judged,
    Outcome,
    Tier,
    Verdict,
)
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.correctness import ADMISSION
from cutegen_nb.evaluator.catalog.integrity import SETTINGS
from cutegen_nb.evaluator.judge.tiers import run_tier_checks
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.problem.fixed_sizes import written_for_one_size
from cutegen_nb.evaluator.problem.torch_settings import restore, settings
from cutegen_nb.evaluator.trial.candidate import construct, import_candidate, share_state, write_source
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault, late_fault
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence, Task
from cutegen_nb.evaluator.trial.parameters import judge_parameters
from cutegen_nb.evaluator.trial.tampering import HarnessSnapshot
from cutegen_nb.evaluator.trial.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An evaluation, with the tolerances to keep for the next candidate of the same problem."""

    evaluation: Evaluation
    """Outcome of the candidate with all evidence."""
    gates: tuple[Tolerance, ...]
    """Tolerance of each output; empty when the outputs were never compared."""
    code: tuple[KernelCode, ...] = ()
    """Code of the profiled call's kernels; empty on a GPU."""


def judge(
    task: Task, ground: ExecutionDevice, ask_seeds: Callable[[], Sequence[int]], stage: Progress
) -> Judgement:
    """Import, run and compare one candidate. Raises ProblemError when the reference itself fails.

    `ask_seeds` is called after the candidate's import, so that the import cannot know the inputs. `stage` is
    told the step that begins.
    """
    state = Evidence(gates=task.gates)
    path = write_source(task.source, task.folder)
    started = time.monotonic()
    try:
        outcome, summary = _run(task, ground, path, ask_seeds, stage, state)
    except (CandidateFault, RuntimeError) as error:
        fault = error if isinstance(error, CandidateFault) else late_fault(error, path)
        if fault is None:
            raise
        outcome, summary = fault.outcome, fault.finding.message
        state.findings.insert(0, fault.finding)
    if outcome != Judged(verdict=Verdict.PASSED) and ground.simulation is not None:
        hint = written_for_one_size(task.source, task.loaded.rewrites)
        state.findings += [] if hint is None else [hint]
    evaluation = _evaluation(task, ground, state, (outcome, summary), time.monotonic() - started)
    return Judgement(evaluation=evaluation, gates=state.gates, code=state.code)


def _run(  # noqa: PLR0913, PLR0917 - once, from judge
    task: Task,
    ground: ExecutionDevice,
    path: Path,
    ask_seeds: Callable[[], Sequence[int]],
    stage: Progress,
    state: Evidence,
) -> Ending:
    model = task.loaded.namespace.get("Model")
    kept = HarnessSnapshot.kept(task.gates, model if isinstance(model, type) else None)
    with ground.present_as_cuda(), torch.no_grad(), kept as harness:
        before = settings()
        if task.gates:
            state.ran(ADMISSION)
        stage("importing the candidate")
        module = import_candidate(path, task.digest)
        seeds = ask_seeds()
        _put_back(before, state)
        stage("constructing the models")
        candidate = construct(module, task.loaded.init_inputs(), seeds[0], ground.device, path)
        _put_back(before, state)
        reference = task.loaded.reference(seeds[0], ground.device)
        shared = share_state(task.loaded, reference, candidate, seeds[0])
        trial = Trial(
            task=task,
            ground=ground,
            path=path,
            candidate=candidate,
            reference=reference,
            state=state,
            harness=harness,
        )
        ended = judge_parameters(trial, shared)
        if ended is not None:
            return ended
        for number, seed in enumerate(seeds):
            stage(f"running seed {number + 1} of {len(seeds)}" + (", compiling" if number == 0 else ""))
            ended = trial.run(seed, number)
            _put_back(before, state)
            if ended is not None:
                return ended
        trial.note_ran(seeds)
        return run_tier_checks(trial, module, seeds, stage) or trial.conclude(seeds)


def _put_back(before: dict[str, object], state: Evidence) -> None:
    """Restore PyTorch's global settings, with a flag for each that the candidate changed."""
    found = restore(before)
    for item in found:
        state.flag(SETTINGS, item)
    if SETTINGS.name not in state.results:
        state.ran(SETTINGS)


def _evaluation(
    task: Task, ground: ExecutionDevice, state: Evidence, ending: Ending, seconds: float
) -> Evaluation:
    outcome: Outcome = ending[0]
    tier = Tier.A if state.no_faster else task.tier
    results = state.check_results(tier, on_gpu=ground.simulation is None)
    return Evaluation(
        outcome=outcome,
        summary=ending[1],
        device=ground.name,
        findings=tuple(sorted(state.findings, key=lambda item: item.severity is not Severity.DECIDES)),
        correctness=_correctness(state, results) if state.outputs else None,
        profile=state.profile,
        timing=state.timing,
        work=state.work,
        library=state.library,
        duration_s=seconds,
        tier=tier,
        provisional=tuple(state.provisional),
        checks=results,
        exhibits=tuple(state.exhibits),
        candidate_digest=task.digest,
        problem_digest=task.loaded.problem.digest,
    )


def _correctness(state: Evidence, results: Sequence[CheckResult]) -> Correctness:
    return Correctness(
        seeds=tuple(state.seeds),
        outputs=state.outputs,
        checks=tuple(item.name for item in results if item.state is not CheckState.NOT_RUN),
        checks_not_run=tuple(
            f"{item.name}: {item.note}" for item in results if item.state is CheckState.NOT_RUN
        ),
    )

"""One candidate judged, from top to bottom. Runs in the worker, which is used once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from cutegen_nb.core.evaluation import Correctness, Evaluation, Outcome, Severity
from cutegen_nb.gpu import correctness
from cutegen_nb.gpu.candidate_module import construct, import_candidate, share_state, write_source
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.interception import HarnessIdentity, restore, settings
from cutegen_nb.gpu.trial import Evidence, Stage, Task, Trial, cheated


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """An evaluation, with the gates to keep for the next candidate of the same problem."""

    evaluation: Evaluation
    """What became of the candidate."""
    gates: tuple[correctness.Gate, ...]
    """Empty when the outputs were never compared."""


def judge(task: Task, ground: Ground, ask_seeds: Callable[[], Sequence[int]], stage: Stage) -> Judgement:
    """Import, run and compare one candidate. Raises ProblemError when the reference itself fails.

    `ask_seeds` is called once the candidate is imported: whatever its import did, it did without knowing
    the inputs.
    """
    state = Evidence(gates=task.gates)
    path = write_source(task.source, task.folder)
    started = time.monotonic()
    try:
        outcome, summary = _run(task, ground, path, ask_seeds, stage, state)
    except CandidateFault as fault:
        outcome, summary = fault.outcome, fault.finding.message
        state.findings.insert(0, fault.finding)
    compared = bool(state.outputs)
    evaluation = Evaluation(
        outcome=outcome,
        summary=summary,
        device=ground.name,
        findings=tuple(sorted(state.findings, key=lambda item: item.severity is not Severity.DECIDES)),
        correctness=Correctness(
            seeds=tuple(state.seeds),
            outputs=state.outputs,
            checks=tuple(state.checks),
            checks_not_run=tuple(state.not_run),
        )
        if compared
        else None,
        profile=state.profile,
        timing=state.timing,
        duration_s=time.monotonic() - started,
    )
    return Judgement(evaluation=evaluation, gates=state.gates)


def _run(  # noqa: PLR0913, PLR0917 - once, from judge
    task: Task,
    ground: Ground,
    path: Path,
    ask_seeds: Callable[[], Sequence[int]],
    stage: Stage,
    state: Evidence,
) -> tuple[Outcome, str]:
    with ground.habits(), torch.no_grad():
        before = settings()
        harness = HarnessIdentity.capture()
        stage("importing the candidate")
        module = import_candidate(path, task.digest)
        seeds = ask_seeds()
        state.findings += restore(before)
        stage("constructing the models")
        candidate = construct(module, task.loaded.init_inputs(), seeds[0], ground.device, path)
        state.findings += restore(before)
        reference = task.loaded.reference(seeds[0], ground.device)
        _note_state(reference, share_state(task.loaded, reference, candidate, seeds[0]), state)
        trial = Trial(
            task=task, ground=ground, path=path, candidate=candidate, reference=reference, state=state
        )
        for number, seed in enumerate(seeds):
            stage(f"running seed {number + 1} of {len(seeds)}" + (", compiling" if number == 0 else ""))
            ended = trial.run(seed, first=number == 0)
            state.findings += restore(before)
            if ended is not None:
                return ended
        changed = harness.changed()
        if changed:
            return cheated("harness-replaced", f"The candidate replaced {', '.join(changed)}.", state)
        state.checks.append("harness unchanged")
        return trial.conclude(seeds, stage)


def _note_state(reference: torch.nn.Module, redrawn: bool, state: Evidence) -> None:  # noqa: FBT001
    if not reference.state_dict():
        return
    name = "constant parameters redrawn"
    if redrawn:
        state.checks.append(name)
    else:
        state.not_run.append(f"{name}: ModelNew's parameters are not Model's by name and shape")

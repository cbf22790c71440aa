"""The candidate at other sizes of its problem.

A kernel may be written for its problem's shape alone, so that failing at another is shown and not
condemned.  One case decides: wrong values past a threshold of the candidate's own source on whose far side
the problem's own size lies, where the simulator judges a smaller size on the near side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.analysis.workload import count_flops
from cutegen_nb.core.errors import EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import Finding, Judged, Severity
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.gpu import inputs, trace
from cutegen_nb.gpu.candidate_module import construct, share_state
from cutegen_nb.gpu.checks.probing import SILENT, Probe, decide, expect, flag, probe
from cutegen_nb.gpu.checks.registry.function import SHAPES
from cutegen_nb.gpu.checks.sizes import Size, extents, rewrites_for, sizes, thresholds
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.problem_source import load
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.runs import History
from cutegen_nb.gpu.scaling import Budget
from cutegen_nb.gpu.trial import Trial

_LARGER = 4
"""Times the simulator's usual size that another may have."""
_NO_TIME = "no time left"
_TOO_LARGE = "too large for the simulator"


def shapes(trial: Trial, module: ModuleType) -> Ending | None:
    """Try other sizes; an ending only for wrong values where the problem's own size lies."""
    notes: list[str] = []
    came_nearer = False
    for size in _sizes(trial):
        if size.nearer and came_nearer:
            continue
        if not trial.state.time_left(calls=2 + trial.state.compile_s / max(trial.state.call_s, 1e-3)):
            notes.append(f"{size.words}: {_NO_TIME}")
            _unreached(trial, size, "there was no time")
            continue
        note, ending = _one(trial, module, size)
        if ending is not None:
            return ending
        came_nearer |= size.nearer and note != _TOO_LARGE
        notes.append(f"{size.words}: {note}")
    if not notes:
        trial.state.skipped(SHAPES, "no number in the problem's file is an extent of an input")
    elif all(note.endswith(_NO_TIME) for note in notes):
        trial.state.skipped(SHAPES, _NO_TIME)
    elif SHAPES.name not in trial.state.results:
        trial.state.ran(SHAPES, "; ".join(notes))
    return None


def _sizes(trial: Trial) -> list[Size]:
    loaded, first = trial.task.loaded, trial.history.first
    tensors = [item for item in (first.drawn if first else ()) if isinstance(item, torch.Tensor)]
    if not tensors:
        return []
    found = extents(loaded.problem, loaded.rewrites, [tuple(item.shape) for item in tensors])
    limits = thresholds(trial.task.source)
    elements = tensors[0].numel()
    full = _elements_at(trial, ()) if loaded.rewrites and limits else elements
    return list(sizes(found, (full, elements), limits))


def _elements_at(trial: Trial, rewrites: tuple[Rewrite, ...]) -> int:
    graph = trace.trace(trial.task.loaded.problem, rewrites).graph
    return graph.inputs[0].spec.elements if graph.inputs else 0


def _one(trial: Trial, module: ModuleType, size: Size) -> tuple[str, Ending | None]:
    """What became of the candidate at one size, in words, and its ending where it decides."""
    task = trial.task
    rewrites = rewrites_for(task.loaded.problem, task.loaded.rewrites, size.values)
    try:
        if trial.ground.simulation is not None and not _fits(trial, rewrites):
            _unreached(trial, size, "the simulator does not reach so far")
            return _TOO_LARGE, None
        found = _judged(trial, module, rewrites)
    except ProblemError:
        return "the problem has no such size", None
    except EvaluatorError as error:
        return f"not judged: {error}", None
    if isinstance(found, str):
        return found, None
    if found.ending is None:
        return "right", None
    outcome, message = found.ending
    if not isinstance(outcome, Judged) or outcome.verdict not in SILENT:
        if size.control is not None:
            words = f"With {size.words}, the kernel does not run: {message[:200]}"
            trial.state.flag(
                SHAPES, Finding(kind="refused-at-own-length", message=words, severity=Severity.FLAG)
            )
        elif size.decides:
            _unreached(trial, size, f"the kernel does not run there ({message[:120]})")
        return f"refused ({message[:100]})", None
    words = f"With {size.words}"
    if size.decides and (size.control is None or _right_with(trial, module, size.control)):
        side = "" if size.nearer or size.control else ", the side on which the problem's own size lies"
        return "", decide(trial, SHAPES, found, words + side)
    flag(trial, SHAPES, found, "wrong-at-another-shape", words)
    return "wrong", None


def _right_with(trial: Trial, module: ModuleType, values: dict[int, int]) -> bool:
    """Whether the candidate is right with the other extents made small: then it is this one that counts."""
    rewrites = rewrites_for(trial.task.loaded.problem, trial.task.loaded.rewrites, values)
    try:
        found = _judged(trial, module, rewrites)
    except (ProblemError, EvaluatorError):
        return False  # without a size to hold it against, nothing is shown
    return not isinstance(found, str) and found.ending is None


def _judged(trial: Trial, module: ModuleType, rewrites: Sequence[Rewrite]) -> Probe | str:
    """The candidate built and run anew at another size; the reason where that says nothing."""
    seed = trial.secret_seed()
    loaded = load(trial.task.loaded.problem, tuple(rewrites))
    drawn: list[Any] = inputs.draw(loaded, seed, trial.ground.device)
    reference = loaded.reference(seed, trial.ground.device)
    try:
        candidate = construct(module, loaded.init_inputs(), seed, trial.ground.device, trial.path)
    except CandidateFault as fault:
        return f"refused ({fault.finding.message[:100]})"
    share_state(loaded, reference, candidate, seed)
    expected = expect(reference, drawn, trial.task.longest_sum, own=True)
    if isinstance(expected, str):
        return expected
    there = replace(
        trial,
        task=replace(trial.task, loaded=loaded),
        candidate=candidate,
        reference=reference,
        history=History(),
    )
    return probe(there, drawn, expected, "a call")


def _fits(trial: Trial, rewrites: tuple[Rewrite, ...]) -> bool:
    graph = trace.trace(trial.task.loaded.problem, rewrites).graph
    budget = Budget()
    tensors = (*(item.spec for item in (*graph.inputs, *graph.parameters)), *graph.output_specs)
    elements = sum(math.prod(item.shape) for item in tensors)
    return elements <= _LARGER * budget.elements and count_flops(graph) <= _LARGER * budget.flops


def _unreached(trial: Trial, size: Size, why: str) -> None:
    """A flag where the problem's own size lies past a threshold that was not tried."""
    if not size.decides or size.nearer or size.control is not None:
        return
    message = (
        f"The source decides by size, and the problem's own size lies on the other side than the one that "
        f"was judged ({size.words}): that path was not tried, because {why}. A GPU judges the full size."
    )
    finding = Finding(kind="threshold-not-tried", message=message, severity=Severity.FLAG)
    trial.state.flag(SHAPES, finding)

"""Runs of a candidate at other sizes of its problem.

A kernel may be written for its problem's shape alone: failing at another shape only raises a flag, and
raising an error there is fine. Wrong results decide only at sizes that stand for the problem's own size,
where a smaller one was judged: nearer to it, with one extent of the full length, or past the same threshold
in the candidate's source (see ``other_sizes``). On a GPU the check has a process of its own, because an
illegal access ends every later call of a process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import torch

from cutegen_nb.analysis.problem.workload import count_flops
from cutegen_nb.core.errors import EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Rewrite
from cutegen_nb.evaluator.catalog.correctness import FAULTED, GUARD, SHAPES
from cutegen_nb.evaluator.probes.probe import SILENT, Probe, decide, expected_for, flag, probe
from cutegen_nb.evaluator.problem import inputs, trace
from cutegen_nb.evaluator.problem.loader import load
from cutegen_nb.evaluator.problem.other_sizes import ProblemSize, extents, rewrites_for, sizes
from cutegen_nb.evaluator.problem.scaling import SizeBudget
from cutegen_nb.evaluator.problem.thresholds import thresholds
from cutegen_nb.evaluator.trial.candidate import construct, share_state
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.observations import History
from cutegen_nb.evaluator.trial.trial import Trial

_LARGER = 4
"""Largest size on the simulator, in elements and FLOPs, as a multiple of the usual `SizeBudget`."""
_MOST_STEPS = 100_000
"""Most instructions of one warp at a longer extent on the simulator: about two seconds a call."""
_LEAST_STRETCH = 4.0
"""Factor by which an extent may grow in any case, whatever `_MOST_STEPS` allows."""
_MOST_ELEMENTS = 1 << 26
"""Elements of the first input on a GPU (64 Mi) above which the other extents are made smaller."""
_LEAN = 1
"""Sizes that do not decide the verdict and are tried on a GPU, below tier C, or if calls are dear. Each
compiles the kernel once more: the three of a fused problem took 7 to 11 s of a verdict's 20 on an H100."""
_RIGHT = "right"
"""Note on a size at which the candidate was right."""
_FAULTED = "faulted"
"""Note on a size at which the candidate faulted."""
_NO_TIME = "no time left"
"""Note on a size that was not tried for want of time."""
_FAULTS = frozenset({
    Verdict.OUT_OF_BOUNDS, Verdict.MISALIGNED, Verdict.UNINITIALISED_READ, Verdict.RACE, Verdict.DEADLOCK,
    Verdict.ASYNC_HAZARD, Verdict.NONDETERMINISTIC,
})  # fmt: skip
"""Verdicts on invalid accesses and synchronisation, which are no refusal of a size and only raise a flag."""
_Untried = tuple[ProblemSize, str]
"""Size that was not judged, and why, in words that follow "because"."""
_TOO_LARGE = "too large for the simulator"
"""Note on a size beyond `_LARGER`."""


def input_shapes(trial: Trial) -> list[Sequence[int]]:
    """Shapes of the tensors that the first call was given."""
    first = trial.history.first
    return [item.shape for item in (first.drawn if first else ()) if isinstance(item, torch.Tensor)]


def shapes(
    trial: Trial, module: ModuleType, inputs_now: Sequence[Sequence[int]], trying: Progress = lambda _: None
) -> Ending | None:
    """Run the candidate, built from `module`, at other sizes; an ending only from a size that decides.

    `inputs_now` holds the shapes of the tensor inputs at the size judged. `trying` is told of each size
    before it is tried, in words: ``61 made 60``.
    """
    notes: list[str] = []
    untried: list[_Untried] = []
    right: list[dict[int, int]] = []
    came_nearer = False
    others = 0
    for size in _sizes(trial, inputs_now):
        if (size.nearer and came_nearer) or size.values in right:
            continue  # several thresholds of a source may ask for one size
        others += not size.decides
        if _is_lean(trial) and not size.decides and others > _LEAN:
            continue
        if not trial.state.time_left(SHAPES, decides=size.decides):
            notes.append(f"{size.words}: {_NO_TIME}")
            untried.append((size, "there was no time"))
            continue
        trying(size.words)
        note, ending = _one(trial, module, size, untried)
        if ending is not None:
            return ending
        came_nearer |= size.nearer and note != _TOO_LARGE
        if note == _RIGHT:
            right.append(size.values)
        notes.append(f"{size.words}: {note}")
        if note == _FAULTED and trial.ground.simulation is None:
            break  # an illegal access ends the context: nothing runs in this process any more
    _flag_thresholds_not_tried(trial, untried)
    if not notes:
        trial.state.skipped(SHAPES, "no number in the problem's file is an extent of an input")
    elif all(note.endswith(_NO_TIME) for note in notes):
        trial.state.skipped(SHAPES, _NO_TIME)
    elif SHAPES.name not in trial.state.results:
        trial.state.ran(SHAPES, "; ".join(notes))
    return None


def _is_lean(trial: Trial) -> bool:
    return trial.state.lean or trial.ground.simulation is None or trial.task.tier is not Tier.C


def _sizes(trial: Trial, inputs_now: Sequence[Sequence[int]]) -> list[ProblemSize]:
    loaded = trial.task.loaded
    if not inputs_now:
        return []
    found = extents(loaded.problem, loaded.rewrites, inputs_now)
    limits = thresholds(trial.task.source)
    elements = math.prod(inputs_now[0])
    # The full size is only needed to tell on which side of a threshold it lies: tracing costs time.
    full = _elements_at(trial, ()) if loaded.rewrites and limits else elements
    # Instructions grow with the extent that a loop runs over. On a GPU `steps` is 0, and there is no bound.
    steps = trial.state.instructions_a_warp
    stretch = max(_LEAST_STRETCH, _MOST_STEPS / steps) if steps else math.inf
    # On a GPU no size decides, so a smaller one shows as much and takes less memory.
    room = math.inf if trial.ground.simulation is not None else _MOST_ELEMENTS
    return list(sizes(found, (full, elements), limits, stretch, room))


def _elements_at(trial: Trial, rewrites: tuple[Rewrite, ...]) -> int:
    graph = trace.trace(trial.task.loaded.problem, rewrites).graph
    return graph.inputs[0].spec.elements if graph.inputs else 0


def _one(
    trial: Trial, module: ModuleType, size: ProblemSize, untried: list[_Untried]
) -> tuple[str, Ending | None]:
    """Run the candidate at one size; return a note in words, and an ending if it decides.

    A size at which the kernel cannot be judged is added to `untried`.
    """
    task = trial.task
    rewrites = rewrites_for(task.loaded.problem, task.loaded.rewrites, size.values)
    try:
        if trial.ground.simulation is not None and not _fits(trial, rewrites):
            untried.append((size, "that size is too large for the simulator"))
            return _TOO_LARGE, None
        found = _judged(trial, module, rewrites)
    except ProblemError:
        return "the problem has no such size", None
    except EvaluatorError as error:
        return f"not judged: {error}", None
    if isinstance(found, str):
        return found, None
    if found.ending is None:
        return _RIGHT, None
    outcome, message = found.ending
    if isinstance(outcome, Judged) and outcome.verdict in _FAULTS:
        _fault(trial, size, found, outcome.verdict)
        return _FAULTED, None
    if not isinstance(outcome, Judged) or outcome.verdict not in SILENT:
        if size.control is not None:
            words = f"With {size.words}, the kernel does not run: {message[:200]}"
            trial.state.flag(
                SHAPES, Finding(kind="refused-at-own-length", message=words, severity=Severity.FLAG)
            )
        elif size.decides:
            untried.append((size, f"the kernel does not run there ({message[:120]})"))
        return f"refused ({message[:100]})", None
    words = f"With {size.words}"
    if size.decides and (size.control is None or _right_with(trial, module, size.control)):
        side = "" if size.nearer or size.control else ", as at the problem's own size"
        return "", decide(trial, SHAPES, found, words + side)
    flag(trial, SHAPES, found, "wrong-at-another-shape", words)
    return "wrong", None


def _fault(trial: Trial, size: ProblemSize, found: Probe, verdict: Verdict) -> None:
    """Flag a kernel that faults at a size it was not written for, instead of refusing the size."""
    cause = found.evidence.findings[0]
    message = (
        f"Right at the problem's own size; with {size.words}, {verdict.value}: {cause.message[:400]} {GUARD}"
    )
    trial.state.flag(
        SHAPES,
        Finding(kind=FAULTED, message=message, severity=Severity.FLAG, line=cause.line),
    )


def _right_with(trial: Trial, module: ModuleType, values: dict[int, int]) -> bool:
    """Return whether the candidate is right at the control size, with only the other extents made small.

    If it is, a failure with the full length as well comes from that length. False if nothing can be judged.
    """
    rewrites = rewrites_for(trial.task.loaded.problem, trial.task.loaded.rewrites, values)
    try:
        found = _judged(trial, module, rewrites)
    except (ProblemError, EvaluatorError):
        return False  # without the control nothing is shown
    return not isinstance(found, str) and found.ending is None


def _judged(trial: Trial, module: ModuleType, rewrites: Sequence[Rewrite]) -> Probe | str:
    """Build candidate and reference anew at another size and compare; return the reason if that is no use.

    Raises ProblemError if the problem has no such size, EvaluatorError if nothing can be judged.
    """
    seed = trial.secret_seed()
    loaded = load(trial.task.loaded.problem, tuple(rewrites))
    drawn: list[Any] = inputs.draw(loaded, seed, trial.ground.device)
    reference = loaded.reference(seed, trial.ground.device)
    try:
        candidate = construct(module, loaded.init_inputs(), seed, trial.ground.device, trial.path)
    except CandidateFault as fault:
        return f"refused ({fault.finding.message[:100]})"
    share_state(loaded, reference, candidate, seed)
    expected = expected_for(reference, drawn, trial.task.longest_sum, own=True)
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
    budget = SizeBudget()
    tensors = (*(item.spec for item in (*graph.inputs, *graph.parameters)), *graph.output_specs)
    elements = sum(math.prod(item.shape) for item in tensors)
    return elements <= _LARGER * budget.elements and count_flops(graph) <= _LARGER * budget.flops


def _flag_thresholds_not_tried(trial: Trial, untried: Sequence[_Untried]) -> None:
    """Flag, in one finding, thresholds in the source between the size judged and the problem's own.

    One extent that would cross a product of the source's numbers is no such threshold: the product may count
    elements, which have a size of their own here, or nothing at all.
    """
    crossed = [
        (size.words, why)
        for size, why in untried
        if size.decides and not size.nearer and size.control is None and not size.guessed
    ]
    if not crossed:
        return
    words, reasons = (list(dict.fromkeys(column)) for column in zip(*crossed, strict=True))
    path = "The path beyond it was" if len(words) == 1 else "The paths beyond them were"
    message = (
        "The kernel's source has a size threshold between the size that was judged and the problem's own: "
        f"{'; '.join(words)}. {path} not tried, because {' or '.join(reasons)}. "
        "Run the kernel on a GPU to judge the full size."
    )
    trial.state.flag(SHAPES, Finding(kind="threshold-not-tried", message=message, severity=Severity.FLAG))

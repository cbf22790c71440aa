"""Admission of a problem: known wrong answers are tried against the comparison, once a problem.

Zeros, ones, the mean, an input handed back, the answer to other inputs, and the reference with a sixteenth of
an input left out must all fail. Where one passes (a copy passes for ReLU of numbers that are never negative),
inputs on which it fails are added to the problem's own. If no inputs help, the person is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cutegen_nb.core.problem import Admission
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.numerics.distance import root_mean_square
from cutegen_nb.evaluator.numerics.tolerance import expected_output, matches
from cutegen_nb.evaluator.probes.probe import Expected, expected_for
from cutegen_nb.evaluator.problem import inputs
from cutegen_nb.evaluator.problem.input_variants import VARIANTS, InputVariant, mean, varied
from cutegen_nb.evaluator.problem.loader import LoadedProblem
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.compare import cloned, tensors_of
from cutegen_nb.evaluator.trial.observations import ReferenceOutputs

_FEWEST_TO_CUT = 2
"""Smallest extent of which a part can be left out: at least one slice remains."""
_REFUSES = (RuntimeError, TypeError, ValueError, IndexError, AssertionError)
"""Errors with which a reference refuses changed inputs; such inputs are not used."""
_SEEDS = (20_011, 20_021)
"""Seeds of the two sets of inputs that are compared. Evaluations draw theirs from all of 31 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Result of an admission, with the tolerances found on the way."""

    admission: Admission
    """Report to the person, with the kinds of inputs that evaluations add."""
    gates: tuple[Tolerance, ...]
    """Tolerance of each output, found in a process that runs no candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """A wrong answer that the comparison should refuse."""

    name: str
    """Description in words: ``zeros``."""
    outputs: tuple[torch.Tensor, ...]
    """Tensors of the shapes of the right answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """One output of the right answer, with everything a comparison needs."""

    wanted: torch.Tensor
    """The reference's output."""
    truth: torch.Tensor | None
    """The oracle's output; None if the reference cannot run in float64."""
    gate: Tolerance
    """Tolerances of this output."""
    rms: float
    """Root mean square of the tensor that answers are compared with, computed once."""


def admit(loaded: LoadedProblem, device: str, longest_sum: float) -> Admitted:
    """Try wrong answers on the problem's own inputs, and on further inputs where one passes.

    `longest_sum` is roughly the number of terms of the reference's longest sum. Raises ProblemError if the
    problem's own code fails.
    """
    reference = loaded.reference(_SEEDS[0], device)
    drawn, other = (inputs.draw(loaded, seed, device) for seed in _SEEDS)
    wanted, writes = compare.answered(reference, drawn)
    truth, _ = compare.oracle(reference, drawn, wanted)
    gates = tolerance.find_tolerances(wanted, truth, longest_sum)
    answers = ReferenceOutputs(wanted=wanted, truth=truth, writes=writes)
    expected = Expected(answers=answers, gates=gates)
    if not all(bool(torch.isfinite(item).all()) for item in wanted):
        return Admitted(admission=Admission(not_tried="the reference is not finite"), gates=gates)
    refused, passing = _try_wrong_answers(reference, drawn, other, expected)
    found = _tighten(reference, (drawn, other), passing, longest_sum)
    admission = Admission(
        refused=refused,
        tightened=tuple(name for name in passing if name not in found.left),
        would_pass=tuple(name for name in found.left if not name.startswith(_UNUSED)),
        added_inputs=found.added,
        unused=tuple(name.removeprefix(_UNUSED) for name in found.left if name.startswith(_UNUSED)),
    )
    return Admitted(admission=admission, gates=gates)


_UNUSED = "without "
"""Prefix of the name of a wrong answer with one input exchanged. If it passes, that input is not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tightened:
    """Result of adding kinds of inputs."""

    left: tuple[str, ...]
    """Names of the wrong answers that still pass."""
    added: tuple[str, ...]
    """Names of the kinds of inputs that were added."""


def _try_wrong_answers(
    reference: torch.nn.Module, drawn: Sequence[Any], other: Sequence[Any], expected: Expected
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the wrong answers that the comparison refuses, and of those that pass."""
    refused: list[str] = []
    passing: list[str] = []
    targets = _targets(expected)
    for wrong in _wrong_answers(reference, drawn, other, expected.answers.wanted):
        (passing if _passes(wrong, targets) else refused).append(wrong.name)
    return tuple(refused), tuple(passing)


def _targets(expected: Expected) -> tuple[_Target, ...]:
    answers = expected.answers
    return tuple(
        _Target(wanted=want, truth=true, gate=gate, rms=root_mean_square(expected_output(want, true, gate)))
        for want, true, gate in zip(answers.wanted, answers.truth, expected.gates, strict=True)
    )


def _passes(wrong: _Wrong, targets: Sequence[_Target]) -> bool:
    return all(
        matches(got, target.wanted, target.truth, target.gate, target.rms)
        for got, target in zip(wrong.outputs, targets, strict=True)
    )


def _tighten(
    reference: torch.nn.Module,
    sets: tuple[Sequence[Any], Sequence[Any]],
    passing: Sequence[str],
    longest_sum: float,
) -> _Tightened:
    """Add kinds of inputs that refuse a wrong answer, until none passes or no kind is left."""
    left, added = list(passing), list[str]()
    for variant in VARIANTS if left else ():
        still = _still_passing(reference, sets, variant, longest_sum) if left and variant.decides else None
        # Skip a kind that refuses none of the wrong answers that still pass.
        if still is None or still >= set(left):
            continue
        added.append(variant.name)
        left = [name for name in left if name in still]
    return _Tightened(left=tuple(left), added=tuple(added))


def _still_passing(
    reference: torch.nn.Module,
    sets: tuple[Sequence[Any], Sequence[Any]],
    variant: InputVariant,
    longest_sum: float,
) -> set[str] | None:
    """Return the names of the wrong answers that pass on inputs of a kind; None if it cannot be used."""
    drawn, other = (varied(item, variant.change) for item in sets)
    expected = None if drawn is None else expected_for(reference, drawn, longest_sum)
    if drawn is None or expected is None or isinstance(expected, str):
        return None
    wrong = _wrong_answers(reference, drawn, sets[1] if other is None else other, expected.answers.wanted)
    targets = _targets(expected)
    return {item.name for item in wrong if _passes(item, targets)}


def _wrong_answers(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    other: Sequence[Any],
    wanted: tuple[torch.Tensor, ...],
) -> Iterator[_Wrong]:
    for name, value in (("zeros", 0.0), ("ones", 1.0)):
        yield _Wrong(name=name, outputs=tuple(torch.full_like(item, value) for item in wanted))
    yield _Wrong(name="the mean of the answer", outputs=tuple(_mean(item) for item in wanted))
    for index, item in enumerate(drawn):
        copy = _handed_back(item, wanted)
        if copy is not None:
            yield _Wrong(name=f"input {index} handed back", outputs=copy)
    yield from _recomputed(reference, [("the answer to other inputs", list(other))], wanted)
    yield from _recomputed(reference, _cut(drawn), wanted)
    yield from _recomputed(reference, _replaced(drawn, other), wanted)


def _mean(item: torch.Tensor) -> torch.Tensor:
    if not item.is_floating_point():
        # Integers have no mean of their type: the first element everywhere.
        return torch.full_like(item, item.reshape(-1)[0].item() if item.numel() else 0)
    return torch.full_like(item, mean(item) if item.numel() else 0.0)


def _handed_back(item: Any, wanted: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...] | None:
    """Return the input as the answer, if there is a single output with as many elements; else None."""
    if not isinstance(item, torch.Tensor) or len(wanted) != 1 or item.numel() != wanted[0].numel():
        return None
    return (item.reshape(wanted[0].shape).to(wanted[0].dtype),)


def _cut(drawn: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the inputs with the last sixteenth of one of them, along one dimension, set to zero."""
    for index, item in enumerate(drawn):
        if not isinstance(item, torch.Tensor) or not item.is_floating_point():
            continue
        for dimension, extent in enumerate(item.shape):
            length = max(1, extent // 16)
            if extent < _FEWEST_TO_CUT:
                continue
            shorter = item.clone()
            shorter.narrow(dimension, extent - length, length).zero_()
            if not torch.equal(shorter, item):  # that part may hold zeros already
                words = f"input {index} without its last {length} of {extent} along dimension {dimension}"
                yield words, [shorter if at == index else one for at, one in enumerate(drawn)]


def _replaced(drawn: Sequence[Any], other: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the inputs with one of them taken from the other set: the answer must depend on each input."""
    for index, (item, instead) in enumerate(zip(drawn, other, strict=True)):
        if not isinstance(item, torch.Tensor) or item.shape != instead.shape or torch.equal(item, instead):
            continue
        yield f"{_UNUSED}input {index}", [instead if at == index else one for at, one in enumerate(drawn)]


def _recomputed(
    reference: torch.nn.Module,
    changed: Iterable[tuple[str, list[Any]]],
    wanted: Sequence[torch.Tensor],
) -> Iterator[_Wrong]:
    for name, given in changed:
        try:
            outputs = tensors_of(reference(*cloned(given)))
        except _REFUSES:
            continue
        if [item.shape for item in outputs] == [item.shape for item in wanted]:
            yield _Wrong(name=name, outputs=outputs)

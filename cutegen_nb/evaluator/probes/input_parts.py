"""Inputs with a part made larger: a candidate that never reads that part gives the wrong answer.

On evenly drawn inputs such a candidate may pass: a sum over three quarters of a row, scaled up by a third, is
close to the sum of the whole row. First a few single elements are made so large that each decides the answer
(see ``spikes``), then one block at a time. A block is an eighth along one dimension. If the last two
dimensions are equal, the block is an eighth along both, so that a symmetric matrix stays symmetric.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.catalog.correctness import PARTS
from cutegen_nb.evaluator.probes.probe import Expected, decide, expected_for, probe, unjudged
from cutegen_nb.evaluator.probes.spikes import apart, spiked, widened
from cutegen_nb.evaluator.problem.input_variants import is_sorted, may_vary
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_BLOCKS = 8
"""Blocks along one dimension."""
_FACTOR = 30.0
"""Factor by which a block is made larger."""
_LEAN_TRIES = 3
"""Magnitudes of single elements that are tried at most if calls are dear."""
_KEPT = 1 / 64
"""Widened tolerance ÷ distance that the larger block moves the exact answer."""


def parts(trial: Trial) -> Ending | None:
    """Run the candidate on inputs with larger elements or a larger block; the first failure decides."""
    drawn = trial.draw(trial.secret_seed())
    elements, reason, ending = _elements(trial, drawn)
    if ending is not None:
        return ending
    blocks, why, ending = _blocks(trial, drawn)
    if ending is None and elements and not trial.state.lean:
        # Once more with other secret elements, where calls are cheap.
        _, _, ending = _elements(trial, drawn)
    if ending is not None:
        return ending
    if not elements and not blocks:
        trial.state.skipped(PARTS, why or reason)
        return None
    note = f"single elements of {elements} inputs, {blocks} blocks"
    trial.state.ran(PARTS, f"{note}; single elements not used: {reason}" if reason else note)
    return None


def _elements(trial: Trial, drawn: Sequence[Any]) -> tuple[int, str, Ending | None]:
    """Try single elements; return the number of inputs tried, the reason if one was not, and the ending."""
    used, reason = 0, ""
    for index, item in enumerate(drawn):
        if not may_vary(item) or is_sorted(item):
            continue
        if not trial.state.time_left(PARTS):
            return used, "no time left", None
        tries = _LEAN_TRIES if trial.state.lean else None
        given = spiked(trial.reference, drawn, index, trial.task.longest_sum, tries)
        if isinstance(given, str):
            reason = given
            continue
        found = probe(trial, given.drawn, given.expected, "a call")
        if found.ending is not None and not unjudged(found):
            return used, "", decide(trial, PARTS, found, f"With {given.words}")
        used += 1
    return used, reason, None


def _blocks(trial: Trial, drawn: Sequence[Any]) -> tuple[int, str, Ending | None]:
    """Try blocks; return the number of blocks tried, the reason if one was not, and the ending."""
    used, reason = 0, "no input may take other values"
    for words, changed in _with_larger_blocks(drawn, lean=trial.state.lean):
        if not trial.state.time_left(PARTS):
            return used, "no time left", None
        expected = expected_for(trial.reference, changed, trial.task.longest_sum)
        if isinstance(expected, str):
            reason = expected
            continue
        found = probe(trial, changed, expected, "a call")
        if found.ending is not None and found.ending[0] == Judged(verdict=Verdict.WRONG_VALUES):
            # Wrong by the usual tolerance, which rounding may exceed here. Was the block read at all?
            found = probe(trial, changed, _widened(trial.reference, drawn, expected), "a call")
        if found.ending is not None and not unjudged(found):
            ending = decide(trial, PARTS, found, f"With {words} made {_FACTOR:g} times as large")
            return used, "", ending
        used += 1
    return used, reason, None


def _widened(reference: torch.nn.Module, drawn: Sequence[Any], expected: Expected) -> Expected:
    """Widen the tolerances to a 64th of the distance that the larger block moves the exact answer.

    The widened tolerances show whether the block was read, not how exact the answer is. A margin is the
    difference of two distances that are both thirty times as large, so it loses more digits than the
    reference's own error suggests. Without an oracle the tolerances stay unchanged.
    """
    truth, reason = compare.oracle(reference, drawn, expected.answers.wanted)
    if reason:
        return expected
    gates = tuple(
        widened(gate, apart(before, after), _KEPT)
        for gate, before, after in zip(expected.gates, truth, expected.answers.truth, strict=True)
        if before is not None and after is not None
    )
    return replace(expected, gates=gates)


def _with_larger_blocks(drawn: Sequence[Any], *, lean: bool = False) -> Iterator[tuple[str, list[Any]]]:
    """Yield inputs with a larger block: the last of each dimension of each input, then a secret one.

    With `lean` only the last block along one dimension of each input.
    """
    for choice in (_BLOCKS - 1, secrets.randbelow(_BLOCKS - 1))[: 1 if lean else 2]:
        for index, item in enumerate(drawn):
            if not may_vary(item) or is_sorted(item):
                continue
            for dimension in _dimensions(item)[: 1 if lean else None]:
                changed, words = _larger(item, dimension, choice)
                yield (
                    f"input {index}, {words},",
                    [changed if at == index else x for at, x in enumerate(drawn)],
                )


def _dimensions(item: torch.Tensor) -> list[int]:
    """Return the dimensions of at least eight elements, the last first; of two equal last ones, the last."""
    found = [at for at in reversed(range(item.dim())) if item.shape[at] >= _BLOCKS]
    if _is_square(item) and item.dim() - 2 in found:
        found.remove(item.dim() - 2)
    return found


def _is_square(item: torch.Tensor) -> bool:
    return item.dim() > 1 and item.shape[-1] == item.shape[-2]


def _larger(item: torch.Tensor, dimension: int, choice: int) -> tuple[torch.Tensor, str]:
    extent = item.shape[dimension]
    first, last = extent * choice // _BLOCKS, extent * (choice + 1) // _BLOCKS
    # Factors along one dimension, broadcast over the others: no index list of the size of the input.
    factors = torch.ones(extent, dtype=item.dtype, device=item.device)
    factors[first:last] = _FACTOR
    shape = [1] * item.dim()
    shape[dimension] = extent
    changed = item * factors.view(shape)
    if dimension == item.dim() - 1 and _is_square(item):
        # The same rows as columns keep a symmetric matrix symmetric; where both meet, 30² times.
        shape[-1], shape[-2] = 1, extent
        changed *= factors.view(shape)
    return changed, f"{first} to {last} of {extent} along dimension {dimension}"

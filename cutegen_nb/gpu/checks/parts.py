"""Does every part of every input count? Parts of it are made larger, and the answer has to follow.

What is never read cannot make a difference: a sum over three quarters of a row, scaled up by a third, comes
close to the whole one as long as the row is drawn evenly.  First a few single elements are made so large
that each decides the answer (see ``spikes``); then a block at a time.  A block is an eighth along one
dimension; where the last two dimensions are alike, along both, so that a symmetric matrix stays one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.gpu import comparing
from cutegen_nb.gpu.checks.probing import Expected, decide, expect, probe, unjudged
from cutegen_nb.gpu.checks.registry.function import PARTS
from cutegen_nb.gpu.checks.spikes import apart, spiked, widened
from cutegen_nb.gpu.checks.variants import is_free, is_sorted
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_BLOCKS = 8
_FACTOR = 30.0
_KEPT = 1 / 64
"""Gates, as a fraction of what a larger block does to the answer."""


def parts(trial: Trial) -> Ending | None:
    """WRONG_VALUES where the answer does not follow elements or a block of an input made larger."""
    drawn = trial.draw(trial.secret_seed())
    elements, reason, ending = _elements(trial, drawn)
    if ending is not None:
        return ending
    blocks, why, ending = _blocks(trial, drawn)
    if ending is None and elements:
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
    """Inputs of which single elements were tried, why one was not, and what decided."""
    used, reason = 0, ""
    for index, item in enumerate(drawn):
        if not is_free(item) or is_sorted(item):
            continue
        if not trial.state.time_left(calls=2):
            return used, "no time left", None
        given = spiked(trial.reference, drawn, index, trial.task.longest_sum)
        if isinstance(given, str):
            reason = given
            continue
        found = probe(trial, given.drawn, given.expected, "a call")
        if found.ending is not None and not unjudged(found):
            return used, "", decide(trial, PARTS, found, f"With {given.words}")
        used += 1
    return used, reason, None


def _blocks(trial: Trial, drawn: Sequence[Any]) -> tuple[int, str, Ending | None]:
    """Blocks that were tried, why one was not, and what decided."""
    used, reason = 0, "no input may take other values"
    for words, changed in _with_larger_blocks(drawn):
        if not trial.state.time_left(calls=2):
            return used, "no time left", None
        expected = expect(trial.reference, changed, trial.task.longest_sum)
        if isinstance(expected, str):
            reason = expected
            continue
        found = probe(trial, changed, expected, "a call")
        if found.ending is not None and found.ending[0] == Judged(verdict=Verdict.WRONG_VALUES):
            found = probe(trial, changed, _widened(trial.reference, drawn, expected), "a call")
        if found.ending is not None and not unjudged(found):
            ending = decide(trial, PARTS, found, f"With {words} made {_FACTOR:g} times as large")
            return used, "", ending
        used += 1
    return used, reason, None


def _widened(reference: torch.nn.Module, drawn: Sequence[Any], expected: Expected) -> Expected:
    """Gates of a part of what the larger block does to the exact answer: was it read, not how exactly.

    A margin between two distances, both thirty times as large, loses more digits than the reference happens
    to show.
    """
    truth, reason = comparing.oracle(reference, drawn, expected.answers.wanted)
    if reason:
        return expected
    gates = tuple(
        widened(gate, apart(before, after), _KEPT)
        for gate, before, after in zip(expected.gates, truth, expected.answers.truth, strict=True)
        if before is not None and after is not None
    )
    return replace(expected, gates=gates)


def _with_larger_blocks(drawn: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The last block of each dimension of each input, then one chosen in secret."""
    for choice in (_BLOCKS - 1, secrets.randbelow(_BLOCKS - 1)):
        for index, item in enumerate(drawn):
            if not is_free(item) or is_sorted(item):
                continue
            for dimension in _dimensions(item):
                changed, words = _larger(item, dimension, choice)
                yield (
                    f"input {index}, {words},",
                    [changed if at == index else x for at, x in enumerate(drawn)],
                )


def _dimensions(item: torch.Tensor) -> list[int]:
    """Dimensions long enough, the last one first; one of the last two where they are alike."""
    found = [at for at in reversed(range(item.dim())) if item.shape[at] >= _BLOCKS]
    if _is_square(item) and item.dim() - 2 in found:
        found.remove(item.dim() - 2)
    return found


def _is_square(item: torch.Tensor) -> bool:
    return item.dim() > 1 and item.shape[-1] == item.shape[-2]


def _larger(item: torch.Tensor, dimension: int, choice: int) -> tuple[torch.Tensor, str]:
    extent = item.shape[dimension]
    first, last = extent * choice // _BLOCKS, extent * (choice + 1) // _BLOCKS
    factors = torch.ones(extent, dtype=item.dtype, device=item.device)
    factors[first:last] = _FACTOR
    shape = [1] * item.dim()
    shape[dimension] = extent
    changed = item * factors.view(shape)
    if dimension == item.dim() - 1 and _is_square(item):
        shape[-1], shape[-2] = 1, extent
        changed *= factors.view(shape)
    return changed, f"{first} to {last} of {extent} along dimension {dimension}"

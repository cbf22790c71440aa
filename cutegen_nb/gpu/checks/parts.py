"""Does every part of every input count? One block at a time is made larger, and the answer has to follow.

What is never read cannot make a difference: a sum over three quarters of a row, scaled up by a third, comes
close to the whole one as long as the row is drawn evenly.  A block is an eighth along one dimension; where
the last two dimensions are alike, along both, so that a symmetric matrix stays one.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from cutegen_nb.gpu.checks.probing import decide, expect, probe, unjudged
from cutegen_nb.gpu.checks.registry import PARTS
from cutegen_nb.gpu.checks.variants import is_free
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_BLOCKS = 8
_FACTOR = 30.0


def parts(trial: Trial) -> Ending | None:
    """WRONG_VALUES where the answer does not follow a block of an input that is made larger."""
    used, reason = 0, "no input may take other values"
    drawn = trial.draw(trial.secret_seed())
    for words, changed in _with_larger_blocks(drawn):
        if not trial.state.time_left(calls=2):
            reason = "no time left"
            break
        expected = expect(trial.reference, changed, trial.task.longest_sum)
        if isinstance(expected, str):
            reason = expected
            continue
        found = probe(trial, changed, expected, "a call")
        if found.ending is not None and not unjudged(found):
            return decide(trial, PARTS, found, f"With {words} made {_FACTOR:g} times as large")
        used += 1
    if used:
        trial.state.ran(PARTS, f"{used} blocks")
    else:
        trial.state.skipped(PARTS, reason)
    return None


def _with_larger_blocks(drawn: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The last block of each dimension of each input, then one chosen in secret."""
    for choice in (_BLOCKS - 1, secrets.randbelow(_BLOCKS - 1)):
        for index, item in enumerate(drawn):
            if not is_free(item):
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

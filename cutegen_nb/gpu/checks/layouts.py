"""The same values laid out otherwise: transposed in memory, and one element off alignment.

The problem gives contiguous inputs, so that a kernel may rely on it: a clear refusal is noted, and silently
wrong values are a flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged
from cutegen_nb.gpu.checks.probing import SILENT, Expected, expect, flag, probe
from cutegen_nb.gpu.checks.registry.function import LAYOUTS
from cutegen_nb.gpu.record import Ending
from cutegen_nb.gpu.trial import Trial

_NO_TIME = "no time left"


def layouts(trial: Trial) -> Ending | None:
    """A flag where a kernel silently computes something else from the same values."""
    drawn = trial.draw(trial.secret_seed())
    expected = expect(trial.reference, drawn, trial.task.longest_sum, own=True)
    if isinstance(expected, str):
        trial.state.skipped(LAYOUTS, expected)
        return None
    notes = [_one(trial, drawn, expected, words, lay) for words, lay in _LAYOUTS.items()]
    if all(note.endswith(_NO_TIME) for note in notes):
        trial.state.skipped(LAYOUTS, _NO_TIME)
    elif LAYOUTS.name not in trial.state.results:
        trial.state.ran(LAYOUTS, "; ".join(notes))
    return None


def _one(
    trial: Trial,
    drawn: list[Any],
    expected: Expected,
    words: str,
    lay: Callable[[torch.Tensor], torch.Tensor],
) -> str:
    if not trial.state.time_left(calls=2):
        return f"{words}: {_NO_TIME}"
    given = [lay(item) if isinstance(item, torch.Tensor) else item for item in drawn]
    found = probe(trial, drawn, expected, "a call", given)
    if found.ending is None:
        return f"{words}: right"
    outcome, message = found.ending
    if isinstance(outcome, Judged) and outcome.verdict in SILENT:
        flag(trial, LAYOUTS, found, "relies-on-layout", f"With inputs {words}")
        return f"{words}: wrong"
    return f"{words}: refused ({message[:100]})"


def _transposed(item: torch.Tensor) -> torch.Tensor:
    if item.dim() < 2:  # noqa: PLR2004 - a vector has every other element
        return torch.stack((item, item), dim=-1)[..., 0]
    return item.transpose(-1, -2).contiguous().transpose(-1, -2)


def _off_by_one(item: torch.Tensor) -> torch.Tensor:
    room = torch.empty(item.numel() + 1, dtype=item.dtype, device=item.device)
    return room[1:].view(item.shape).copy_(item)


_LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "not contiguous": _transposed,
    "one element off alignment": _off_by_one,
}

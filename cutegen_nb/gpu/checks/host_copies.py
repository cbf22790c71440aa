"""Did the answer come by way of the host? Asked of every call on a GPU.

Decides only on both directions: as much of the inputs went down as a sixteenth of the problem, and an output
lies where the host's bytes were brought up to, or as much came up as the outputs hold.  A table that the
host makes without looking at the inputs is no cheat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Exhibit
from cutegen_nb.gpu.calling import Called
from cutegen_nb.gpu.checks.registry.work import TRANSFERS
from cutegen_nb.gpu.comparing import excerpts
from cutegen_nb.gpu.interception import SMALL_FRACTION
from cutegen_nb.gpu.record import Ending, Evidence

LEAST_BYTES = 64
"""Fewer copied to the host are numbers that a launch needs, whatever share of a tiny problem they are."""


def judge_transfers(called: Called, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """CHEATED where the outputs of this call were made of what came up from the host."""
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    given, made = _bytes(drawn), _bytes(outputs)
    down = sum(item.size_bytes for item in called.moved if item.down)
    up = sum(item.size_bytes for item in called.moved if not item.down)
    kind, what = _accusation(called, up, made)
    if down < max(LEAST_BYTES, SMALL_FRACTION * given) or not up or not kind:
        if called.launches is None:
            state.ran(TRANSFERS)
        return None
    message = (
        f"In {which}, {down} bytes were copied from the GPU to the host and {up} bytes back up; the outputs "
        f"hold {made}. {what}"
    )
    lines = sorted({item.line for item in called.moved if item.line})
    exhibit = Exhibit(
        kind=kind,
        statement=message,
        inputs=excerpts(drawn, "input"),
        outputs=excerpts(outputs, "output"),
        trace=tuple(
            f"{item.size_bytes} bytes {'down' if item.down else 'up'}, line {item.line}"
            for item in called.moved[:20]
        ),
        lines=(lines[0], lines[-1]) if lines else None,
    )
    return state.cheated(TRANSFERS, exhibit)


def _accusation(called: Called, up: int, made: int) -> tuple[str, str]:
    if called.from_host:
        where = f"Output {called.from_host[0]} lies in the memory that was filled from there"
        return "decoy-launch", f"{where}: the kernels that ran are a decoy."
    if up >= SMALL_FRACTION * made:
        return "read-from-host", "A kernel can only have passed on what the host had computed."
    return "", ""


def _bytes(items: Sequence[Any]) -> int:
    return sum(item.numel() * item.element_size() for item in items if isinstance(item, torch.Tensor))

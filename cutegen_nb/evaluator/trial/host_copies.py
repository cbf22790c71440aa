"""Check that the host did not work on the inputs; runs at every call.

Two cases decide. In the first the host read a sixteenth of the inputs' bytes or more. A result computed from
them may return as an argument of a launch. In the second it read as much of other tensors, and results were
copied up. A table that the host makes without reading anything is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.finding import Exhibit
from cutegen_nb.evaluator.catalog.work import TRANSFERS
from cutegen_nb.evaluator.observe.dispatch_watch import SMALL_FRACTION
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.compare import excerpts
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence

LEAST_BYTES = 64
"""Bytes copied to the host below which nothing is decided. So few are numbers that a launch needs, whatever
share of a tiny problem they are."""


def judge_transfers(called: CallRecord, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """Decide NOT_OWN_WORK where the host read a real share of the inputs in this call; else None.

    `which` names the call in messages: ``the first call``.
    """
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    given, made = _bytes(drawn), _bytes(outputs)
    down = sum(item.size_bytes for item in called.moved if item.down)
    of_inputs = sum(item.size_bytes for item in called.moved if item.down and item.of_inputs)
    up = sum(item.size_bytes for item in called.moved if not item.down)
    least = max(LEAST_BYTES, SMALL_FRACTION * given)
    # Results come up as an output's own memory, or as a sixteenth of the outputs' bytes or more.
    brought_up = bool(called.from_host) or up >= SMALL_FRACTION * made
    if of_inputs < least and not (down >= least and up and brought_up):
        state.ran(TRANSFERS)
        return None
    copied = f"copied {up} bytes to the GPU" if up else "copied nothing back to it"
    message = (
        f"In {which} the host read {down} bytes from the GPU and {copied}; the inputs hold {given} bytes, "
        f"the outputs {made}. {_where(called)}The kernel has to do the work."
    )
    lines = sorted({item.line for item in called.moved if item.line})
    exhibit = Exhibit(
        kind="host-work",
        statement=message,
        inputs=excerpts(drawn, "input"),
        outputs=excerpts(outputs, "output"),
        trace=tuple(
            f"{item.size_bytes} bytes {'down' if item.down else 'up'}, line {item.line}"
            for item in called.moved[:20]
        ),
        lines=(lines[0], lines[-1]) if lines else None,
    )
    return state.not_own_work(TRANSFERS, exhibit)


def _where(called: CallRecord) -> str:
    if not called.from_host:
        return ""
    return f"Output {called.from_host[0]} lies in the memory that was filled from there. "


def _bytes(items: Sequence[Any]) -> int:
    return sum(item.numel() * item.element_size() for item in items if isinstance(item, torch.Tensor))

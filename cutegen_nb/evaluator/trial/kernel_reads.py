"""Check that kernels worked on the inputs, and not on an answer that something unobserved put into memory.

Runs from the third call on. In the first call a candidate may prepare tables and packed weights as it likes.
Bytes that the second call, on other inputs, read as well are no answer but a constant (a list of extents,
say). All other bytes that later calls read have to come from inputs, parameters, observed operations or
earlier kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.finding import Exhibit
from cutegen_nb.evaluator.catalog.work import READ
from cutegen_nb.evaluator.observe.dispatch_watch import SMALL_FRACTION
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.compare import excerpts
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence


def judge_reads(called: CallRecord, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """Decide CHEATED where kernels of a call read much that something unobserved had put into memory.

    Much is a sixteenth of the outputs' bytes or more. None otherwise and on a GPU. `which` names the call in
    messages: ``the third call``.
    """
    if called.launches is None:
        return None
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    if not called.unexplained:
        state.ran(READ)
        return None
    read = sum({one.address: one.size_bytes for one in called.unexplained}.values())
    share = read / max(1, sum(item.numel() * item.element_size() for item in outputs))
    first = called.unexplained[0]
    if share < SMALL_FRACTION:
        state.ran(READ, f"{read} bytes that kernels read came from neither inputs nor PyTorch")
        return None
    message = (
        f"In {which}, kernel {first.kernel} read {first.size_bytes} bytes that are no input or parameter and "
        "that no kernel, and no operation of PyTorch that was seen, had put there: something unseen "
        "computed them in that call."
    )
    exhibit = Exhibit(
        kind="read-from-host",
        statement=message,
        inputs=excerpts(drawn, "input"),
        outputs=excerpts(outputs, "output"),
        trace=tuple(f"{one.kernel} read {one.label}" for one in called.unexplained),
        addresses=tuple(
            f"{one.label} at {one.address:#x}, {one.size_bytes} bytes" for one in called.unexplained
        ),
    )
    return state.cheated(READ, exhibit)

"""Did the kernels work on the inputs, or on an answer that something unseen had put into memory?

Asked from the third call on: in the first one a candidate may prepare tables and packed weights as it
likes, and what it read in the second, on other inputs, bit for bit as well is no answer to these but a
constant (a list of extents, say). What later calls read has to be explained by inputs, parameters,
operations that were seen, and earlier kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Exhibit
from cutegen_nb.gpu.calling import Called
from cutegen_nb.gpu.checks.registry.work import READ
from cutegen_nb.gpu.comparing import excerpts
from cutegen_nb.gpu.interception import SMALL_FRACTION
from cutegen_nb.gpu.record import Ending, Evidence


def judge_reads(called: Called, drawn: Sequence[Any], which: str, state: Evidence) -> Ending | None:
    """CHEATED where a real share of what a call's kernels read was put there by something unseen.

    None otherwise and on a GPU. `which` names the call in messages: ``the second call``.
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

"""Check that kernels did a part of the work where a problem's policy leaves other parts to PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.library import library_option
from cutegen_nb.evaluator.catalog.work import COMPUTE
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.compare import excerpts
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence


def judge_library(
    called: CallRecord, drawn: Sequence[Any], which: str, state: Evidence, *, only_library: bool
) -> Ending | None:
    """Decide NOT_OWN_WORK where allowed operators of PyTorch made every output of this call; else None.

    `which` names the call in messages. With `only_library` the policy leaves nothing of the reference to
    kernels: then an output that a kernel only copied counts as PyTorch's too.
    """
    found = None if state.took_part else library_only(called, which, only_library=only_library)
    if found is None:
        # A kernel that works in place may leave its input unchanged (ReLU of positive values). One call in
        # which it changed something shows that it runs.
        state.took_part = state.took_part or bool(called.library)
        return None
    outputs = [leaf for leaf in called.leaves if isinstance(leaf, torch.Tensor)]
    exhibit = Exhibit(
        kind=found.kind,
        statement=found.message,
        inputs=excerpts(drawn, "input"),
        outputs=excerpts(outputs, "output"),
        trace=tuple(f"PyTorch: {item.op} on {item.elements} elements" for item in called.computed),
        lines=(found.line, found.line) if found.line else None,
    )
    return state.not_own_work(COMPUTE, exhibit)


def library_only(called: CallRecord, which: str, *, only_library: bool = False) -> Finding | None:
    """Return the finding that allowed operators made every output of a call; None where kernels took part."""
    if not called.library:
        return None
    made = {*called.alone, *called.copied} if only_library else set(called.alone)
    if not all(
        position in made
        for position, leaf in enumerate(called.leaves)
        if not isinstance(leaf, torch.Tensor) or leaf.numel()
    ):
        return None
    first = next(item for item in called.computed if item.allowed)
    place = f" in line {first.line}" if first.line else ""
    left = (
        f"The policy --library {library_option(called.library)} leaves nothing of this problem to a kernel: "
        "take the option away, or write that part in a kernel"
        if only_library
        else "Write the rest of the problem in a kernel"
    )
    message = (
        f"PyTorch's {first.op}{place} made every output of {which}, and no kernel did a part of the work. "
        f"{left}."
    )
    return Finding(kind="library-only", message=message, line=first.line)

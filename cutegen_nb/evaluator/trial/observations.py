"""Records of one run of the candidate and of the reference, and the runs that a trial keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator.trial.call import CallRecord

Truth = tuple[torch.Tensor | None, ...]
"""Outputs of the float64 oracle; None for each where the reference cannot run in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceOutputs:
    """Outputs of the reference for some inputs."""

    wanted: tuple[torch.Tensor, ...]
    """Outputs in the reference's own precision."""
    truth: Truth
    """Outputs of the float64 oracle."""
    writes: tuple[bool, ...] = ()
    """True for each input that the reference writes into, as it may on purpose; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRun:
    """One run of the candidate and of the reference on the same inputs."""

    drawn: list[Any]
    """Inputs as they were drawn."""
    given: list[Any]
    """The candidate's copies of the inputs, as it left them."""
    called: CallRecord
    """Record of the candidate's call."""
    wanted: tuple[torch.Tensor, ...]
    """Outputs of the reference."""
    sample: tuple[torch.Tensor, ...] = ()
    """Some elements of each of the candidate's outputs, once the outputs themselves are released."""


@dataclass(slots=True, kw_only=True)
class History:
    """Runs that later runs are compared with. No others are kept: at full size each takes gigabytes."""

    first: PairedRun | None = None
    """First run; the memory of its inputs is used again."""
    latest: PairedRun | None = None
    """Latest run of candidate and reference; None where the latest call ended before the reference ran."""
    rearranges: bool | None = None
    """True if the reference only copies values to other places; None before it ran."""
    only_library: bool | None = None
    """True if nothing of the reference is left to kernels by the problem's policy; None before it ran."""
    repeat: CallRecord | None = None
    """Second call, after everything was compiled; without its outputs."""
    rival: Callable[..., Any] | str | None = None
    """Best candidate so far, built once for both measurements: its compilation takes seconds. A string says
    why it was not built; None before the first measurement."""
    timed: tuple[Finding, ...] = ()
    """Findings of the latest measurement of times."""

    def release(self) -> None:
        """Release what only the calls so far needed: at 1.6e9 elements each tensor takes 6 GiB.

        The first run keeps the memory of its inputs, the forms of its outputs and a sample of their elements.
        """
        self.latest = None
        first = self.first
        if first is None or first.sample:
            return
        self.first = replace(
            first,
            drawn=first.given,
            called=replace(first.called, leaves=[]),
            wanted=tuple(item.to("meta") for item in first.wanted),
            sample=tuple(sample(item) for item in first.called.leaves),
        )


_SAMPLE_ELEMENTS = 1 << 24
"""Elements of a sample, 64 MiB of float32; an output of no more is kept whole."""


def sample(tensor: torch.Tensor) -> torch.Tensor:
    """Copy a tensor, or of a large one some 16 million elements at equal distances."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _SAMPLE_ELEMENTS)].clone()

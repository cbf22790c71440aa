"""Records of one run of the candidate and of the reference, and the runs that a trial keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

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
    inputs_after: list[Any]
    """Inputs as the reference left them: it may write into one on purpose."""


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

    def let_go(self) -> None:
        """Release memory once every seed is right: keep the first inputs and their outputs' forms only."""
        self.latest = None
        if self.first is not None:
            forms = tuple(item.to("meta") for item in self.first.wanted)
            self.first = replace(self.first, called=replace(self.first.called, leaves=[]), wanted=forms)

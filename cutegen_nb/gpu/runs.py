"""What one run of the candidate and of the reference left, and which runs a trial keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.gpu.calling import Called

Truth = tuple[torch.Tensor | None, ...]
"""The reference's outputs in float64; None where it cannot be run so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the reference makes of some inputs."""

    wanted: tuple[torch.Tensor, ...]
    """Its outputs."""
    truth: Truth
    """The same in float64."""
    inputs_after: list[Any]
    """The inputs as it left them: it may write into one on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One run of the candidate and of the reference on the same inputs."""

    drawn: list[Any]
    """The inputs, as they were."""
    given: list[Any]
    """The same in the memory that the candidate got, as it left them."""
    called: Called
    """The candidate's call."""
    wanted: tuple[torch.Tensor, ...]
    """The reference's outputs."""


@dataclass(slots=True, kw_only=True)
class History:
    """Runs that later ones are held against. No more are kept: at full size each fills gigabytes."""

    first: Compared | None = None
    """The first run; its inputs' memory is used again."""
    latest: Compared | None = None
    """The latest run on other inputs."""
    rearranges: bool | None = None
    """Whether the reference only puts values elsewhere; None before it ran."""
    repeat: Called | None = None
    """The second call, after everything was compiled; without its outputs."""

    def let_go(self) -> None:
        """Once every seed is right: keep the first run's inputs and what its outputs were like, no more."""
        self.latest = None
        if self.first is not None:
            forms = tuple(item.to("meta") for item in self.first.wanted)
            self.first = replace(self.first, called=replace(self.first.called, leaves=[]), wanted=forms)

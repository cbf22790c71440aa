"""What another machine found of a candidate: a GPU in a cluster's queue, another host."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One evaluation of one candidate of a session, made elsewhere and taken in."""

    job: str
    """SHA-256 of what was asked: problem, candidate, tier, rival. The same job twice is the same answer."""
    candidate_digest: str
    """Of the candidate."""
    evaluation: Evaluation
    """What was found there."""
    device: Device
    """On what."""
    comparison: Comparison | None
    """Against the best that had been measured before it was taken in; None when it did not pass."""
    measured_at: str
    """UTC there, ISO 8601."""
    absorbed_at: str
    """UTC here, ISO 8601."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions there: python, torch, nvidia-cutlass-dsl, cutegen-nb."""

"""Tolerances of one output."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Both tolerances of one output, found once for a problem and kept for every candidate."""

    element: float
    """|candidate − oracle| ≤ element · (|oracle| + rms(oracle)), for every element."""
    l2: float
    """‖candidate − oracle‖₂ ≤ l2 · ‖oracle‖₂."""
    reference_l2: float
    """The reference's own relative L2 error."""
    against_oracle: bool = True
    """False if outputs are compared with the reference in its own precision: there is no oracle, the
    reference is outside the cap itself, or the output holds integers."""

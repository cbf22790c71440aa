"""Entry of the catalogue of checks."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.evaluation import Tier

NO_MEMORY = "memory does not hold its inputs"
"""Beginning of the note on a check that did not run, or made fewer calls, for want of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Description of one check."""

    name: str
    """Name in reports."""
    protocol: str
    """Number in the evaluation protocol: ``F10``; several where the check covers several."""
    tier: Tier
    """First tier at which the check runs."""
    stops: str
    """Exploits and faults that the check catches."""
    cost: str
    """Cost in words: ``free``, ``one call``, ``some calls``, ``seconds``."""
    decides: bool = True
    """True if a finding can fail a candidate; False if findings are flags for a person."""
    needs_gpu: bool = False
    """True if the check runs only on a GPU."""
    needs_simulator: bool = False
    """True if the check runs only on the simulator."""
    instead: str = ""
    """Substitute where the check cannot run; empty for none."""
    where: str = ""
    """Module with the check's code."""

"""One check, as data."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.evaluation import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check."""

    name: str
    """As reports name it."""
    protocol: str
    """Its number in the protocol: ``F10``."""
    tier: Tier
    """The tier it first runs at."""
    stops: str
    """The exploit it is there for."""
    cost: str
    """``free``, ``one call``, ``some calls``, ``seconds``."""
    decides: bool = True
    """Whether what it finds can fail a candidate; otherwise it is a flag for a person."""
    needs_gpu: bool = False
    """Whether it can only run on a GPU."""
    needs_simulator: bool = False
    """Whether it can only run on the simulator."""
    instead: str = ""
    """What looks for the same where it cannot run."""
    where: str = ""
    """Module that holds its code."""

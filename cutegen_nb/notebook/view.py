"""What the panel shows, as one JSON value made from a session and what is going on now."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.round import Attempt, Comparison, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """What is going on in a session beside its finished rounds."""

    doing: str = ""
    """What is being done now, in a short phrase; empty while nothing is."""
    since: float = 0.0
    """Unix time at which it began; 0 when unknown."""
    gate: str = ""
    """The gate at which a person is waited for: ``prompt``, ``revision``, or empty for none."""
    prompt: Prompt | None = None
    """At the prompt gate: what would be asked."""
    attempts: tuple[Attempt, ...] = ()
    """At the revision gate: the exchanges of the round, the last candidate being the one to decide on."""
    comparison: Comparison | None = None
    """At the revision gate: the candidate against its parent."""
    notice: str = ""
    """A sentence for the person: what a decision did, or what went wrong."""
    ended: str = ""
    """Why the session takes no more decisions; empty while it does."""

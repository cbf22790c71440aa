"""Summary of a stored session: what a list of sessions shows of it."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.library import Library
from cutegen_nb.core.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One row in a list of sessions."""

    name: str
    """Name of the session."""
    problem: str
    """Name of its problem."""
    workload_class: str
    """Class of the problem, as ``WorkloadClass`` spells it."""
    device: str
    """Name of the device that judged its candidates."""
    author: str
    """Name of its author."""
    library: Library
    """Parts of the problem that its policy leaves to PyTorch."""
    rounds: int
    """Number of finished rounds."""
    epochs: int | None
    """Number of finished epochs; None for a chain."""
    best: int | None
    """Number of the round with the best revision; None before one passed."""
    created_at: str
    """Time of its start, ISO 8601."""
    stopped: str
    """Reason for its end; empty while it may go on."""


def summarise(session: Session) -> SessionSummary:
    """Return the summary of a session."""
    return SessionSummary(
        name=session.name,
        problem=session.problem.name,
        workload_class=session.facts.workload_class.value,
        device=session.device.name,
        author=session.author,
        library=session.problem.library,
        rounds=len(session.rounds),
        epochs=len(session.epochs) if session.plan.population > 1 else None,
        best=session.best.number if session.best else None,
        created_at=session.created_at,
        stopped=session.stopped,
    )

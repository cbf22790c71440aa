"""Summary of a stored session: what a list of sessions shows of it and of its revisions."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.history.summary import decision, decision_word, simulated, verdict_words
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.library import Library
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.timing import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionSummary:
    """One round in a list of sessions."""

    number: int
    """Number of the round."""
    strategy: str
    """Name of its strategy; ``first kernel`` while one was sought."""
    verdict: str
    """Verdict in words; ``no candidate`` or ``not evaluated`` without one."""
    passed: bool
    """True if the verdict is PASSED."""
    relation: str
    """Relation to the best before it, as a person reads it; empty where nothing passed."""
    is_better: bool
    """True if the revision became the best once approved."""
    decision: str
    """Decision at its gate: ``approved``, ``rejected`` …; empty where nobody was asked."""
    decided_by: str
    """Person or policy that decided: ``person:ada``, ``policy:auto``."""
    seconds: float | None
    """Seconds of one call, measured on a GPU here or elsewhere, else estimated; None if neither is known."""
    is_measured: bool
    """True if `seconds` were measured."""
    speedups: dict[str, float]
    """Speedup over each baseline, by its name; empty without times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """One row in a list of sessions."""

    name: str
    """Name of the session."""
    problem: str
    """Name of its problem."""
    problem_digest: str
    """SHA-256 of the problem's source."""
    workload_class: str
    """Class of the problem, as ``WorkloadClass`` spells it."""
    device: str
    """Name of the device that judged its candidates: ``simulator (sm_80)`` without a GPU."""
    is_simulated: bool
    """True if that device is the simulator."""
    author: str
    """Name of its author."""
    library: Library
    """Parts of the problem that its policy leaves to PyTorch."""
    rounds: int
    """Number of finished rounds."""
    epochs: int | None
    """Number of finished epochs; None for a chain."""
    first: int | None
    """Number of the first approved round; None without one."""
    best: int | None
    """Number of the round with the best revision; None before one passed."""
    created_at: str
    """Time of its start, ISO 8601."""
    stopped: str
    """Reason for its end; empty while it may go on."""
    revisions: tuple[RevisionSummary, ...]
    """Its rounds, in order."""

    @property
    def shown(self) -> RevisionSummary | None:
        """The best revision, else the last; None before the first round has ended."""
        last = self.revisions[-1] if self.revisions else None
        return next((item for item in self.revisions if item.number == self.best), last)

    @property
    def gain(self) -> float | None:
        """Time of the first approved revision ÷ that of the best; None where they were not timed alike."""
        by_number = {item.number: item for item in self.revisions}
        start, end = (by_number.get(-1 if number is None else number) for number in (self.first, self.best))
        if start is None or end is None or not start.seconds or not end.seconds:
            return None
        return start.seconds / end.seconds if start.is_measured == end.is_measured else None


def summarise(session: Session) -> SessionSummary:
    """Return the summary of a session."""
    first = next((item for item in session.rounds if item.approved), None)
    best = session.best
    return SessionSummary(
        name=session.name,
        problem=session.problem.name,
        problem_digest=session.problem.digest,
        workload_class=session.facts.workload_class.value,
        device=session.device.label,
        is_simulated=simulated(session),
        author=session.author,
        library=session.problem.library,
        rounds=len(session.rounds),
        epochs=len(session.epochs) if session.plan.population > 1 else None,
        first=first.number if first else None,
        best=best.number if best else None,
        created_at=session.created_at,
        stopped=session.stopped,
        revisions=tuple(_revision(session, item) for item in session.rounds),
    )


def _revision(session: Session, item: Round) -> RevisionSummary:
    made, compared = decision(item), item.comparison
    timing = _timing(session, item)
    estimated = compared.estimated_s if compared else None
    strategy = item.strategy or (item.candidate.strategy if item.candidate else None)
    return RevisionSummary(
        number=item.number,
        strategy=strategy.name if strategy else item.title,
        verdict=verdict_words(item),
        passed=bool(item.evaluation and item.evaluation.passed),
        relation=compared.words if compared else "",
        is_better=bool(compared and compared.relation.is_better),
        decision=decision_word(made),
        decided_by=made.by if made else "",
        seconds=timing.median_ms / 1e3 if timing else estimated,
        is_measured=timing is not None,
        speedups={one.name: one.speedup for one in timing.baselines} if timing else {},
    )


def _timing(session: Session, item: Round) -> Timing | None:
    """Return the round's times, those measured elsewhere before its own."""
    elsewhere = session.measured(item) if session.measurements else None
    found: Evaluation | None = elsewhere.evaluation if elsewhere else item.evaluation
    return found.timing if found else None

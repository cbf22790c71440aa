"""A session: a problem and the rounds spent on it. History only grows; what is best is computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from cutegen_nb.core.device import Device
from cutegen_nb.core.measurement import Measurement
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.round import Comparison, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a session must stop, whatever it has reached. None means no limit."""

    rounds: int = 6
    """Rounds."""
    wall_s: float | None = None
    """Seconds that the rounds take; the time between two runs is not counted."""
    tokens: int | None = None
    """Tokens asked and answered."""
    dollars: float | None = None
    """Dollars, by the price table of the author; requests without a known price count nothing."""
    gpu_s: float | None = None
    """Seconds that evaluations held a GPU; none are counted on the simulator."""
    person_s: float | None = None
    """Seconds that a person was waited for at gates."""


class Schedule(StrEnum):
    """What ends a stage."""

    PLATEAU = "plateau"
    """Rounds without a gain."""
    PAPER = "paper"
    """CuTeGen's fixed depth by workload class (arXiv 2604.01489), to reproduce it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a session goes from stage to stage."""

    schedule: Schedule = Schedule.PLATEAU
    """What ends a stage."""
    plateau_rounds: int = 2
    """Passing rounds in a row without a gain that are a plateau."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that happened, as one value."""

    name: str
    """A Python identifier, unique in its store."""
    problem: Problem
    """What is to be computed."""
    facts: ProblemFacts
    """What its trace says."""
    device: Device
    """What candidates run on."""
    author: str
    """Who writes."""
    budget: Budget
    """When to stop."""
    created_at: str
    """UTC, ISO 8601."""
    rounds: tuple[Round, ...] = ()
    """Finished rounds, in order."""
    plan: Plan = field(default_factory=Plan)
    """How it goes from stage to stage."""
    stopped: str = ""
    """The rule that ended the session, in a sentence; empty while it may go on."""
    measurements: tuple[Measurement, ...] = ()
    """What other machines found of its candidates, in the order it was taken in."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions where it was begun: python, torch, nvidia-cutlass-dsl, cutegen-nb."""

    @property
    def best(self) -> Round | None:
        """The round whose approved revision later rounds should start from.

        The newest that was better than what it was compared with: as a round is always compared with the
        best before it, the last improvement is the best. Once that one was measured elsewhere, the best of
        the measured takes its place. An approved revision that failed elsewhere is none to build on.
        """
        standing = [item for item in self.rounds if item.approved and not self._refused(item)]
        best = next((item for item in reversed(standing) if _is_better(item.comparison)), None)
        if best is None or self.measured(best) is None:
            return best
        digests = [item.candidate_digest for item in self.measurements if _is_better(item.comparison)]
        by_digest = {item.candidate.digest: item for item in standing if item.candidate}
        return next((by_digest[digest] for digest in reversed(digests) if digest in by_digest), best)

    def _refused(self, item: Round) -> bool:
        found = self.measured(item)
        return found is not None and not found.evaluation.passed

    def measured(self, item: Round) -> Measurement | None:
        """What was last found elsewhere of a round's candidate; None when nothing was."""
        digest = item.candidate.digest if item.candidate else ""
        return next((m for m in reversed(self.measurements) if m.candidate_digest == digest), None)


def _is_better(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.relation.is_better

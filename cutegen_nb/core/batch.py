"""Evaluations that are asked for here and made elsewhere: one JSON line a job, one a result."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.problem import Problem

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One candidate to be evaluated."""

    session: str
    """Name of its session."""
    revision: str
    """``r3``: its name there."""
    problem: Problem
    """What it is to compute."""
    candidate: Candidate
    """The kernel."""
    rival: Candidate | None = None
    """The best before it, to be timed beside it; None for a first one."""
    tier: Tier = Tier.B
    """How closely to look."""
    digest: str = field(init=False)
    """SHA-256 of problem, candidate, rival and tier: what was asked."""
    format: int = FORMAT
    """Of the line."""

    def __post_init__(self) -> None:
        rival = self.rival.digest if self.rival else ""
        asked = f"{self.problem.digest} {self.candidate.digest} {rival} {self.tier.value}"
        object.__setattr__(self, "digest", hashlib.sha256(asked.encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a job."""

    job: str
    """The job's digest."""
    session: str
    """As the job has it."""
    revision: str
    """As the job has it."""
    problem_digest: str
    """SHA-256 of the problem's source, taken where it was evaluated."""
    candidate_digest: str
    """SHA-256 of the candidate's source, taken where it was evaluated."""
    tier: Tier
    """How closely was looked."""
    evaluation: Evaluation | None
    """What was found; None when the evaluator failed."""
    error: str = ""
    """Why it failed, which says nothing about the candidate."""
    device: Device | None = None
    """On what."""
    rival_digest: str = ""
    """SHA-256 of the rival's source; empty for none."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions there."""
    measured_at: str = ""
    """UTC, ISO 8601."""
    format: int = FORMAT
    """Of the line."""

"""Jobs and results of a batch: evaluations requested here and made on another machine.

The file format is one JSON line a job, and one JSON line a result.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.library import library_option
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.search.comparison import Comparison

FORMAT = 1
"""Version of the line format; a line with another version is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One candidate to evaluate."""

    session: str
    """Name of the session."""
    revision: str
    """Name of the revision in the session: ``r3``."""
    problem: Problem
    """Problem that the candidate solves."""
    candidate: Candidate
    """Kernel to evaluate."""
    rival: Candidate | None = None
    """The best candidate before this one, timed beside it; None for a first candidate."""
    tier: Tier = Tier.B
    """Depth of the checks."""
    digest: str = field(init=False)
    """SHA-256 of the digests of problem, candidate and rival, of the tier, and of the library policy."""
    format: int = FORMAT
    """Version of the line format."""

    def __post_init__(self) -> None:
        rival = self.rival.digest if self.rival else ""
        asked = f"{self.problem.digest} {self.candidate.digest} {rival} {self.tier.value}"
        if self.problem.library:  # left out without a policy, so that digests of older jobs stay
            asked += f" {library_option(self.problem.library)}"
        object.__setattr__(self, "digest", hashlib.sha256(asked.encode()).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one job: an evaluation, or the evaluator's error."""

    job: str
    """Digest of the job."""
    session: str
    """Session name, copied from the job."""
    revision: str
    """Revision name, copied from the job."""
    problem_digest: str
    """SHA-256 of the problem's source, taken where it was evaluated."""
    candidate_digest: str
    """SHA-256 of the candidate's source, taken where it was evaluated."""
    tier: Tier
    """Depth of the checks."""
    evaluation: Evaluation | None
    """The evaluation; None when the evaluator failed."""
    error: str = ""
    """The evaluator's error, which says nothing about the candidate; empty without one."""
    device: Device | None = None
    """Device of the evaluation; None where it is not known."""
    rival_digest: str = ""
    """SHA-256 of the rival's source; empty for none."""
    environment: dict[str, str] = field(default_factory=dict)
    """Package versions on the machine of the evaluation."""
    measured_at: str = ""
    """Time of the evaluation: UTC, ISO 8601."""
    format: int = FORMAT
    """Version of the line format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One evaluation of one candidate of a session, made elsewhere and imported."""

    job: str
    """SHA-256 of the request: problem, candidate, tier, rival. Two results with the same digest answer the
    same job."""
    candidate_digest: str
    """SHA-256 of the candidate's source."""
    evaluation: Evaluation
    """The evaluation."""
    device: Device
    """Device of the evaluation."""
    comparison: Comparison | None
    """Comparison with the best measured before the import; None when the candidate did not pass."""
    measured_at: str
    """Time of the evaluation on the other machine: UTC, ISO 8601."""
    absorbed_at: str
    """Time of the import on this machine: UTC, ISO 8601."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions on the other machine: python, torch, nvidia-cutlass-dsl, cutegen-nb."""

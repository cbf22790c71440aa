"""Sessions: a problem and the rounds spent on it. History is append-only; the best round is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Decision, Epoch, NoReply, Reply, Round
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.stage import Stage

WITH_COUNTERS = (Stage.PROFILE, Stage.TUNE)
"""Stages whose prompts contain counters by line and the diagnosis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intermediate:
    """Result of a round in progress, kept so that an interrupted round need not ask for it again."""

    question: str
    """Kind of the question, and digests of all that the answer depends on."""
    result: Reply | NoReply | Evaluation | Profile | Decision
    """The answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits that end a session. None means no limit."""

    rounds: int = 6
    """Largest number of rounds."""
    wall_s: float | None = None
    """Wall time of the rounds in seconds; the time between two runs is not counted."""
    tokens: int | None = None
    """Tokens of prompts and replies together."""
    dollars: float | None = None
    """US dollars at the author's prices; requests without a known price count nothing."""
    gpu_s: float | None = None
    """Seconds that evaluations held a GPU; none are counted on the simulator."""
    person_s: float | None = None
    """Seconds of waiting for a person at the gates."""
    epochs: int | None = None
    """Epochs of a population."""


class Schedule(StrEnum):
    """Rule that ends a stage, and that decides when prompts show counters by line and their diagnosis."""

    PLATEAU = "plateau"
    """End a stage after rounds without a gain."""
    PAPER = "paper"
    """End a stage at CuTeGen's fixed depth by workload class (arXiv 2604.01489), to reproduce the paper."""
    NEVER = "never"
    """As PLATEAU without the stage PROFILE: no prompt shows counters by line."""
    START = "start"
    """Show counters from the first passing kernel on: the stage PROFILE begins at once."""


class PromptPart(StrEnum):
    """Part of a prompt that an ablation leaves out."""

    GUIDE = "guide"
    """Chapters of the CuTe DSL guide."""
    HISTORY = "history"
    """Earlier rounds and their outcomes."""
    ROOFLINE = "roofline"
    """The device's peaks, the least times of the problem, and the diagnosis of the parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Rules for going from stage to stage, and the parts that prompts leave out."""

    schedule: Schedule = Schedule.PLATEAU
    """Rule that ends a stage."""
    plateau_rounds: int = 2
    """Number of passing rounds in a row without a gain that make a plateau."""
    population: int = 1
    """Number of kernels that evolve side by side; 1 for a chain."""
    elites: int = 1
    """Number of fastest members that every selection keeps."""
    stagnant_epochs: int = 2
    """Epochs in a row without a gain after which a population restarts, and at the second time ends."""
    without: tuple[PromptPart, ...] = ()
    """Parts that prompts leave out; empty outside an ablation."""

    def shows_counters(self, stage: Stage | None) -> bool:
        """Return whether prompts of `stage` contain counters by line and the diagnosis."""
        return stage in WITH_COUNTERS and self.schedule is not Schedule.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A problem with every round and measurement so far."""

    name: str
    """Python identifier, unique in its store."""
    problem: Problem
    """The problem."""
    facts: ProblemFacts
    """Facts from the problem's trace."""
    device: Device
    """Device of its evaluations."""
    author: str
    """Name of the author."""
    budget: Budget
    """Limits of the session."""
    created_at: str
    """Creation time: UTC, ISO 8601."""
    rounds: tuple[Round, ...] = ()
    """Finished rounds, in order."""
    plan: Plan = field(default_factory=Plan)
    """Rules for going from stage to stage."""
    stopped: str = ""
    """Reason for the end of the session, in a sentence; empty while it may go on."""
    measurements: tuple[Measurement, ...] = ()
    """Evaluations made on other machines, in order of import."""
    environment: dict[str, str] = field(default_factory=dict)
    """Versions at the start: python, torch, nvidia-cutlass-dsl, cutegen-nb."""
    epochs: tuple[Epoch, ...] = ()
    """Finished epochs, in order; none in a chain."""
    compared_with: int | None = None
    """Number of the round that a person compares all others with; None for each one's parent."""
    draft: str = ""
    """Words and edits that a person has typed in the panel and not sent, as its JSON; empty in a bundle."""
    server: str = ""
    """Address of the model's server, without user name and password; empty without one, and in a bundle."""

    def round_of(self, digest: str, before: int | None = None) -> Round | None:
        """Return the round whose candidate has this digest: the newest approved one, else the newest.

        With `before`, only rounds of smaller numbers count.
        """
        newest = None
        for item in reversed(self.rounds):
            # The number first: a candidate is searched for among the attempts, and a session has many rounds.
            if before is not None and item.number >= before:
                continue
            candidate = item.candidate
            if candidate is None or candidate.digest != digest:
                continue
            if item.approved:
                return item
            newest = newest or item
        return newest

    def passing(self, label: str) -> Round | None:
        """Return the round `label` (``r3`` or ``3``) if its candidate passed or was overruled, else None."""
        number = label.strip().removeprefix("r")
        found = next((item for item in self.rounds if str(item.number) == number), None)
        if found is None or found.evaluation is None:
            return None
        return found if found.evaluation.passed or found.approved else None

    @property
    def best(self) -> Round | None:
        """The round whose approved revision later rounds should start from.

        Each round is compared with the best before it, so the newest improvement is the best. The rounds of
        one epoch are compared with the best before the epoch, so the largest improvement counts, until the
        epoch is over and its selection names the fastest. Once the best was measured elsewhere, the best of
        the measured ones replaces it. An approved revision that failed elsewhere never counts.
        """
        standing = [item for item in self.rounds if item.approved and not self._refused(item)]
        best = self._fastest(standing)
        if best is None or self.measured(best) is None:
            return best
        digests = [item.candidate_digest for item in self.measurements if _is_better(item.comparison)]
        by_digest = {item.candidate.digest: item for item in standing if item.candidate}
        return next((by_digest[digest] for digest in reversed(digests) if digest in by_digest), best)

    def _fastest(self, standing: Sequence[Round]) -> Round | None:
        """Return the fastest of `standing` by the comparisons of rounds and epochs."""
        over = self.epochs[-1].number if self.epochs else 0
        running = [item for item in standing if item.slot and item.slot.epoch > over]
        gains = [item for item in running if _is_better(item.comparison)]
        if gains:
            return max(gains, key=lambda item: (item.comparison.speedup if item.comparison else None) or 1.0)
        champions = (epoch.champion for epoch in reversed(self.epochs))
        chosen = (self.round_of(digest) for digest in champions if digest)
        found = next((item for item in chosen if item in standing), None)
        return found or next((item for item in reversed(standing) if _is_better(item.comparison)), None)

    def _refused(self, item: Round) -> bool:
        found = self.measured(item)
        return found is not None and not found.evaluation.passed

    def measured(self, item: Round) -> Measurement | None:
        """Return the newest measurement of a round's candidate; None without one."""
        digest = item.candidate.digest if item.candidate else ""
        return next((m for m in reversed(self.measurements) if m.candidate_digest == digest), None)


def _is_better(comparison: Comparison | None) -> bool:
    return comparison is not None and comparison.relation.is_better

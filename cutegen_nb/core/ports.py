"""The effects, as protocols. Each is implemented once or more at the rim and chosen in wiring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Attempt, Comparison, Decision, Prompt, Reply, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

Progress = Callable[[str], None]
"""Told, in a short phrase, what is being done now."""


Guide = Callable[[str, str, str], str]
"""Chapters of the CuTe DSL guide, as Markdown, for (source at hand, strategy's words, error text); each
may be empty, and so may the answer."""


class Author(Protocol):
    """Who writes candidates."""

    name: str
    """As recorded with each candidate."""

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """Strategies it can carry out for this problem, in the order to try them.

        Raises Declined, with one sentence, when it can write no kernel for the problem at all.
        """
        ...

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Answer a prompt. Raises AuthorError; `progress` hears of a streamed reply's growth."""
        ...


class Evaluator(Protocol):
    """Where candidates are compiled, run and judged."""

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem. Raises ProblemError when it cannot be used."""
        ...

    async def device(self) -> Device:
        """What candidates run on. Raises DeviceUnavailable."""
        ...

    async def evaluate(  # noqa: PLR0913 - what may be asked of an evaluation, the rest by name
        self,
        problem: Problem,
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        profile: bool = False,
        rival: Candidate | None = None,
    ) -> Evaluation:
        """Judge a candidate as closely as `tier` says.

        `rival` is the best before it: on a GPU it is timed in the same turns, so that the two are compared
        in one run.

        `profile` asks for a GPU's counters of a candidate that passes; the simulator counts always. Where
        there are none to be had the evaluation's `profile` is None. Every fault of the candidate is a
        verdict; raises EvaluatorError for ours.
        """
        ...

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:
        """A GPU's counters of one call of a candidate that passed before; it is not judged again.

        Raises EvaluatorError, which says why, where there are none to be had.
        """
        ...

    async def close(self) -> None:
        """End every process it started."""
        ...


class Approver(Protocol):
    """Who decides at the gates: a person or a policy."""

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        """Decide on the prompt of the next round."""
        ...

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        """Decide on the candidate a round ended with."""
        ...


class Store(Protocol):
    """Where sessions are kept."""

    def create(self, session: Session) -> None:
        """Add a session without rounds. Raises StoreError."""
        ...

    def append(self, session_name: str, finished: Round) -> None:
        """Add a finished round in one transaction. Raises StoreError."""
        ...

    def stop(self, session_name: str, reason: str) -> None:
        """Record why a session ended. Raises StoreError."""
        ...

    def load(self, session_name: str) -> Session:
        """Read a session. Raises StoreError when there is none of that name."""
        ...

    def names(self) -> tuple[str, ...]:
        """Names of the sessions, oldest first."""
        ...


class Clock(Protocol):
    """Time, so that tests can hold it still."""

    def now(self) -> str:
        """UTC, ISO 8601, whole seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

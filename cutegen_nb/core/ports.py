"""Protocols for side effects: author, evaluator, approver, store and clock.

``wiring.py`` chooses the implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Attempt, Decision, Epoch, Prompt, Reply, Round
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.session import Intermediate, Session
from cutegen_nb.core.strategy import Strategy

Progress = Callable[[str], None]
"""Callback that receives a short phrase on the current activity."""


class ReplyGrowth(str):
    """Progress phrase on a streamed reply, with the text that has arrived so far."""

    __slots__ = ("written",)

    written: str
    """The reply so far, or the reasoning before it."""

    def __new__(cls, phrase: str, written: str) -> Self:
        """Make the phrase with its text."""
        made = super().__new__(cls, phrase)
        made.written = written
        return made


FIRST_KERNEL = "first-kernel"
"""Name of the request for a first kernel, in place of a strategy's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideRequest:
    """Facts that select the sections of the CuTe DSL guide and a worked example; each may be empty."""

    source: str = ""
    """Source of the current kernel."""
    strategy: str = ""
    """Text of the requested strategy."""
    wanted: str = ""
    """Name of the requested strategy, or `FIRST_KERNEL`; empty where a failure is asked about."""
    error: str = ""
    """Error, in the words the author is told."""
    classes: tuple[str, ...] = ()
    """Workload classes, as ``WorkloadClass`` spells them."""
    dtypes: tuple[str, ...] = ()
    """Element types of the problem's inputs."""
    architecture: str = ""
    """Target architecture, as in ``sm_90a``."""


Guide = Callable[[GuideRequest], str]
"""Function that returns sections of the CuTe DSL guide as Markdown; empty where none fits."""


class Author(Protocol):
    """Writer of candidates: a model, a person, a template or a recording."""

    name: str
    """Name recorded with each candidate."""

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """List the strategies that the author can carry out for this problem, in the order to try them.

        `library` are the parts that the problem's policy leaves to PyTorch.

        Raises Declined, with one sentence, when the author can write no kernel for the problem at all.
        """
        ...

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Answer a prompt; `progress` receives the growth of a streamed reply. Raises AuthorError."""
        ...


class Evaluator(Protocol):
    """Compiler, runner and judge of candidates."""

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem. Raises ProblemError when it cannot be used."""
        ...

    async def device(self) -> Device:
        """Return the device that candidates run on. Raises DeviceUnavailable."""
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
        only_if_faster: bool = False,
    ) -> Evaluation:
        """Judge a candidate at the depth of `tier`.

        `rival` is the best candidate before it. On a GPU both are timed in the same turns of one run.

        With `only_if_faster`, a candidate whose first timing shows it no faster than `rival` skips the checks
        above tier A. The evaluation then says tier A.

        `profile` asks for a GPU's counters of a candidate that passes; the simulator always counts. Where no
        counters are available, the evaluation's `profile` is None. A fault of the candidate is a verdict;
        raises EvaluatorError for a fault of the evaluator.
        """
        ...

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:
        """Take a GPU's counters of one call of a candidate that passed before, without judging it again.

        Raises EvaluatorError, with the reason, where no counters are available.
        """
        ...

    async def close(self) -> None:
        """End every process that the evaluator started."""
        ...


class Approver(Protocol):
    """Decider at the gates: a person or a policy."""

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        """Decide on the prompt of the next round."""
        ...

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        """Decide on the candidate of a round."""
        ...

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        """Decide on the members that an epoch keeps.

        `draft` holds the decisions made so far at this gate. APPROVE and STOP end the gate; PIN, DROP,
        REQUEST, FORBID and BUDGET change the draft, which is shown again.
        """
        ...


class Store(Protocol):
    """Storage of sessions."""

    def create(self, session: Session) -> None:
        """Add a session without rounds. Raises StoreError."""
        ...

    def append(self, session_name: str, finished: Round) -> None:
        """Add a finished round, and outside an epoch forget its intermediates. Raises StoreError."""
        ...

    def amend(self, session_name: str, decided: Round) -> None:
        """Replace the last round, at whose gate a person had stopped, by itself with its decision.

        Raises StoreError.
        """
        ...

    def append_epoch(self, session_name: str, finished: Epoch) -> None:
        """Add a finished epoch, and forget the intermediates of its rounds. Raises StoreError."""
        ...

    def keep(self, session_name: str, result: Intermediate) -> None:
        """Add a result of a round in progress. Raises StoreError."""
        ...

    def intermediates(self, session_name: str) -> tuple[Intermediate, ...]:
        """Return the results of the rounds in progress, in the order they came. Raises StoreError."""
        ...

    def stop(self, session_name: str, reason: str) -> None:
        """Record why a session ended. Raises StoreError."""
        ...

    def asks(self, session_name: str, author: str, server: str) -> None:
        """Record the author of the rounds to come, and its server's address. Raises StoreError."""
        ...

    def load(self, session_name: str) -> Session:
        """Read a session. Raises StoreError when there is none of that name."""
        ...

    def names(self) -> tuple[str, ...]:
        """Names of the sessions, oldest first."""
        ...


class Clock(Protocol):
    """Source of time, replaceable in tests."""

    def now(self) -> str:
        """Current time: UTC, ISO 8601, whole seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        ...

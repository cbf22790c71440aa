"""A model that says what it was told to say, and evaluations that were recorded before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy


class ScriptedModel:
    """An author that answers from a list: a text, a whole reply, or an error to raise.

    Keeps the prompts it was given in `prompts`.  When the list is used up it declines.
    """

    def __init__(
        self,
        answers: Iterable[str | Reply | AuthorError],
        menu: tuple[Strategy, ...] = (),
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.prompts: list[Prompt] = []
        self._answers = iter(answers)
        self._menu = menu

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """The menu it was made with."""
        return self._menu

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:  # noqa: ARG002 - the port's
        """The next answer of the list."""
        self.prompts.append(prompt)
        answer = next(self._answers, None)
        if answer is None:
            message = "the script has no more answers"
            raise Declined(message)
        if isinstance(answer, AuthorError):
            raise answer
        progress("reply received")
        return Reply(text=answer, usage=Usage()) if isinstance(answer, str) else answer


class RecordedEvaluator:
    """Gives evaluations that were made before, by the digest of the source."""

    def __init__(
        self,
        facts: ProblemFacts,
        device: Device,
        evaluations: Mapping[str, Evaluation],
        closer: Mapping[str, Evaluation] | None = None,
        counted: Mapping[str, Profile] | None = None,
    ) -> None:
        """Keep what is given out.

        `closer` are the evaluations above tier A, where they differ; `counted` what a GPU's profiler gave.
        """
        self._facts = facts
        self._device = device
        self._evaluations = dict(evaluations)
        self._closer = dict(closer or {})
        self._counted = dict(counted or {})
        self.tiers: list[Tier] = []
        """Of every evaluation asked for, in order."""
        self.rivals: list[Candidate | None] = []
        """Given with each of them."""
        self.profiled: list[str] = []
        """Digests of the candidates that were judged and counted in one, in order."""
        self.counts: list[str] = []
        """Digests of the candidates that were counted alone, in order."""
        self.closed = False

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:  # noqa: ARG002 - the port's
        """The facts it was made with."""
        return self._facts

    async def device(self) -> Device:
        """The device it was made with."""
        return self._device

    async def evaluate(  # noqa: PLR0913 - the port's
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        profile: bool = False,
        rival: Candidate | None = None,
    ) -> Evaluation:
        """The recorded evaluation, that of `tier` where one was given. Raises EvaluatorError for neither."""
        progress("looking up the recorded evaluation")
        if candidate.digest not in self._evaluations:
            message = f"no evaluation is recorded for candidate {candidate.digest[:12]}: evaluate it for real"
            raise EvaluatorError(message)
        self.tiers.append(tier)
        self.rivals.append(rival)
        found = self._evaluations[candidate.digest]
        if tier is not Tier.A:
            found = replace(self._closer.get(candidate.digest, found), tier=tier)
        if not profile:
            return found
        self.profiled.append(candidate.digest)
        return replace(found, profile=self._counted.get(candidate.digest, found.profile))

    async def count(
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
    ) -> Profile:
        """The counters it was made with. Raises EvaluatorError for none."""
        progress("looking up the recorded counters")
        self.counts.append(candidate.digest)
        if candidate.digest not in self._counted:
            message = f"no counters are recorded for candidate {candidate.digest[:12]}: profile it for real"
            raise EvaluatorError(message)
        return self._counted[candidate.digest]

    async def close(self) -> None:
        """Nothing to end; remembers that it was asked."""
        self.closed = True

"""Scripted model and recorded evaluator for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy


class ScriptedModel:
    """Author that answers from a list: a text, a whole reply, or an error to raise.

    `prompts` collects the prompts of all requests. Raises Declined when the list is used up.
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

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """Return the menu given to the constructor."""
        return self._menu

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:  # noqa: ARG002 - the port's
        """Return or raise the next answer of the list."""
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
    """Evaluator that returns given evaluations, found by the digest of the candidate's source."""

    def __init__(
        self,
        facts: ProblemFacts,
        device: Device,
        evaluations: Mapping[str, Evaluation],
        closer: Mapping[str, Evaluation] | None = None,
        counted: Mapping[str, Profile] | None = None,
    ) -> None:
        """Store the evaluations.

        `closer` holds evaluations above tier A, where they differ. `counted` holds counters of a GPU's
        profiler.
        """
        self._facts = facts
        self._device = device
        self._evaluations = dict(evaluations)
        self._closer = dict(closer or {})
        self._counted = dict(counted or {})
        self.tiers: list[Tier] = []
        """Tier of every requested evaluation, in order."""
        self.rivals: list[Candidate | None] = []
        """Rival of every requested evaluation, in order."""
        self.profiled: list[str] = []
        """Digests of the candidates evaluated with `profile`, in order."""
        self.counts: list[str] = []
        """Digests of the candidates passed to `count`, in order."""
        self.closed = False
        """True once the evaluator was closed."""

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:  # noqa: ARG002 - the port's
        """Return the facts given to the constructor."""
        return self._facts

    async def device(self) -> Device:
        """Return the device given to the constructor."""
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
        only_if_faster: bool = False,
    ) -> Evaluation:
        """Return the evaluation for `tier`, or else the one for tier A. Raises EvaluatorError for neither."""
        progress("looking up the recorded evaluation")
        if candidate.digest not in self._evaluations:
            message = f"no evaluation is recorded for candidate {candidate.digest[:12]}: evaluate it for real"
            raise EvaluatorError(message)
        self.tiers.append(tier)
        self.rivals.append(rival)
        found = self._evaluations[candidate.digest]
        if only_if_faster and not self._is_faster(found, rival):
            return replace(found, tier=Tier.A)
        if tier is not Tier.A:
            found = replace(self._closer.get(candidate.digest, found), tier=tier)
        if not profile:
            return found
        self.profiled.append(candidate.digest)
        return replace(found, profile=self._counted.get(candidate.digest, found.profile))

    def _is_faster(self, found: Evaluation, rival: Candidate | None) -> bool:
        before = self._evaluations.get(rival.digest) if rival else None
        if before is None or before.timing is None or found.timing is None:
            return True
        return found.timing.median_ms < before.timing.median_ms

    async def count(
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
    ) -> Profile:
        """Return the counters given to the constructor. Raises EvaluatorError without any."""
        progress("looking up the recorded counters")
        self.counts.append(candidate.digest)
        if candidate.digest not in self._counted:
            message = f"no counters are recorded for candidate {candidate.digest[:12]}: profile it for real"
            raise EvaluatorError(message)
        return self._counted[candidate.digest]

    async def close(self) -> None:
        """Record the call; there is nothing to close."""
        self.closed = True

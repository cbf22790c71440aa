"""Replay of a stored session: its replies as an author, its evaluations as an evaluator.

No model is asked and nothing runs. Each evaluation says where and when it was recorded.
"""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import AuthorError, Declined, EvaluatorError
from cutegen_nb.core.evaluation import Evaluation, NotJudged, NotJudgedReason, Tier
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Attempt, Prompt, Reply, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

ANOTHER_PROMPT = "this was the answer to another prompt than today's"
"""Note on a reply whose prompt has changed since the recording."""


class ReplayAuthor:
    """Author that returns the replies of a recorded session in their order, round by round."""

    def __init__(self, recorded: Session) -> None:
        self.name = f"replay:{recorded.name}"
        self._recorded = recorded
        self._given: dict[int, int] = {}

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """List the strategies that were tried, in their order."""
        tried = {item.strategy.name: item.strategy for item in self._recorded.rounds if item.strategy}
        return tuple(tried.values())

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Return the reply recorded at this place, or raise the recorded error with its message.

        Raises AuthorError too when the session departs from the recorded one, and Declined at its end.
        """
        number = len(session.rounds)
        attempt = self._next(number, prompt)
        progress(f"the recorded reply of r{number}")
        if attempt.reply is None:
            declined = attempt.evaluation is not None and attempt.evaluation.outcome == NotJudged(
                reason=NotJudgedReason.DECLINED
            )
            raise (Declined if declined else AuthorError)(attempt.problem)
        if attempt.prompt.digest == prompt.digest:
            return attempt.reply
        return replace(attempt.reply, notes=(*attempt.reply.notes, ANOTHER_PROMPT))

    def _next(self, number: int, prompt: Prompt) -> Attempt:
        name = self._recorded.name
        if number >= len(self._recorded.rounds):
            message = f"the recorded session {name} has ended: it has {len(self._recorded.rounds)} rounds"
            raise Declined(message)
        asked = [
            item for item in self._recorded.rounds[number].attempts if item.purpose not in {"edit", "restore"}
        ]
        place = self._given.get(number, 0)
        if place >= len(asked) or asked[place].purpose != prompt.purpose:
            was = f"a request to {asked[place].purpose}" if place < len(asked) else "no further request"
            message = (
                f"the replay of {name} ends at r{number}: {was} was recorded there and the session now asks "
                f"to {prompt.purpose}; the version of cutegen-nb that recorded it replays all of it"
            )
            raise AuthorError(message)
        self._given[number] = place + 1
        return asked[place]


class RecordedEvaluations:
    """Evaluator that returns recorded evaluations, found by the digest of the candidate's source."""

    def __init__(self, recorded: Session) -> None:
        self._recorded = recorded
        self._found: dict[str, Evaluation] = {}
        self._faults: dict[str, str] = {}
        self._profiles: dict[str, Profile] = {}
        for item in recorded.rounds:
            for attempt in item.attempts:
                self._keep(item, attempt)

    def _keep(self, item: Round, attempt: Attempt) -> None:
        parent = attempt.prompt.parent
        if parent is not None and item.parent_profile is not None:
            self._profiles[parent.digest] = item.parent_profile
        if attempt.candidate is None:
            return
        if attempt.evaluation is None:
            self._faults[attempt.candidate.digest] = attempt.problem
            return
        where = attempt.evaluation.device or self._recorded.device.label
        words = f"recorded {item.started_at} on {where}, session {self._recorded.name}, r{item.number}"
        self._found[attempt.candidate.digest] = replace(attempt.evaluation, recorded=words)

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:  # noqa: ARG002 - the port's
        """Facts of the recorded problem."""
        return self._recorded.facts

    async def device(self) -> Device:
        """Device of the recorded session."""
        return self._recorded.device

    async def evaluate(  # noqa: PLR0913 - the port's
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        profile: bool = False,
        rival: Candidate | None = None,  # noqa: ARG002 - was timed beside it when it was recorded
        only_if_faster: bool = False,  # noqa: ARG002 - nothing is timed here
    ) -> Evaluation:
        """Return the evaluation of a candidate with this source. Raises EvaluatorError when there is none."""
        progress("the recorded evaluation")
        found = self._found.get(candidate.digest)
        if found is None:
            recorded = self._faults.get(candidate.digest)
            message = recorded or (
                f"no evaluation of candidate {candidate.digest[:12]} is recorded in {self._recorded.name}: "
                "evaluate it with `cutegen-nb evaluate`"
            )
            raise EvaluatorError(message)
        if profile and found.profile is None and candidate.digest in self._profiles:
            found = replace(found, profile=self._profiles[candidate.digest])
        # The seconds of an evaluation count once, with the tier of the recording: asked for at tier A again,
        # they are 0.
        return found if tier is not Tier.A or found.tier is Tier.A else replace(found, duration_s=0.0)

    async def count(
        self,
        problem: Problem,  # noqa: ARG002 - the port's
        candidate: Candidate,
        progress: Progress,
    ) -> Profile:
        """Return the counters recorded for this revision as a parent. Raises EvaluatorError without any."""
        progress("the recorded counters")
        found = self._profiles.get(candidate.digest)
        if found is None:
            message = (
                f"no counters of candidate {candidate.digest[:12]} are recorded in {self._recorded.name}"
            )
            raise EvaluatorError(message)
        return found

    async def close(self) -> None:
        """Do nothing: a replay starts no process."""

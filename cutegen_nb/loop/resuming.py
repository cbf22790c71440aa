"""Effects that store the results of a round in progress, and answer from them after an interruption.

A round is stored when it ends. Until then its replies, evaluations and a person's decisions are stored one by
one, and the error of an author that gave no reply. When an interrupted round runs again, the same questions
come up, and each stored result answers one of them. A question that has changed since is asked anew; a
person's edits of the kernel before follow the new one.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import AuthorError, Declined
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Approver, Author, Clock, Evaluator, Progress, Store
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, NoReply, Prompt, Reply
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.session import Intermediate, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.prompting.render import edited_prompt

T = TypeVar("T")


def resumable(effects: Effects, session_name: str, store: Store, *, evaluations: int = 1) -> Effects:
    """Return the effects with results kept in the store until their round is stored. Raises StoreError.

    At most `evaluations` kernels are judged at once; the others wait for their turn. The clock runs ahead by
    the seconds that kept replies and evaluations took, so that a round's time includes them.
    """
    kept = _Kept(store, session_name)
    return replace(
        effects,
        author=_KeptReplies(effects.author, kept),
        evaluator=_KeptEvaluations(effects.evaluator, kept, asyncio.Semaphore(evaluations)),
        approver=_KeptDecisions(effects.approver, kept),
        clock=_KeptClock(effects.clock, kept),
    )


def stop_round(store: Store, session_name: str, words: str, sent: Prompt | None, by: str) -> Session:
    """Store the reason of a person's stop within a round, and return the stored session. Raises StoreError.

    `sent` is the request that was out, if one was: it is asked about again when the session goes on.
    """
    if sent is not None:
        stop = Decision(gate="prompt", action=Action.STOP, by=by)
        store.keep(session_name, Intermediate(question=_about(sent), result=stop))
    store.stop(session_name, words)
    return store.load(session_name)


def _about(prompt: Prompt) -> str:
    """Name of the question whether a request is sent."""
    return f"prompt {prompt.digest}"


@dataclass(slots=True)
class _Kept:
    """Results of the interrupted round by question, each given out once, and the place for new ones."""

    store: Store
    session_name: str
    left: defaultdict[str, deque[Intermediate]] = field(init=False)
    seconds: float = 0.0
    """Seconds that the replies and evaluations given out took."""

    def __post_init__(self) -> None:
        self.left = defaultdict(deque)
        for item in self.store.intermediates(self.session_name):
            self.left[item.question].append(item)

    def take(self, question: str, *kinds: type[T]) -> T | None:
        """Return the next kept answer to a question; None where none is left."""
        if not self.left[question]:
            return None
        result = self.left[question].popleft().result
        if isinstance(result, Reply):
            self.seconds += result.usage.seconds
        elif isinstance(result, Evaluation):
            self.seconds += result.duration_s
        return result if isinstance(result, kinds) else None

    def is_stop_next(self, question: str) -> bool:
        """Return whether the next kept answer to a question is a person's stop."""
        left = self.left[question]
        return bool(left) and isinstance(made := left[0].result, Decision) and made.action is Action.STOP

    def take_unasked(self) -> Decision | None:
        """Return a person's next edit or words on a kernel that no question was about again; None without."""
        for answers in self.left.values():
            made = answers[0].result if answers else None
            if not isinstance(made, Decision) or made.gate != "revision":
                continue
            if made.action in {Action.EDIT, Action.STEER}:
                answers.popleft()
                return made
        return None

    def keep(self, question: str, result: Reply | NoReply | Evaluation | Profile | Decision) -> None:
        self.store.keep(self.session_name, Intermediate(question=question, result=result))


@dataclass(frozen=True, slots=True)
class _KeptClock:
    """Implements ``core.ports.Clock``."""

    clock: Clock
    kept: _Kept

    def now(self) -> str:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic() + self.kept.seconds


class _KeptReplies:
    """Implements ``core.ports.Author``."""

    def __init__(self, author: Author, kept: _Kept) -> None:
        self.name = author.name
        self._author = author
        self._kept = kept

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        return self._author.menu(facts, library)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        # The question holds the author's name, so that a reply is not reused after the model was changed.
        question = f"reply {self.name} {prompt.digest}"
        found = self._kept.take(question, Reply, NoReply)
        if isinstance(found, Reply):
            progress("the reply came before the interruption")
            return found
        if isinstance(found, NoReply):
            raise (Declined if found.declined else AuthorError)(found.reason)
        try:
            reply = await self._author.write(prompt, session, progress)
        except AuthorError as error:
            # The round may go on to a gate, where a person's edits build on what there is without the reply.
            self._kept.keep(question, NoReply(reason=str(error), declined=isinstance(error, Declined)))
            raise
        self._kept.keep(question, reply)
        return reply


@dataclass(frozen=True, slots=True)
class _KeptEvaluations:
    """Implements ``core.ports.Evaluator``."""

    evaluator: Evaluator
    kept: _Kept
    turns: asyncio.Semaphore

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        return await self.evaluator.facts(problem, progress)

    async def device(self) -> Device:
        return await self.evaluator.device()

    async def evaluate(  # noqa: PLR0913 - the port's arguments
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
        against = rival.digest if rival else ""
        question = f"evaluation {candidate.digest} {tier.value} {profile} {against} {only_if_faster}"
        found = self.kept.take(question, Evaluation)
        if found is not None:
            progress("the kernel was judged before the interruption")
            return found
        if self.turns.locked():
            progress("waiting until another kernel is judged")
        async with self.turns:
            found = await self.evaluator.evaluate(
                problem,
                candidate,
                progress,
                tier,
                profile=profile,
                rival=rival,
                only_if_faster=only_if_faster,
            )
        self.kept.keep(question, found)
        return found

    async def count(self, problem: Problem, candidate: Candidate, progress: Progress) -> Profile:
        question = f"counters {candidate.digest}"
        counted = self.kept.take(question, Profile)
        if counted is not None:
            return counted
        async with self.turns:
            counted = await self.evaluator.count(problem, candidate, progress)
        self.kept.keep(question, counted)
        return counted

    async def close(self) -> None:
        await self.evaluator.close()


@dataclass(frozen=True, slots=True)
class _KeptDecisions:
    """Implements ``core.ports.Approver``; keeps what a person decided, because a policy costs nothing."""

    approver: Approver
    kept: _Kept

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        question = _about(prompt)
        made, wants_it_back = self._made(question)
        if made is not None and not (wants_it_back and self._is_unanswered(prompt, made)):
            return made
        edited = made is not None and made.action is Action.EDIT
        offered = edited_prompt(prompt, made.edited) if made and edited else prompt
        decided = self._keep(question, await self.approver.review_prompt(session, offered))
        return made if made and edited and decided.action is Action.APPROVE else decided

    def _made(self, question: str) -> tuple[Decision | None, bool]:
        """Return the decision on a request, and whether a person stopped since, while it was out."""
        made, wants_it_back = self._take(question), False
        while self.kept.is_stop_next(question):
            self._take(question)
            again = None if self.kept.is_stop_next(question) else self._take(question)
            wants_it_back = again is None
            is_same = (
                made is not None and made.action is Action.EDIT and again and again.action is Action.APPROVE
            )
            made = made if again is None or is_same else again
        return made, wants_it_back

    def _is_unanswered(self, prompt: Prompt, made: Decision) -> bool:
        """Return whether a decision sent a request to which no reply is kept."""
        if made.action not in {Action.APPROVE, Action.EDIT}:
            return False
        sent = edited_prompt(prompt, made.edited) if made.action is Action.EDIT else prompt
        return not any(
            kept and question.startswith("reply ") and question.endswith(sent.digest)
            for question, kept in self.kept.left.items()
        )

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        last = next((item.candidate for item in reversed(attempts) if item.candidate), None)
        question = f"revision {len(attempts)} {last.digest if last else ''}"
        found = self._take(question)
        # What a person made of a kernel that came otherwise is kept. In an epoch it may be another slot's.
        if found is None and session.plan.population == 1:
            found = self.kept.take_unasked()
        return found or self._keep(
            question, await self.approver.review_revision(session, attempts, comparison)
        )

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        question = f"epoch {draft.number} {len(draft.decisions)}"
        return self._take(question) or self._keep(question, await self.approver.review_epoch(session, draft))

    def _take(self, question: str) -> Decision | None:
        return self.kept.take(question, Decision)

    def _keep(self, question: str, decision: Decision) -> Decision:
        # A decision to stop is not kept: the resumed session would stop at the same gate again.
        if decision.by.startswith("person:") and decision.action is not Action.STOP:
            self.kept.keep(question, decision)
        return decision

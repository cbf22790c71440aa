"""Campaign runner: each problem in turn under each variant, recorded before the next one begins."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cutegen_nb.core.errors import (
    AuthorError,
    ConfigurationError,
    CutegenError,
    DamagedSession,
    Declined,
    DeviceUnavailable,
    ProblemError,
    RateLimited,
    Refused,
    StoreError,
    Unreachable,
)
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.campaign import CampaignBudget, CampaignEntry, ProblemState
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.campaign.budget import Spending, budget_left, spending_of, together, total_spent
from cutegen_nb.loop.campaign.variant_run import CampaignProblem, VariantRun
from cutegen_nb.loop.campaign.variants import Variant
from cutegen_nb.loop.campaign.watched_author import WatchedAuthor
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.session import Replan, open_session
from cutegen_nb.loop.spending import budget_spent

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Error numbers of a full disk and of a spent quota."""
_TRIED_ON_REQUEST = frozenset({ProblemState.DECLINED, ProblemState.UNUSABLE, ProblemState.FAILED})
"""States of problems that are tried again only with `CampaignRules.again`."""


def one_at_a_time(population: int) -> int:  # noqa: ARG001 - as `CampaignRules.slots` is called
    """Have the slots of an epoch run one after another, whatever the size of the population."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRules:
    """Rules that every problem of a campaign is run by."""

    budget: Budget
    """Limits of each problem."""
    total: CampaignBudget
    """Limits over all problems and variants."""
    replan: Replan
    """Function that applies the options to a session's plan, before the variant does."""
    repairs: int = 2
    """Repairs of a failed candidate in one round, at most."""
    workers: int = 1
    """Kernels that are judged at once, at most."""
    slots: Callable[[int], int] = one_at_a_time
    """Function that returns the slots of an epoch that run side by side, from the size of the population."""
    again: bool = False
    """True to try problems again that could not be used, were declined or failed."""


class CampaignObserver(Protocol):
    """Observer of a campaign, for the terminal."""

    def begun(self, item: CampaignProblem, variant: Variant) -> None:
        """Take notice that a problem begins or goes on."""
        ...

    def round_finished(self, session: Session, item: Round) -> None:
        """Take notice of a stored round."""
        ...

    def ended(self, entry: CampaignEntry, run: VariantRun, session: Session | None) -> None:
        """Take notice that a problem is over."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEnding:
    """Reason for the end of a campaign before all problems were over."""

    sentence: str
    """Reason and next step."""
    is_fault: bool = True
    """False if a budget is spent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """Variants, effects and rules of a campaign."""

    runs: Sequence[VariantRun]
    """Variants, the one without a change first."""
    effects: Effects
    """Side effects of every round."""
    rules: CampaignRules
    """Rules that every problem is run by."""
    observer: CampaignObserver
    """Observer of the progress."""

    async def run(self, problems: Sequence[CampaignProblem]) -> CampaignEnding | None:
        """Run every problem that is not over, under each variant; return why it ended early, or None.

        The variants of a problem follow one another, so that a change of the machine or of the model's server
        in the course of a campaign meets all alike.
        """
        try:
            if self.rules.total != CampaignBudget():
                for run in self.runs:
                    run.read_spending()
            for item in problems:
                for run in self.runs:
                    ending = await self._run_problem(item, run)
                    if ending is not None:
                        return ending
        except (StoreError, ConfigurationError, DeviceUnavailable) as error:
            return CampaignEnding(sentence=str(error))
        return None

    async def _run_problem(self, item: CampaignProblem, run: VariantRun) -> CampaignEnding | None:
        if not self._is_due(item, run):
            return None
        if item.problem is None:
            self._end(item, run, ProblemState.UNUSABLE, item.fault)
            return None
        if reason := total_spent(self.rules.total, self._spent()):
            return CampaignEnding(sentence=reason, is_fault=False)
        self.observer.begun(item, run.variant)
        author = WatchedAuthor(self.effects.author)
        try:
            session = await self._refine(item.problem, run, author)
        except Exception as error:  # noqa: BLE001 - one problem must not end the others
            self._end(item, run, _state_after(error), _sentence_of(error))
            return None
        if isinstance(author.failure, (Unreachable, RateLimited, Refused)):
            return CampaignEnding(sentence=str(author.failure))
        by_budget = session.stopped == budget_spent(session)
        if by_budget and not budget_spent(replace(session, budget=self.rules.budget)):
            reason = total_spent(self.rules.total, self._spent()) or session.stopped
            return CampaignEnding(sentence=reason, is_fault=False)
        state = ProblemState.OVER_BUDGET if by_budget else _state_of(session, author.failure)
        self._end(item, run, state, session.stopped, session)
        return None

    async def _refine(self, problem: Problem, run: VariantRun, author: WatchedAuthor) -> Session:
        """Open the session of a problem and run it; the amounts spent are counted round by round."""
        effects = replace(self.effects, author=author)

        def count_round(session: Session, item: Round) -> None:
            run.spent[session.name] = spending_of(session)
            self.observer.round_finished(session, item)

        session = await open_session(
            problem,
            effects,
            run.store,
            self.rules.budget,
            plan=lambda plan: run.variant.plan(self.rules.replan(plan)),
        )
        run.spent.pop(session.name, None)
        left = budget_left(self.rules.budget, self.rules.total, self._spent())
        run.spent[session.name] = spending_of(session)
        session = replace(session, budget=left)
        return await refine(
            session,
            effects,
            run.store,
            on_round=count_round,
            repairs=self.rules.repairs,
            workers=self.rules.workers,
            slots=self.rules.slots(session.plan.population),
        )

    def _is_due(self, item: CampaignProblem, run: VariantRun) -> bool:
        entry = run.entry_of(item)
        if entry is None:
            return True
        if entry.state in _TRIED_ON_REQUEST:
            return self.rules.again
        if entry.session not in run.store.names():
            return True
        if entry.state is not ProblemState.OVER_BUDGET:
            return False
        try:
            stored = run.store.load(entry.session)
        except DamagedSession:
            return False
        return not budget_spent(replace(stored, budget=self.rules.budget))

    def _end(
        self,
        item: CampaignProblem,
        run: VariantRun,
        state: ProblemState,
        sentence: str,
        session: Session | None = None,
    ) -> None:
        entry = CampaignEntry(
            name=item.name,
            file=item.file,
            digest=item.digest,
            state=state,
            sentence=sentence,
            session=session.name if session else "",
        )
        run.add(entry)
        self.observer.ended(entry, run, session)

    def _spent(self) -> Spending:
        return together(one for run in self.runs for one in run.spent.values())


def _state_after(error: Exception) -> ProblemState:
    """Return the state of a problem that raised an error; raise one that would meet every problem."""
    if isinstance(error, ProblemError):
        return ProblemState.UNUSABLE
    if isinstance(error, ConfigurationError | DeviceUnavailable):
        raise error
    if isinstance(error, StoreError) and not isinstance(error, DamagedSession):
        raise error
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        message = f"the disk is full ({error}): free space and run the same command again"
        raise StoreError(message) from error
    return ProblemState.FAILED


def _sentence_of(error: Exception) -> str:
    if isinstance(error, CutegenError):
        return str(error)
    return f"{type(error).__name__}: {error}; this is a fault of cutegen-nb: please report it"


def _state_of(session: Session, failure: AuthorError | None) -> ProblemState:
    if session.best is not None:
        return ProblemState.FINISHED
    if isinstance(failure, Declined):
        return ProblemState.DECLINED
    last = session.rounds[-1] if session.rounds else None
    unjudged = last is not None and last.candidate is not None and last.evaluation is None
    return ProblemState.FAILED if failure is not None or unjudged else ProblemState.FINISHED

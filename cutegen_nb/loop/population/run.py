"""Runner of a population: epochs of slots side by side, duels, selection and the gate of each epoch."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Container, Sequence
from dataclasses import replace

from cutegen_nb.analysis.estimate.targets import target_of
from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.analysis.history.ended import stored_stop
from cutegen_nb.analysis.population.members import Member, candidates, population, stagnant_epochs
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import Declined, EvaluatorError
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.ports import Progress, Store
from cutegen_nb.core.round import Action, Epoch, Round
from cutegen_nb.core.search.population import Duel
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.knowledge_order import earlier_records
from cutegen_nb.loop.learning import records_of
from cutegen_nb.loop.population.author_view import AuthorOfWhole
from cutegen_nb.loop.population.gate import MemberApprover, agree_on_epoch, with_changed_budget
from cutegen_nb.loop.population.planning import PlannedSlot, plan_epoch, strategies_beside
from cutegen_nb.loop.population.slot_progress import OnSlots, SlotBoard, SlotState
from cutegen_nb.loop.population.slot_round import aligned_first, run_slot
from cutegen_nb.loop.resuming import resumable
from cutegen_nb.loop.round import run_round
from cutegen_nb.loop.session import OnEpoch, OnRound, decide_waiting, run_session, stopped
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.loop.stopping import (
    StopInput,
    is_unasked,
    roof_reached,
    stop_reason,
    stopped_by_decision,
)

_DUELS = 2
"""Duels at the end of an epoch, at most: each takes an evaluation."""
_CLOSE = 0.05
"""Relative distance in speed within which two kernels of separate runs are timed against one another."""


async def refine(  # noqa: PLR0913 - a session, its effects and the settings of the run
    session: Session,
    effects: Effects,
    store: Store,
    *,
    on_round: OnRound | None = None,
    repairs: int = 2,
    workers: int = 1,
    slots: int = 1,
    on_slots: OnSlots | None = None,
    on_epoch: OnEpoch | None = None,
) -> Session:
    """Run a session to its end: as a chain, or as a population where its plan has more than one kernel.

    Raises StoreError and ConfigurationError.
    """
    if session.plan.population == 1:
        return await run_session(session, effects, store, on_round=on_round, repairs=repairs)
    return await run_population(
        session,
        effects,
        store,
        on_round=on_round,
        repairs=repairs,
        workers=workers,
        slots=slots,
        on_slots=on_slots,
        on_epoch=on_epoch,
    )


async def run_population(  # noqa: PLR0913 - a session, its effects and the settings of the run
    session: Session,
    effects: Effects,
    store: Store,
    *,
    on_round: OnRound | None = None,
    repairs: int = 2,
    workers: int = 1,
    slots: int = 1,
    on_slots: OnSlots | None = None,
    on_epoch: OnEpoch | None = None,
) -> Session:
    """Run epochs until a rule or a person stops; return the session with its rounds, epochs and the reason.

    At most `slots` of an epoch run side by side, and at most `workers` kernels are judged at once. Each round
    is stored as it ends, in the order of their ends. Cancellation or a crash interrupts the rounds in
    progress; the same epoch goes on with the slots that are missing and the results that they had.

    Raises StoreError and ConfigurationError.
    """
    board = SlotBoard(on_slots)
    run = _Run(
        session,
        # The plain clock: slots side by side would each count what the kept results of all of them took.
        replace(resumable(effects, session.name, store, evaluations=workers), clock=effects.clock),
        store,
        on_round=on_round,
        on_epoch=on_epoch,
        repairs=repairs,
        slots=slots,
        board=board,
    )
    return await run.to_the_end()


class _Run:
    """State of a population's run: the session so far and its effects."""

    def __init__(  # noqa: PLR0913 - as `run_population`
        self,
        session: Session,
        effects: Effects,
        store: Store,
        *,
        on_round: OnRound | None,
        on_epoch: OnEpoch | None,
        repairs: int,
        slots: int,
        board: SlotBoard,
    ) -> None:
        self.session = with_changed_budget(session)
        self._since = len(session.rounds)
        self._effects = effects
        self._store = store
        self._on_round = on_round
        self._on_epoch = on_epoch
        self._repairs = repairs
        self._places = asyncio.Semaphore(slots)
        self._board = board

    async def to_the_end(self) -> Session:
        try:
            menu = self._effects.author.menu(self.session.facts, self.session.problem.library)
        except Declined as error:
            return stopped(self.session, self._store, str(error))
        self.session, reason = await decide_waiting(self.session, self._effects, self._store, self._on_round)
        reason = reason or await self._first_kernel(menu)
        while not reason:
            reason = self._reason() or await self._epoch(menu)
        return stopped(self.session, self._store, reason)

    async def _first_kernel(self, menu: tuple[Strategy, ...]) -> str:
        """Run rounds of a chain until a kernel passed; return the reason to stop, if any."""
        while not population(self.session):
            reason = stop_reason(
                StopInput(session=self.session, menu=menu, target=self._effects.target, since=self._since)
            )
            if reason:
                return reason
            finished = await run_round(self.session, self._effects, menu, repairs=self._repairs)
            if is_unasked(finished):
                return stopped_by_decision(finished)
            self._keep(replace(finished, aligned=aligned_first(self.session, finished)))
            if reason := stopped_by_decision(finished):
                return reason
        return ""

    def _reason(self) -> str:
        """Sentence of the first rule that ends the session before another epoch; empty while none does."""
        session = self.session
        situation = StopInput(session=session, menu=(), since=self._since)
        epochs, done = session.budget.epochs, len(session.epochs)
        if reason := budget_spent(session) or roof_reached(situation) or self._nobody_answers():
            return reason
        if epochs is not None and done >= epochs:
            return f"the budget of {epochs} epoch{'' if epochs == 1 else 's'} is spent"
        stale = stagnant_epochs(session)
        if stale >= session.plan.stagnant_epochs and any(epoch.restarted for epoch in session.epochs):
            return f"{stale} epochs in a row brought no gain, after a restart"
        return ""

    def _nobody_answers(self) -> str:
        """Reason to stop where no slot of an epoch that this run ended had a candidate evaluated."""
        rounds, number = self.session.rounds, len(self.session.epochs)
        last = [item for item in rounds if item.slot and item.slot.epoch == number]
        # An epoch that ended in an earlier run does not stop a resumed session. Where this run finished an
        # epoch that an earlier run began, the slots of both count.
        has_ended = any(item.slot and item.slot.epoch == number for item in rounds[self._since :])
        if not has_ended or any(item.evaluation is not None for item in last):
            return ""
        return f"no slot of epoch {number} brought a kernel: {last[-1].note}"

    async def _epoch(self, menu: tuple[Strategy, ...]) -> str:
        """Run the missing slots of the next epoch, select, and ask at its gate; return the reason to stop."""
        number = len(self.session.epochs) + 1
        before = _without_epoch(self.session, number)
        records = earlier_records(before, self._effects.knowledge)
        planned = plan_epoch(before, menu, records, self._effects.target)
        if not planned:
            best = population(self.session)[0].label
            return f"nothing is left to try: every strategy and pair of the members was tried (best {best})"
        done = {item.slot.number for item in self.session.rounds if item.slot and item.slot.epoch == number}
        await self._run_slots(before, planned, done)
        duels = await self._duels(number)
        epoch = await agree_on_epoch(self.session, self._effects.approver, self._effects.clock, duels)
        self._store.append_epoch(self.session.name, epoch)
        self.session = with_changed_budget(replace(self.session, epochs=(*self.session.epochs, epoch)))
        if self._on_epoch is not None:
            self._on_epoch(self.session, epoch)
        return _stopped_at_gate(epoch)

    async def _run_slots(self, before: Session, epoch: Sequence[PlannedSlot], done: Container[int]) -> None:
        """Run the slots of an epoch that are not done side by side; our first failure ends the others."""
        planned = [item for item in epoch if item.slot.number not in done]
        self._board.open(planned)
        try:
            async with asyncio.TaskGroup() as group:
                for item in planned:
                    group.create_task(self._run_slot(before, item, strategies_beside(epoch, item)))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self._board.close()

    async def _run_slot(self, before: Session, planned: PlannedSlot, beside: tuple[str, ...]) -> None:
        async with self._places:
            if budget_spent(self.session):
                return
            number = planned.slot.number
            self._board.change(number, state=SlotState.RUNNING, started_at=self._effects.clock.now())
            effects = replace(
                self._effects,
                author=AuthorOfWhole(self._effects.author, lambda: self.session),
                approver=MemberApprover(),
                progress=self._progress_of(planned),
            )
            finished = await run_slot(before, effects, planned, repairs=self._repairs, beside=beside)
            done = {"state": SlotState.DONE, "doing": "", "strategy": finished.title}
            self._board.change(number, **done, round=len(self.session.rounds))
            self._keep(finished)

    def _progress_of(self, planned: PlannedSlot) -> Progress:
        progress, slot = self._effects.progress, planned.slot

        def say(text: str) -> None:
            self._board.change(slot.number, doing=text)
            progress(f"epoch {slot.epoch}, slot {slot.number} ({slot.move.value}): {text}")

        return say

    def _keep(self, finished: Round) -> None:
        finished = replace(finished, number=len(self.session.rounds))
        self._store.append(self.session.name, finished)
        self.session = replace(self.session, rounds=(*self.session.rounds, finished))
        self._effects.learn(records_of(self.session, rounds=(finished,), target=self._effects.target))
        if self._on_round is not None:
            self._on_round(self.session, finished)

    async def _duels(self, number: int) -> tuple[Duel, ...]:
        """Time the fastest kernels of an epoch against one another where their speeds are close.

        Each was timed beside the best before the epoch, in a run of its own. On the simulator estimates need
        no duel.
        """
        if self.session.device.kind is not DeviceKind.GPU:
            return ()
        duels: list[Duel] = []
        for _ in range(_DUELS):
            holder, challenger = _contest(candidates(self.session, duels=duels), number)
            fought = {(duel.challenger, duel.holder) for duel in duels}
            if holder is None or challenger is None or (challenger.digest, holder.digest) in fought:
                break
            if (holder.digest, challenger.digest) in fought:
                break
            duels.append(await self._duel(holder, challenger))
        return tuple(duels)

    async def _duel(self, holder: Member, challenger: Member) -> Duel:
        session, effects = self.session, self._effects
        one, other = holder.item.candidate, challenger.item.candidate
        assert one is not None
        assert other is not None
        effects.progress(f"timing {challenger.label} against {holder.label}")
        try:
            found = await effects.evaluator.evaluate(
                session.problem, other, effects.progress, Tier.A, rival=one
            )
        except EvaluatorError as error:
            return Duel(challenger=other.digest, holder=one.digest, speedup=None, reason=str(error))
        target = effects.target or target_of(session.device)
        compared = compare(holder.item.evaluation, found, session.facts, against=one.digest, target=target)
        return Duel(
            challenger=other.digest,
            holder=one.digest,
            speedup=compared.speedup,
            reason=compared.reason,
            gpu_s=found.duration_s,
        )


def _contest(members: Sequence[Member], number: int) -> tuple[Member | None, Member | None]:
    """Return the two fastest members if both are of this epoch and their speeds are close."""
    fastest = members[:2]
    if len(fastest) < 2 or not all(m.item.slot and m.item.slot.epoch == number for m in fastest):  # noqa: PLR2004
        return None, None
    close = abs(math.log(fastest[0].speed / fastest[1].speed)) <= math.log1p(_CLOSE)
    return (fastest[0], fastest[1]) if close else (None, None)


def _without_epoch(session: Session, number: int) -> Session:
    """Session as it was at the start of an epoch."""
    rounds = tuple(item for item in session.rounds if not (item.slot and item.slot.epoch == number))
    return replace(session, rounds=rounds)


def _stopped_at_gate(epoch: Epoch) -> str:
    last = epoch.decisions[-1] if epoch.decisions else None
    if last is None or last.action is not Action.STOP:
        return ""
    return stored_stop(last.by, f"after epoch {epoch.number}", last.reason)

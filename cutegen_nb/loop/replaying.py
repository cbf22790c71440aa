"""Replay of a recorded session, round by round, with its own replies, evaluations and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.ports import Approver, Store
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import prompt_of_step
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.lineage import parent_digest, parent_of_next
from cutegen_nb.loop.population.author_view import AuthorOfWhole
from cutegen_nb.loop.population.planning import PlannedSlot
from cutegen_nb.loop.population.slot_round import run_slot
from cutegen_nb.loop.round import run_round
from cutegen_nb.loop.session import OnEpoch, OnRound, stopped
from cutegen_nb.loop.stages import Step
from cutegen_nb.prompting.memory import steering_text

GATE_PROMPT, GATE_REVISION = "prompt", "revision"
"""Names of the gates, as in `Decision.gate`."""


class RecordedDecisions:
    """Approver that repeats the recorded decisions."""

    def __init__(self, recorded: Session) -> None:
        self._recorded = recorded
        self._given: dict[tuple[int, str], int] = {}

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:  # noqa: ARG002 - the port's
        """Return the recorded decision at this gate."""
        return self._next(len(session.rounds), GATE_PROMPT)

    async def review_revision(
        self,
        session: Session,
        attempts: Sequence[Attempt],  # noqa: ARG002 - the port's
        comparison: Comparison | None,  # noqa: ARG002 - the port's
    ) -> Decision:
        """Return the recorded decision at this gate."""
        return self._next(len(session.rounds), GATE_REVISION)

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:  # noqa: ARG002 - the port's
        """Return the recorded decision on the epoch."""
        recorded = next((item for item in self._recorded.epochs if item.number == draft.number), None)
        made = recorded.decisions if recorded else ()
        place = len(draft.decisions)
        if place < len(made):
            return made[place]
        return Decision(gate="epoch", action=Action.APPROVE, by="policy:replay")

    def _next(self, number: int, gate: str) -> Decision:
        made = [item for item in self._recorded.rounds[number].decisions if item.gate == gate]
        place = self._given.get((number, gate), 0)
        self._given[number, gate] = place + 1
        if place < len(made):
            return made[place]
        action = Action.APPROVE if gate == GATE_PROMPT else Action.REJECT
        return Decision(gate=gate, action=action, by="policy:replay", reason="nothing was decided here")


async def replay_session(  # noqa: PLR0913 - a recording, its effects and callbacks
    recorded: Session,
    effects: Effects,
    store: Store,
    name: str,
    *,
    on_round: OnRound | None = None,
    on_epoch: OnEpoch | None = None,
) -> Session:
    """Replay `recorded` as the session `name` of `store`, to its end or to the first round that differs.

    Each round repeats the recorded stage, strategy and comparison, whatever today's rules would choose.
    Raises StoreError when the name is taken.
    """
    session = replace(
        recorded,
        name=name,
        author=effects.author.name,
        created_at=effects.clock.now(),
        rounds=(),
        epochs=(),
        stopped="",
        measurements=(),
    )
    store.create(session)
    for item in recorded.rounds:
        finished = await _again(session, effects, item, recorded)
        is_same = [attempt.candidate and attempt.candidate.digest for attempt in finished.attempts] == [
            attempt.candidate and attempt.candidate.digest for attempt in item.attempts
        ]
        if is_same:
            # Today's rules might compare otherwise, and the replay itself used no GPU.
            finished = replace(finished, comparison=item.comparison, gpu_s=item.gpu_s)
        store.append(name, finished)
        session = replace(session, rounds=(*session.rounds, finished))
        if on_round is not None:
            on_round(session, finished)
        if not is_same:
            return stopped(
                session, store, f"the replay differs from {recorded.name} at r{item.number}: {finished.note}"
            )
        after = _with_epoch(session, store, recorded, item.number)
        if on_epoch is not None and after is not session:
            on_epoch(after, after.epochs[-1])
        session = after
    return stopped(session, store, recorded.stopped or f"{recorded.name} was recorded up to here")


async def _again(session: Session, effects: Effects, recorded: Round, whole: Session) -> Round:
    """Repeat a round of a chain or of a population; `whole` is the recorded session."""
    diagnoses = [attempt for attempt in recorded.attempts if attempt.purpose == "diagnose"]
    repairs, in_words = len(diagnoses), not any(attempt.candidate for attempt in diagnoses)
    if recorded.slot is None:
        menu = (recorded.strategy,) if recorded.strategy else ()
        steps = _steps(session, recorded)
        finished = await run_round(session, effects, menu, repairs=repairs, steps=steps, in_words=in_words)
        return replace(finished, aligned=recorded.aligned)
    epoch = recorded.slot.epoch
    before = replace(
        session,
        rounds=tuple(item for item in session.rounds if not (item.slot and item.slot.epoch == epoch)),
    )
    parents = [before.round_of(digest) for digest in recorded.slot.parents]
    base, other = parents[0], parents[1] if len(parents) > 1 else None
    if base is None:
        raise StoreError(f"r{recorded.number} of {session.name} starts from a kernel that no round has")
    given = _given(recorded)
    planned = PlannedSlot(
        slot=recorded.slot,
        base=base,
        other=other,
        strategy=given[0][0] if given else None,
        stage=given[0][1] if given else recorded.stage,
        because=recorded.chosen_because,
        others=(*given[1:], *(given[-1:] if _is_followed(before, effects, recorded, base) else ())),
    )
    there = replace(
        effects,
        author=AuthorOfWhole(effects.author, lambda: session),
        approver=_ApproverOf(effects.approver, session),
    )
    beside = _beside(recorded, whole)
    finished = await run_slot(before, there, planned, repairs=repairs, beside=beside, in_words=in_words)
    return replace(finished, number=len(session.rounds))


def _given(recorded: Round) -> tuple[tuple[Strategy, Stage], ...]:
    """Strategies that a slot was given, with their stages: those that the author ended, then its own.

    Empty where the author was to state one.
    """
    if recorded.slot is None or recorded.slot.move in {MoveKind.CROSS, MoveKind.INVENT}:
        return ()
    ended = tuple(
        (attempt.ended.strategy, attempt.prompt.stage or recorded.stage)
        for attempt in recorded.attempts
        if attempt.ended
    )
    if recorded.strategy is None or (ended and recorded.attempts[-1].ended):
        return ended
    return (*ended, (recorded.strategy, recorded.stage))


def _is_followed(before: Session, effects: Effects, recorded: Round, base: Round) -> bool:
    """Return whether another strategy would have followed the last one given: its request says so."""
    given = _given(recorded)
    asked = [item.prompt for item in recorded.attempts if item.purpose == "optimise"]
    if not given or not asked:
        return False
    strategy, stage = given[-1]
    step = Step(stage=stage, parent=base, strategy=strategy)
    return asked[-1].digest == prompt_of_step(before, effects.words, step, steering_text(before)).digest


def _beside(recorded: Round, whole: Session) -> tuple[str, ...]:
    """Names of the strategies that the other slots of a round's epoch were given, by slot."""
    slots = sorted(
        (item.slot.number, place)
        for place, item in enumerate(whole.rounds)
        if item.slot and recorded.slot and item.slot.epoch == recorded.slot.epoch and item is not recorded
    )
    names = (strategy.name for _, place in slots for strategy, _ in _given(whole.rounds[place])[:1])
    return tuple(dict.fromkeys(names))


def _with_epoch(session: Session, store: Store, recorded: Session, number: int) -> Session:
    """Close the recorded epoch whose last round is `number`; the session is returned with it."""
    last = {item.slot.epoch: item.number for item in recorded.rounds if item.slot}
    epoch = next((item for item in recorded.epochs if last.get(item.number) == number), None)
    if epoch is None:
        return session
    store.append_epoch(session.name, epoch)
    return replace(session, epochs=(*session.epochs, epoch))


class _ApproverOf:
    """Approver that sees the whole session, as `AuthorOfWhole`."""

    def __init__(self, approver: Approver, session: Session) -> None:
        self._approver = approver
        self._session = session

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:  # noqa: ARG002 - the port's
        """Decide at the place of the whole session."""
        return await self._approver.review_prompt(self._session, prompt)

    async def review_revision(
        self,
        session: Session,  # noqa: ARG002 - the port's
        attempts: Sequence[Attempt],
        comparison: Comparison | None,
    ) -> Decision:
        """Decide at the place of the whole session."""
        return await self._approver.review_revision(self._session, attempts, comparison)

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        """Decide on the epoch."""
        return await self._approver.review_epoch(session, draft)


def _steps(session: Session, recorded: Round) -> tuple[Step, ...]:
    """Rebuild the recorded round's steps on the revision of `session` that it started from.

    There is one for each strategy that the author ended, and one for the round's own.
    """
    last = Step(stage=recorded.stage, because=recorded.stage_because, chosen_because=recorded.chosen_because)
    if recorded.strategy is None:
        return (last,)
    parent = session.round_of(parent_digest(recorded)) or parent_of_next(session)
    last = replace(last, parent=parent, strategy=recorded.strategy)
    asked = [attempt for attempt in recorded.attempts if attempt.ended]
    before = tuple(
        replace(last, stage=attempt.prompt.stage or last.stage, strategy=attempt.ended.strategy)
        for attempt in asked
        if attempt.ended
    )
    # If the last attempt ended its strategy too, that strategy is in `before` already.
    return before if asked and recorded.attempts[-1].ended else (*before, last)

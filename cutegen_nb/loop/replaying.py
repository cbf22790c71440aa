"""A recorded session run again, round by round, with its own replies, evaluations and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.core.ports import Store
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.loop.lineage import parent_digest, parent_of_next
from cutegen_nb.loop.round import Effects, run_round
from cutegen_nb.loop.session import OnRound, stopped
from cutegen_nb.loop.stages import Step

GATE_PROMPT, GATE_REVISION = "prompt", "revision"


class RecordedDecisions:
    """Decides as it was decided."""

    def __init__(self, recorded: Session) -> None:
        self._recorded = recorded
        self._given: dict[tuple[int, str], int] = {}

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:  # noqa: ARG002 - the port's
        """The recorded decision at this gate."""
        return self._next(len(session.rounds), GATE_PROMPT)

    async def review_revision(
        self,
        session: Session,
        attempts: Sequence[Attempt],  # noqa: ARG002 - the port's
        comparison: Comparison | None,  # noqa: ARG002 - the port's
    ) -> Decision:
        """The recorded decision at this gate."""
        return self._next(len(session.rounds), GATE_REVISION)

    def _next(self, number: int, gate: str) -> Decision:
        made = [item for item in self._recorded.rounds[number].decisions if item.gate == gate]
        place = self._given.get((number, gate), 0)
        self._given[number, gate] = place + 1
        if place < len(made):
            return made[place]
        action = Action.APPROVE if gate == GATE_PROMPT else Action.REJECT
        return Decision(gate=gate, action=action, by="policy:replay", reason="nothing was decided here")


async def replay_session(
    recorded: Session, effects: Effects, store: Store, name: str, *, on_round: OnRound | None = None
) -> Session:
    """Run `recorded` again as the session `name` of `store`, to its end or to the first place that differs.

    Each round does what it did, whatever the rules of stages, menus and comparing say today. Raises
    StoreError when the name is taken.
    """
    session = replace(
        recorded,
        name=name,
        author=effects.author.name,
        created_at=effects.clock.now(),
        rounds=(),
        stopped="",
        measurements=(),
    )
    store.create(session)
    for item in recorded.rounds:
        menu = (item.strategy,) if item.strategy else ()
        repairs = sum(1 for attempt in item.attempts if attempt.purpose == "diagnose")
        finished = await run_round(session, effects, menu, repairs=repairs, step=_step(session, item))
        is_same = [attempt.candidate and attempt.candidate.digest for attempt in finished.attempts] == [
            attempt.candidate and attempt.candidate.digest for attempt in item.attempts
        ]
        if is_same:
            # Rules of comparing change as well, and what was counted on a GPU took no time of one now.
            finished = replace(finished, comparison=item.comparison, gpu_s=item.gpu_s)
        store.append(name, finished)
        session = replace(session, rounds=(*session.rounds, finished))
        if on_round is not None:
            on_round(session, finished)
        if not is_same:
            return stopped(
                session, store, f"the replay differs from {recorded.name} at r{item.number}: {finished.note}"
            )
    return stopped(session, store, recorded.stopped or f"{recorded.name} was recorded up to here")


def _step(session: Session, recorded: Round) -> Step:
    """What the recorded round was, on the revision of `session` that it worked from."""
    if recorded.strategy is None:
        return Step(stage=recorded.stage, because=recorded.stage_because)
    digest = parent_digest(recorded)
    made_from = (item for item in session.rounds if item.candidate and item.candidate.digest == digest)
    return Step(
        stage=recorded.stage,
        because=recorded.stage_because,
        parent=next(made_from, None) or parent_of_next(session),
        strategy=recorded.strategy,
    )

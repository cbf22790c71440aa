"""Counters of the parent, taken when a stage first tells them and not before: they cost a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Clock, Evaluator, Progress
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.asking import WITH_COUNTERS
from cutegen_nb.loop.lineage import parent_digest, parent_evaluation
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.stages import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A round's beginning, once the counters its stage asks for were taken."""

    session: Session
    """The session, the parent's evaluation with its counters."""
    step: Step
    """The step, its strategy chosen by the counters."""
    profile: Profile | None = None
    """What was taken now; None where nothing was, or could be."""
    seconds: float = 0.0
    """How long that held the device."""


async def count_parent(  # noqa: PLR0913, PLR0917 - a round's effects, each by itself
    session: Session,
    evaluator: Evaluator,
    clock: Clock,
    step: Step,
    menu: tuple[Strategy, ...],
    progress: Progress,
) -> Counted:
    """Take the parent's counters where the stage asks for them and nobody did; a failure to is no fault.

    The parent passed when its own round judged it: it is counted and not judged again.
    """
    unchanged = Counted(session=session, step=step)
    parent = step.parent
    if parent is None or parent.candidate is None or not _is_due(session, step, parent):
        return unchanged
    progress("counting what the parent does")
    start = clock.monotonic()
    try:
        profile = await evaluator.count(session.problem, parent.candidate, progress)
    except EvaluatorError as error:
        progress(f"no counters: {error}")
        return replace(unchanged, seconds=clock.monotonic() - start)
    seconds = clock.monotonic() - start
    known = _with_profile(session, parent, profile)
    counted_parent = known.rounds[session.rounds.index(parent)]
    strategies = offered(known, menu, counted_parent, step.stage)
    strategy = strategies[0] if strategies else step.strategy
    return Counted(
        session=known,
        step=replace(step, parent=counted_parent, strategy=strategy),
        profile=profile,
        seconds=seconds,
    )


def _is_due(session: Session, step: Step, parent: Round) -> bool:
    """On a GPU, from PROFILE on, once a parent: where counters cannot be had they are not asked for again."""
    if session.device.kind is not DeviceKind.GPU or step.stage not in WITH_COUNTERS:
        return False
    evaluation = parent_evaluation(session, parent)
    if evaluation is None or evaluation.profile is not None or parent.candidate is None:
        return False
    digest = parent.candidate.digest
    return not any(item.stage in WITH_COUNTERS and parent_digest(item) == digest for item in session.rounds)


def _with_profile(session: Session, parent: Round, profile: Profile) -> Session:
    """The session with the counters in the parent's own evaluation, for this round's eyes only."""
    attempts = list(parent.attempts)
    last = max(index for index, attempt in enumerate(attempts) if attempt.candidate)
    evaluation: Evaluation | None = attempts[last].evaluation
    assert evaluation is not None
    attempts[last] = replace(attempts[last], evaluation=replace(evaluation, profile=profile))
    counted = replace(parent, attempts=tuple(attempts))
    rounds = tuple(counted if item is parent else item for item in session.rounds)
    return replace(session, rounds=rounds)

"""Hardware counters of the parent, profiled when a stage first shows them: profiling takes a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Clock, Evaluator, Progress
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.session import WITH_COUNTERS, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.knowledge_order import chosen
from cutegen_nb.loop.lineage import parent_digest, parent_evaluation
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.stages import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledStart:
    """Session and step at the start of a round, after profiling the parent where that was due."""

    session: Session
    """Session in which the parent's evaluation holds its counters."""
    step: Step
    """Step with the strategy chosen by the counters."""
    profile: Profile | None = None
    """Counters profiled for this round; None without any."""
    seconds: float = 0.0
    """Seconds that profiling held the device."""


async def count_parent(  # noqa: PLR0913, PLR0917 - a round's effects, each by itself
    session: Session,
    evaluator: Evaluator,
    clock: Clock,
    step: Step,
    menu: tuple[Strategy, ...],
    records: Sequence[StrategyRecord],
    progress: Progress,
) -> ProfiledStart:
    """Profile the parent where the stage shows counters and there are none yet.

    The strategy is chosen again by the counters and by `records` of like problems.

    The parent passed in its own round, so it is not judged again. A failure to profile is reported to
    `progress` and is no error.
    """
    unchanged = ProfiledStart(session=session, step=step)
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
    choice = chosen(offered(known, menu, counted_parent, step.stage), records, known, counted_parent)
    step = replace(step, parent=counted_parent)
    if choice is not None:
        step = replace(step, strategy=choice.strategy, chosen_because=choice.because)
    return ProfiledStart(
        session=known,
        step=step,
        profile=profile,
        seconds=seconds,
    )


def _is_due(session: Session, step: Step, parent: Round) -> bool:
    """Return whether the parent has to be profiled: on a GPU, from PROFILE on, once for each parent."""
    if session.device.kind is not DeviceKind.GPU or not session.plan.shows_counters(step.stage):
        return False
    evaluation = parent_evaluation(session, parent)
    if evaluation is None or evaluation.profile is not None or parent.candidate is None:
        return False
    digest = parent.candidate.digest
    # An earlier round on this parent tried already, and would fail again.
    return not any(item.stage in WITH_COUNTERS and parent_digest(item) == digest for item in session.rounds)


def _with_profile(session: Session, parent: Round, profile: Profile) -> Session:
    """Session with the counters in the parent's own evaluation, for this round only."""
    attempts = list(parent.attempts)
    last = max(index for index, attempt in enumerate(attempts) if attempt.candidate)
    evaluation: Evaluation | None = attempts[last].evaluation
    assert evaluation is not None
    attempts[last] = replace(attempts[last], evaluation=replace(evaluation, profile=profile))
    counted = replace(parent, attempts=tuple(attempts))
    rounds = tuple(counted if item is parent else item for item in session.rounds)
    return replace(session, rounds=rounds)

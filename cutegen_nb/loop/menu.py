"""Selection of strategies: those that a stage offers for a parent, in the order to try them; pure."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis, diagnose
from cutegen_nb.analysis.estimate.estimate import estimate_of
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.analysis.history.spending import is_counted
from cutegen_nb.analysis.strategy import sensitivity
from cutegen_nb.analysis.strategy.conditions import Circumstances
from cutegen_nb.analysis.strategy.kernel_traits import kernel_traits
from cutegen_nb.analysis.strategy.obstacle import Obstacle, obstacle
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Bound, Direction, Strategy
from cutegen_nb.loop.lineage import parent_evaluation, tried_on

_SECTORS = frozenset({"gmem_load_sectors", "gmem_store_sectors"})
_WAITING = frozenset({"latency_ms", "barriers"})
"""Effects that only timing can show. Barriers belong here because the cost of a barrier is the wait, not its
one instruction."""
_LEAST_BY = 0.02
"""Relative distance from the least bytes within which no strategy can save sectors. A count far below the
least bytes means that the estimate is wrong, so the distance is taken without its sign."""


def offered(
    session: Session,
    menu: Sequence[Strategy],
    parent: Round,
    stage: Stage,
    target: EstimateTarget | None = None,
) -> tuple[Strategy, ...]:
    """List the strategies that `stage` may try next on `parent`, most promising first.

    A strategy that the kernel carries out already is left out, and one whose conditions do not hold at the
    problem's full size.

    STRUCTURE offers structural strategies for the limits of the roofline's zone or the diagnosis.
    Strategies that only save sectors are left out where the parent moves the least bytes. PROFILE offers all
    that remain, the diagnosis's first choice first; a strategy that answers a counter is left out if the
    counters are known and do not call for it. TUNE offers numbers only. Untried strategies come before those
    that were tried on another revision.

    With an estimate of the parent's time for `target`, strategies are left out that lower only terms below a
    tenth of that time. The rest come in the order of the time that they could save; steps of an author's
    ladder, which name no conditions, keep their places. TUNE leaves out numbers that were estimated slower
    than the best by more than the estimates' error.
    """
    return of_stage(session, untried(session, menu, parent), parent, stage, target)


def of_stage(
    session: Session,
    left: Sequence[Strategy],
    parent: Round,
    stage: Stage,
    target: EstimateTarget | None = None,
) -> tuple[Strategy, ...]:
    """Select from `left`, the result of `untried`, the strategies that a stage offers."""
    found_estimate = parent_estimate(session, parent, target)
    if stage is Stage.TUNE:
        lost = _estimated_slower(session)
        numbers = [s for s in left if s.stage is Stage.TUNE and s.name not in lost]
        return _by_estimate(numbers, found_estimate, ladder=False)
    if stage is Stage.PROFILE:
        return _by_estimate(_by_evidence(session, left, parent), found_estimate)
    if stage is not Stage.STRUCTURE:
        return ()
    found = diagnose(session.facts, parent_evaluation(session, parent), session.device)
    bounds = _zone_bounds(session) | {found.bound}
    lean = _moves_the_least(session, parent)
    hopeful = [
        s
        for s in left
        if s.stage is Stage.STRUCTURE
        and (not s.bounds or bounds & set(s.bounds))
        and not (lean and _only_saves_sectors(s))
    ]
    return _by_estimate(hopeful, found_estimate)


def _estimated_slower(session: Session) -> frozenset[str]:
    """Names of the strategies whose newest trial was estimated slower: its interval lies below the best's."""
    newest = {
        item.strategy.name: item.comparison.relation
        for item in session.rounds
        if item.strategy and item.comparison
    }
    return frozenset(name for name, relation in newest.items() if relation is Relation.ESTIMATED_SLOWER)


def _zone_bounds(session: Session) -> frozenset[Bound]:
    """Limits that the problem's zone of the roofline names, after the best algebra of the session."""
    found = zone(session.facts, session.device, fewest_flops(session))
    return found.bounds if found else frozenset({place(session.facts, session.device).bound})


def parent_estimate(session: Session, parent: Round, target: EstimateTarget | None = None) -> Estimate | None:
    """Estimate the time of the parent's kernel for `target`, by default `target_of` the session's device.

    None on a GPU, which has a clock, and without a sample.
    """
    return estimate_of(parent_evaluation(session, parent), session.device, target)


def untried(session: Session, menu: Sequence[Strategy], parent: Round) -> list[Strategy]:
    """List the possible strategies that are not applied in `parent` or an ancestor, nor tried on `parent`.

    Applied are those of earlier rounds, those that the author ended, and those that the kernel itself shows.
    Those tried or ended on another revision come last: most reasons hold for every kernel.
    An estimate stands for a clock on a device that is not timed.
    """
    gone = tried_on(session, parent)
    timed = session.device.kind is DeviceKind.GPU or parent_estimate(session, parent) is not None
    here = circumstances(session, parent)
    left = [
        item
        for item in menu
        if item.name not in gone
        and _fits(item, session.facts, session.device)
        and (timed or not _promises_time_alone(item))
        and obstacle(item, here) is None
    ]
    anywhere = {item.strategy.name for item in session.rounds if item.strategy and is_counted(item)}
    anywhere |= {ended.strategy.name for item in session.rounds for ended in item.ended}
    return [s for s in left if s.name not in anywhere] + [s for s in left if s.name in anywhere]


def circumstances(session: Session, parent: Round) -> Circumstances:
    """Collect problem, device and the traits of the parent's kernel, which decide on preconditions."""
    evaluation = parent_evaluation(session, parent)
    source = parent.candidate.source if parent.candidate else ""
    profile, sample = (evaluation.profile, evaluation.full_size) if evaluation else (None, None)
    traits = kernel_traits(source, session.facts, profile, sample)
    return Circumstances(facts=session.facts, device=session.device, traits=traits)


def obstacles(session: Session, menu: Sequence[Strategy], parent: Round) -> tuple[Obstacle, ...]:
    """List the obstacles to the strategies that were never tried on `parent`, in the menu's order."""
    gone, here = tried_on(session, parent), circumstances(session, parent)
    found = (
        obstacle(item, here)
        for item in menu
        if item.name not in gone and _fits(item, session.facts, session.device)
    )
    return tuple(item for item in found if item is not None)


def without_hope(
    session: Session, menu: Sequence[Strategy], parent: Round, target: EstimateTarget | None = None
) -> tuple[str, ...]:
    """Names of the untried strategies that lower only small terms of the parent's estimated time."""
    found = parent_estimate(session, parent, target)
    if found is None:
        return ()
    left = untried(session, menu, parent)
    kept = _by_estimate(left, found)
    return tuple(item.name for item in left if item not in kept)


def left_for_a_gpu(session: Session, menu: Sequence[Strategy], parent: Round) -> tuple[str, ...]:
    """Names of the untried strategies that are left out because counts cannot show their gain."""
    if session.device.kind is DeviceKind.GPU or parent_estimate(session, parent) is not None:
        return ()
    gone, here = tried_on(session, parent), circumstances(session, parent)
    return tuple(
        item.name
        for item in menu
        if item.name not in gone
        and _fits(item, session.facts, session.device)
        and _promises_time_alone(item)
        and obstacle(item, here) is None
    )


def _fits(strategy: Strategy, facts: ProblemFacts, device: Device) -> bool:
    if strategy.dtypes and facts.dtype not in strategy.dtypes:
        return False
    architecture = device.architecture.rstrip("abcdefghijklmnopqrstuvwxyz")
    return not strategy.architectures or architecture in strategy.architectures


def _promises_time_alone(strategy: Strategy) -> bool:
    """Return whether the strategy promises a shorter time and no lower count, except fewer barriers.

    On a device that is not timed such a strategy would cost a round and be rejected.
    """
    hoped = {item.counter for item in strategy.effects if item.direction is Direction.DOWN}
    return "latency_ms" in hoped and hoped <= _WAITING


def _by_estimate(
    left: Sequence[Strategy], found: Estimate | None, *, ladder: bool = True
) -> tuple[Strategy, ...]:
    """Order by the time that a strategy could save; unchanged without an estimate.

    In a ladder a strategy that names no conditions keeps its place. An author's steps build on one another,
    and of several parts the one with most of the work comes first, which the estimate does not tell apart.
    """
    if found is None or not any(_names_conditions(item) for item in left):
        return tuple(left)
    hopeful = [item for item in left if sensitivity.is_hopeful(item, found)]
    moving = [item for item in hopeful if _names_conditions(item) or not ladder]
    moved = iter(sorted(moving, key=lambda item: sensitivity.order(item, found)))
    return tuple(next(moved) if item in moving else item for item in hopeful)


def _names_conditions(strategy: Strategy) -> bool:
    return bool(strategy.absent or strategy.present or strategy.requires)


def _moves_the_least(session: Session, parent: Round) -> bool:
    """Return whether `parent` has counters and moves no more bytes than the problem must."""
    evaluation = parent_evaluation(session, parent)
    if evaluation is None or evaluation.profile is None:
        return False
    over = place(session.facts, session.device, evaluation).moved_over_least
    return over is not None and abs(over - 1) <= _LEAST_BY


def _only_saves_sectors(strategy: Strategy) -> bool:
    """Return whether the strategy claims fewer sectors and nothing else."""
    claimed = {item.counter for item in strategy.effects if item.direction is Direction.DOWN}
    return bool(claimed) and len(claimed) == len(strategy.effects) and claimed <= _SECTORS


def _by_evidence(session: Session, left: Sequence[Strategy], parent: Round) -> tuple[Strategy, ...]:
    evaluation = parent_evaluation(session, parent)
    found = diagnose(session.facts, evaluation, session.device)
    counted = evaluation is not None and evaluation.profile is not None
    stages = {Stage.STRUCTURE, Stage.PROFILE}
    if session.plan.schedule is Schedule.PAPER:
        stages.add(Stage.TUNE)  # the paper's schedule has no TUNE stage: numbers come last in PROFILE
    usable = [
        s
        for s in left
        if s.stage in stages and (s.stage is not Stage.PROFILE or not counted or s.name in found.strategies)
    ]
    return tuple(sorted(usable, key=lambda strategy: _rank(strategy, found)))


def _rank(strategy: Strategy, found: Diagnosis) -> int:
    """Sort key: position among the diagnosis's answers; other strategies after them, tuning last."""
    if strategy.name in found.strategies:
        return found.strategies.index(strategy.name)
    return len(found.strategies) + (strategy.stage is Stage.TUNE)

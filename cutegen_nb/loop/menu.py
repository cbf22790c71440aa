"""Which strategies a stage offers for a parent, in the order to try them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.diagnose import Diagnosis, diagnose
from cutegen_nb.analysis.roofline import place
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, Strategy
from cutegen_nb.loop.lineage import parent_evaluation, tried_on

_SECTORS = frozenset({"gmem_load_sectors", "gmem_store_sectors"})
_WAITING = frozenset({"latency_ms", "barriers"})
"""Time, and what costs time: a barrier is one instruction, and what it costs is the wait."""
_LEAST_BY = 0.02
"""So near to the least bytes fewer sectors cannot be hoped for; far below, the least itself is wrong."""


def offered(session: Session, menu: Sequence[Strategy], parent: Round, stage: Stage) -> tuple[Strategy, ...]:
    """What `stage` may try next on `parent`, likeliest first.

    STRUCTURE offers structural strategies that the roofline lets hope for: none that only saves sectors
    where no byte is moved in vain. PROFILE offers all that is left, what the diagnosis names first; an
    answer to counters is left out where counters are known and do not ask for it. TUNE offers numbers only.
    What was tried nowhere comes before what failed on an older revision.
    """
    return of_stage(session, untried(session, menu, parent), parent, stage)


def of_stage(session: Session, left: Sequence[Strategy], parent: Round, stage: Stage) -> tuple[Strategy, ...]:
    """The part of `left`, which `untried` gave, that a stage offers."""
    if stage is Stage.STRUCTURE:
        found = diagnose(session.facts, parent_evaluation(session, parent), session.device)
        bounds = {place(session.facts, session.device).bound, found.bound}
        lean = _moves_the_least(session, parent)
        return tuple(
            s
            for s in left
            if s.stage is Stage.STRUCTURE
            and (not s.bounds or bounds & set(s.bounds))
            and not (lean and _only_saves_sectors(s))
        )
    if stage is Stage.PROFILE:
        return _by_evidence(session, left, parent)
    if stage is Stage.TUNE:
        return tuple(s for s in left if s.stage is Stage.TUNE)
    return ()


def untried(session: Session, menu: Sequence[Strategy], parent: Round) -> list[Strategy]:
    """Possible strategies that neither `parent` nor an ancestor carries out, not tried on `parent` either."""
    gone = tried_on(session, parent)
    left = [
        item for item in menu if item.name not in gone and is_possible(item, session.facts, session.device)
    ]
    anywhere = {item.strategy.name for item in session.rounds if item.strategy}
    return [s for s in left if s.name not in anywhere] + [s for s in left if s.name in anywhere]


def is_possible(strategy: Strategy, facts: ProblemFacts, device: Device) -> bool:
    """Whether dtype and architecture allow it, and something that is measured here could show its gain."""
    return _fits(strategy, facts, device) and not _needs_a_clock(strategy, device)


def left_for_a_gpu(session: Session, menu: Sequence[Strategy], parent: Round) -> tuple[str, ...]:
    """Names of the untried strategies that are left out because counts cannot show their gain."""
    gone = tried_on(session, parent)
    return tuple(
        item.name
        for item in menu
        if item.name not in gone
        and _fits(item, session.facts, session.device)
        and _needs_a_clock(item, session.device)
    )


def _fits(strategy: Strategy, facts: ProblemFacts, device: Device) -> bool:
    if strategy.dtypes and facts.dtype not in strategy.dtypes:
        return False
    architecture = device.architecture.rstrip("abcdefghijklmnopqrstuvwxyz")
    return not strategy.architectures or architecture in strategy.architectures


def _needs_a_clock(strategy: Strategy, device: Device) -> bool:
    """Whether it hopes for time alone, where nothing is timed: it would cost a round and be rejected."""
    hoped = {item.counter for item in strategy.effects if item.direction is Direction.DOWN}
    return device.kind is not DeviceKind.GPU and "latency_ms" in hoped and hoped <= _WAITING


def _moves_the_least(session: Session, parent: Round) -> bool:
    """Whether `parent` was counted, and moves no more bytes than the problem must."""
    evaluation = parent_evaluation(session, parent)
    if evaluation is None or evaluation.profile is None:
        return False
    over = place(session.facts, session.device, evaluation).moved_over_least
    return over is not None and abs(over - 1) <= _LEAST_BY


def _only_saves_sectors(strategy: Strategy) -> bool:
    """Whether fewer sectors are all that it claims."""
    claimed = {item.counter for item in strategy.effects if item.direction is Direction.DOWN}
    return bool(claimed) and len(claimed) == len(strategy.effects) and claimed <= _SECTORS


def _by_evidence(session: Session, left: Sequence[Strategy], parent: Round) -> tuple[Strategy, ...]:
    evaluation = parent_evaluation(session, parent)
    found = diagnose(session.facts, evaluation, session.device)
    counted = evaluation is not None and evaluation.profile is not None
    stages = {Stage.STRUCTURE, Stage.PROFILE}
    if session.plan.schedule is Schedule.PAPER:
        stages.add(Stage.TUNE)  # its last resort, within one stage
    usable = [
        s
        for s in left
        if s.stage in stages and (s.stage is not Stage.PROFILE or not counted or s.name in found.strategies)
    ]
    return tuple(sorted(usable, key=lambda strategy: _rank(strategy, found)))


def _rank(strategy: Strategy, found: Diagnosis) -> int:
    """Place among the diagnosis's answers; after all of them where it is none, tuning last."""
    if strategy.name in found.strategies:
        return found.strategies.index(strategy.name)
    return len(found.strategies) + (strategy.stage is Stage.TUNE)

"""Plan of an epoch: the change that each slot tries, from the members and the gains of earlier moves; pure.

The plan follows from the session at the start of the epoch alone, so a run that was killed in mid-epoch makes
the same plan again and carries out the slots that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.knowledge.gains import best_lines
from cutegen_nb.analysis.population.members import Member, candidates, population
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy, StrategySource
from cutegen_nb.loop.knowledge_order import Choice, ordered
from cutegen_nb.loop.lineage import line_of
from cutegen_nb.loop.menu import of_stage, untried

SHARES = {MoveKind.EXTEND: 2.0, MoveKind.CROSS: 2.0, MoveKind.INVENT: 1.0}
"""Share of the slots of each move before any has gained; `benchmarks/population.py` compares others."""
_PRIOR_GAINS, _PRIOR_TRIES = 1, 2
"""Gains and tries that every move starts with, so that two failures do not end it."""
_REMEMBERED_EPOCHS = 3
"""Newest epochs whose gains count: what paid on a naive kernel does not pay on a tuned one."""
_LEAST_RECALLED = 1.05
"""Total speedup from which a recorded line of strategies is worth a slot."""
_RANK_STEP = 2
"""Strategies of a member that are tried before the first of the next slower member."""
_OTHERS = 2
"""Strategies that may follow in one slot where the author ends the first."""
_STAGES = (Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSlot:
    """Slot of an epoch before it runs."""

    slot: Slot
    """Place, move and parents."""
    base: Round
    """Round with the kernel whose code is changed."""
    other: Round | None = None
    """For CROSS: round with the kernel whose strategies are taken over."""
    strategy: Strategy | None = None
    """Strategy to carry out; None where the author states it first."""
    stage: Stage = Stage.STRUCTURE
    """Stage of the request for code."""
    because: str = ""
    """Sentence on the records of like problems that moved the strategy up or down; empty where none did."""
    others: tuple[tuple[Strategy, Stage], ...] = ()
    """For EXTEND: strategies that follow in this slot where the author ends one with a reason, each with its
    stage."""


def plan_epoch(
    session: Session,
    menu: Sequence[Strategy],
    records: Sequence[StrategyRecord] = (),
    target: EstimateTarget | None = None,
) -> tuple[PlannedSlot, ...]:
    """Plan the next epoch of `session`, which holds no round of it yet; empty when nothing is left to try.

    A person's strategies come first, then a line of strategies that won on a like problem. The other slots
    are shared between the moves by what each gained.
    """
    members = population(session)
    if not members:
        return ()
    size = session.plan.population
    banned = forbidden(session)
    menu = tuple(item for item in menu if item.name not in banned)
    first = _certain(session, members, records)
    free = max(0, size - len(first))
    epoch = len(session.epochs) + 1
    # The first epoch explores the menu: there is no pair to cross and little evidence to invent from.
    shares = quotas(session, free) if session.epochs else {MoveKind.EXTEND: free}
    crossovers = list(_crossovers(session, members))
    crossed = crossovers[: shares.get(MoveKind.CROSS, 0)]
    # Leave out an extension that would give the same kernel as a crossover of this epoch.
    left_out = {step for item in crossed for step in _single_steps(session, item)}
    extensions = _extensions(session, members, menu, records, target)
    offers = {
        MoveKind.EXTEND: (item for item in extensions if _step(item) not in left_out),
        MoveKind.CROSS: iter(crossovers),
        MoveKind.INVENT: _inventions(session, members),
    }
    planned = _with_others([*first, *_shared(offers, shares, free)], offers[MoveKind.EXTEND])
    return tuple(
        replace(item, slot=replace(item.slot, epoch=epoch, number=number))
        for number, item in enumerate(planned, start=1)
    )


def _with_others(planned: Sequence[PlannedSlot], left: Iterator[PlannedSlot]) -> list[PlannedSlot]:
    """Give each slot that extends a member up to `_OTHERS` strategies of those that no slot took."""
    by_base: dict[int, list[tuple[Strategy, Stage]]] = {}
    for item in left:
        if item.strategy is not None:
            by_base.setdefault(item.base.number, []).append((item.strategy, item.stage))
    found: list[PlannedSlot] = []
    for item in planned:
        if item.slot.move is MoveKind.EXTEND:
            waiting = by_base.get(item.base.number, [])
            found.append(replace(item, others=tuple(waiting[:_OTHERS])))
            del waiting[:_OTHERS]
        else:
            found.append(item)
    return found


def strategies_beside(epoch: Sequence[PlannedSlot], slot: PlannedSlot) -> tuple[str, ...]:
    """Names of the strategies that the other slots of an epoch carry out, as far as the plan knows them."""
    others = (item.strategy for item in epoch if item is not slot)
    return tuple(dict.fromkeys(strategy.name for strategy in others if strategy is not None))


def forbidden(session: Session, decisions: Sequence[Decision] = ()) -> tuple[str, ...]:
    """Names of the strategies that a person forbade, in order."""
    made = [decision for epoch in session.epochs for decision in epoch.decisions]
    names = (item.edited for item in (*made, *decisions) if item.action is Action.FORBID)
    return tuple(dict.fromkeys(names))


def written_strategies(decisions: Sequence[Decision]) -> tuple[Strategy, ...]:
    """Return the strategies that a person wrote in these decisions, as ``name: statement``."""
    found = []
    for decision in decisions:
        if decision.action is Action.REQUEST:
            name, _, statement = decision.edited.partition(":")
            found.append(
                Strategy(name=name.strip(), statement=statement.strip(), source=StrategySource.PERSON.value)
            )
    return tuple(found)


def quotas(session: Session, slots: int) -> dict[MoveKind, int]:
    """Share `slots` between the moves by how often each gained in the last epochs.

    The weight of a move is its share in `SHARES` times its rate of gains, with `_PRIOR_GAINS` of
    `_PRIOR_TRIES` added. Fractions of a slot go to the largest remainders.
    """
    newest = len(session.epochs) - _REMEMBERED_EPOCHS
    recent = [item for item in session.rounds if item.slot and item.slot.epoch > newest]
    weights = {}
    for move, prior in SHARES.items():
        tried = [item for item in recent if item.slot and item.slot.move is move]
        gained = [item for item in tried if item.comparison and item.comparison.relation.is_better]
        weights[move] = prior * (_PRIOR_GAINS + len(gained)) / (_PRIOR_TRIES + len(tried))
    total = sum(weights.values())
    exact = {move: slots * weight / total for move, weight in weights.items()}
    shares = {move: int(value) for move, value in exact.items()}
    by_remainder = sorted(exact, key=lambda move: shares[move] - exact[move])
    for move in by_remainder[: slots - sum(shares.values())]:
        shares[move] += 1
    return shares


def _shared(
    offers: dict[MoveKind, Iterator[PlannedSlot]], shares: dict[MoveKind, int], free: int
) -> list[PlannedSlot]:
    """Take each move's share of its offers; slots that a move cannot fill go to the others in turn."""
    taken: list[PlannedSlot] = []
    for move, offer in offers.items():
        taken += [item for _, item in zip(range(shares.get(move, 0)), offer, strict=False)]
    for offer in offers.values():
        taken += [item for _, item in zip(range(free - len(taken)), offer, strict=False)]
    return taken


def _certain(
    session: Session, members: Sequence[Member], records: Sequence[StrategyRecord]
) -> list[PlannedSlot]:
    best = members[0].item
    decisions = session.epochs[-1].decisions if session.epochs else ()
    planned = [
        _planned(MoveKind.REQUEST, best, strategy=strategy) for strategy in written_strategies(decisions)
    ]
    line = recalled_line(session, records)
    if not session.epochs and line is not None:
        planned.append(_planned(MoveKind.RECALL, members[0].item, strategy=line))
    return planned


def recalled_line(session: Session, records: Sequence[StrategyRecord]) -> Strategy | None:
    """Combine the strategies of the line that ended fastest on a like problem; None where none gained."""
    found = best_lines(records, session.facts, session.device, 1)
    if not found or found[0].record.total_speedup < _LEAST_RECALLED:
        return None
    line, best = found[0].applied, found[0].record
    steps = " ".join(f"({number}) {item.name}: {item.statement}" for number, item in enumerate(line, start=1))
    kind = "an estimate" if best.estimated else "measured"
    return Strategy(
        name="recall-best-line",
        statement=(
            f"On a like problem ({best.problem.workload_class.value}, {best.problem.regime}) these "
            f"strategies together ended {best.total_speedup:.2f}× its first kernel ({kind}, {best.device}). "
            f"Carry out those that fit here, in one step: {steps}"
        ),
        source=StrategySource.HISTORY.value,
        absent=tuple(dict.fromkeys(best.aligned.brought)),
        parents=tuple(item.name for item in line),
    )


def _extensions(
    session: Session,
    members: Sequence[Member],
    menu: Sequence[Strategy],
    records: Sequence[StrategyRecord],
    target: EstimateTarget | None,
) -> Iterator[PlannedSlot]:
    """Yield the untried strategies of the menu, those of fast members first.

    `_RANK_STEP` strategies of the fastest member come before the first of the next one, and so on.
    """
    lists = [list(_offered(session, member, menu, records, target)) for member in members]
    places = [(place, rank) for rank, offers in enumerate(lists) for place in range(len(offers))]
    for place, rank in sorted(places, key=lambda at: (at[0] + _RANK_STEP * at[1], at[1])):
        choice, stage = lists[rank][place]
        planned = _planned(MoveKind.EXTEND, members[rank].item, strategy=choice.strategy, stage=stage)
        yield replace(planned, because=choice.because)


def _offered(
    session: Session,
    member: Member,
    menu: Sequence[Strategy],
    records: Sequence[StrategyRecord],
    target: EstimateTarget | None,
) -> Iterator[tuple[Choice, Stage]]:
    """Yield the untried strategies for a member: structure first, then answers to counters, then numbers.

    Within a stage those that won on like problems come first, and those that lost there last.
    """
    left = untried(session, menu, member.item)
    seen: set[str] = set()
    for stage in _STAGES:
        for choice in ordered(
            of_stage(session, left, member.item, stage, target), records, session, member.item
        ):
            if choice.strategy.name not in seen:
                seen.add(choice.strategy.name)
                yield choice, stage


def _crossovers(session: Session, members: Sequence[Member]) -> Iterator[PlannedSlot]:
    """Yield the pairs of which each knows a strategy that the other lacks; no pair is crossed twice.

    Pairs in which the slower kernel carries out an optimisation that the faster one lacks come first, then
    the fastest pairs. Two kernels that work alike under two names have nothing to give one another.
    """
    done = {
        frozenset(item.slot.parents)
        for item in session.rounds
        if item.slot and item.slot.move is MoveKind.CROSS
    }
    lines = {member.digest: applied_names(session, member.item) for member in members}
    pairs = sorted(
        combinations(members, 2),
        key=lambda pair: (not pair[1].niche - pair[0].niche, -pair[0].speed * pair[1].speed),
    )
    for base, other in pairs:
        brings = lines[other.digest] - lines[base.digest]
        if brings and lines[base.digest] - lines[other.digest] and {base.digest, other.digest} not in done:
            yield _planned(MoveKind.CROSS, base.item, other=other.item)


def _step(planned: PlannedSlot) -> tuple[int, str]:
    """Return the member that a slot extends, by its number, and the strategy."""
    return planned.base.number, planned.strategy.name if planned.strategy else ""


def _single_steps(session: Session, crossover: PlannedSlot) -> set[tuple[int, str]]:
    """Return the extensions of a parent by one strategy that would give the same kernel as the crossover."""
    found = set()
    for one, two in ((crossover.base, crossover.other), (crossover.other, crossover.base)):
        if one is not None and two is not None:
            lacking = _applied(session, two).keys() - _applied(session, one).keys()
            names = [name for name in lacking if not _applied(session, two)[name]]
            found |= {(one.number, name) for name in names if len(names) == 1}
    return found


def applied_names(session: Session, item: Round) -> frozenset[str]:
    """Names of the strategies carried out from the first kernel to `item`, parts of a crossover included."""
    return frozenset(_applied(session, item))


def _applied(session: Session, item: Round) -> dict[str, bool]:
    """Strategies carried out from the first kernel to `item`, by name: True for one that combines others."""
    known = {made.strategy.identity: made.strategy for made in session.rounds if made.strategy is not None}
    left = [made.strategy for made in line_of(session, item) if made.strategy is not None]
    found: dict[str, bool] = {}
    while left:
        strategy = left.pop()
        if strategy.name not in found:
            found[strategy.name] = bool(strategy.parents)
            found |= {name: False for name in strategy.parents if name not in known}
            left += [known[identity] for identity in strategy.parents if identity in known]
    return found


def _inventions(session: Session, members: Sequence[Member]) -> Iterator[PlannedSlot]:
    """Yield one invention a member, the fastest first; none after an author that states no strategies."""
    tried = [item for item in session.rounds if item.slot and item.slot.move is MoveKind.INVENT]
    if any(item.candidate is None and not any(a.reply for a in item.attempts) for item in tried):
        return
    for member in members:
        yield _planned(MoveKind.INVENT, member.item, stage=Stage.PROFILE)


def _planned(
    move: MoveKind,
    base: Round,
    *,
    other: Round | None = None,
    strategy: Strategy | None = None,
    stage: Stage = Stage.STRUCTURE,
) -> PlannedSlot:
    digests = tuple(item.candidate.digest for item in (base, other) if item and item.candidate)
    slot = Slot(epoch=0, number=0, move=move, parents=digests)
    return PlannedSlot(slot=slot, base=base, other=other, strategy=strategy, stage=stage)


def restart_members(session: Session) -> tuple[Member, ...]:
    """Return what a restart keeps: the fastest kernel, the pinned ones, and the first kernel."""
    found = candidates(session)
    first = min(found, key=lambda member: member.item.number, default=None)
    kept = [member for index, member in enumerate(found) if index == 0 or member.pinned or member is first]
    return tuple(kept)

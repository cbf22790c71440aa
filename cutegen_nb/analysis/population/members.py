"""Members of a population: the kernels that may go on, their speed, and what they carry out; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.search.population import Duel
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Optimisation

_BY_COUNTS = {Relation.LESS_WORK: 1.01, Relation.MORE_WORK: 0.99}
"""Speed against the best before, where counts alone decide. They give an order and no ratio."""
_LEAST_SPEED = 0.5
"""Share of the fastest member's speed below which another way of working earns no place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Kernel of a population."""

    item: Round
    """Round that it was made in."""
    digest: str
    """Digest of its source."""
    speed: float
    """Time of the first kernel ÷ its time, measured or estimated."""
    niche: frozenset[Optimisation]
    """Optimisations that it carries out; members with equal sets work alike."""
    pinned: bool = False
    """True if a person keeps it whatever selection says."""

    @property
    def label(self) -> str:
        """Name of the revision: ``r3``."""
        return f"r{self.item.number}"


def speeds(session: Session, duels: Iterable[Duel] = ()) -> dict[str, float]:
    """Return the first kernel's time ÷ the time of each kernel that passed, by digest.

    Each comparison is relative to the best of its time, so the ratios multiply along the chain of bests.
    Times measured elsewhere on one device replace comparisons where the first kernel was measured too. The
    duels come last: both kernels ran in the same turns.
    """
    found: dict[str, float] = {}
    for item in session.rounds:
        comparison = item.comparison
        if item.candidate is None or comparison is None:
            continue
        ratio = comparison.speedup or _BY_COUNTS.get(comparison.relation, 1.0)
        found[item.candidate.digest] = ratio * found.get(comparison.against, 1.0)
    found |= _measured_elsewhere(session)
    for duel in (*(duel for epoch in session.epochs for duel in epoch.duels), *duels):
        if duel.speedup and duel.holder in found:
            found[duel.challenger] = duel.speedup * found[duel.holder]
    return found


def _measured_elsewhere(session: Session) -> dict[str, float]:
    """Speeds from absorbed timings, all from the device of the newest; empty without the first kernel's."""
    device = session.measurements[-1].device.name if session.measurements else ""
    times = {
        item.candidate_digest: item.evaluation.timing.median_ms
        for item in session.measurements
        if item.device.name == device and item.evaluation.passed and item.evaluation.timing
    }
    first = next((r.candidate.digest for r in session.rounds if r.candidate and r.approved), "")
    if first not in times:
        return {}
    return {digest: times[first] / time_ms for digest, time_ms in times.items() if time_ms > 0}


def candidates(
    session: Session, decisions: Sequence[Decision] = (), duels: Iterable[Duel] = ()
) -> tuple[Member, ...]:
    """List the kernels that selection may keep, fastest first.

    These are the approved kernels that no measurement refuted and no person dropped. `decisions` and `duels`
    are those of an epoch that is not over yet.
    """
    chosen = fates(session, decisions)
    found: dict[str, Member] = {}
    by_digest = speeds(session, duels)
    for item in session.rounds:
        digest = item.candidate.digest if item.candidate else ""
        if not item.approved or chosen.get(digest) is Action.DROP or _refuted(session, item):
            continue
        found[digest] = Member(
            item=item,
            digest=digest,
            speed=by_digest.get(digest, 1.0),
            niche=frozenset(item.aligned.in_force if item.aligned else ()),
            pinned=chosen.get(digest) is Action.PIN,
        )
    return tuple(sorted(found.values(), key=lambda member: -member.speed))


def _refuted(session: Session, item: Round) -> bool:
    found = session.measured(item)
    return found is not None and not found.evaluation.passed


def fates(session: Session, decisions: Sequence[Decision] = ()) -> dict[str, Action]:
    """Return PIN or DROP for each kernel that a person decided on, by digest; the newest decision counts."""
    made = [decision for epoch in session.epochs for decision in epoch.decisions]
    found: dict[str, Action] = {}
    for decision in (*made, *decisions):
        item = session.passing(decision.edited) if decision.action in {Action.PIN, Action.DROP} else None
        if item is not None and item.candidate is not None:
            found[item.candidate.digest] = decision.action
    return found


def select(members: Sequence[Member], size: int, elites: int) -> tuple[Member, ...]:
    """Select `size` of `members`, which are sorted by speed; the result is sorted likewise.

    Pinned members stay, beyond `size` if need be. Then come the `elites` fastest, then the fastest of each
    niche that is not represented, unless it is far slower than the fastest of all, then the rest by speed.
    Two texts of one kernel say nothing on diversity, so a niche is a set of optimisations in force.
    """
    if not members:
        return ()
    least = _LEAST_SPEED * members[0].speed
    kept = [member for member in members if member.pinned]
    kept += [member for member in members[:elites] if member not in kept]
    for member in members:
        if len(kept) < size and member.speed >= least and member.niche not in {one.niche for one in kept}:
            kept.append(member)
    kept += [member for member in members if member not in kept][: max(0, size - len(kept))]
    return tuple(sorted(kept, key=lambda member: -member.speed))


def population(session: Session) -> tuple[Member, ...]:
    """List the members that the next epoch starts from, fastest first.

    Before the first epoch this is the best kernel; empty while no kernel passed.
    """
    by_digest = {member.digest: member for member in candidates(session)}
    if session.epochs:
        return tuple(by_digest[digest] for digest in session.epochs[-1].members if digest in by_digest)
    best = session.best
    first = by_digest.get(best.candidate.digest) if best and best.candidate else None
    return (first,) if first else ()


def member_round(session: Session, digest: str, epoch: int) -> Round | None:
    """Return the round of a member of an epoch: the newest with this source that is not of a later epoch."""
    later = (item.number for item in session.rounds if item.slot and item.slot.epoch > epoch)
    return session.round_of(digest, before=next(later, None))


def stagnant_epochs(session: Session) -> int:
    """Number of epochs at the end that named no new champion."""
    champions = [epoch.champion for epoch in session.epochs]
    count = 0
    for index in range(len(champions) - 1, -1, -1):
        before = champions[index - 1] if index else _before_epochs(session)
        if champions[index] != before or session.epochs[index].restarted:
            break
        count += 1
    return count


def _before_epochs(session: Session) -> str:
    """Digest of the best kernel before the first epoch."""
    made = [item for item in session.rounds if item.slot is None and item.approved and item.candidate]
    return made[-1].candidate.digest if made and made[-1].candidate else ""


def evaluation_of(member: Member) -> Evaluation:
    """Return the evaluation of a member, which passed."""
    evaluation = member.item.evaluation
    assert evaluation is not None
    return evaluation

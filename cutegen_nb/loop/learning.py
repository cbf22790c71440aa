"""Records for the knowledge base: the effect of each strategy on the kernel it started from; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.estimate.targets import EstimateTarget, target_of
from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.analysis.strategy.alignment import FEATURES, align, optimisations_in_force, statement_of
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits, kernel_traits
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.knowledge import AppliedStrategy, StrategyRecord
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Alignment, Strategy
from cutegen_nb.loop.lineage import line_of, parent_digest, parent_evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnDevice:
    """Evaluations of a session that one device made."""

    device: Device
    """The device."""
    evaluations: Mapping[str, Evaluation]
    """Evaluations by the digest of the candidate."""
    versions: dict[str, str]
    """Versions of packages and driver."""


def records_of(
    session: Session, *, rounds: Sequence[Round] | None = None, target: EstimateTarget | None = None
) -> tuple[StrategyRecord, ...]:
    """Return a record for each strategy whose kernel passed and has a known time relative to its parent.

    Times are those of `analysis.history.compare`: both kernels timed in the same turns, else each against the
    same baseline, else estimates for `target` (by default `target_of` the session's device). Where counts
    alone are known there is no record. A loss is a record too. Kernels that were measured elsewhere have a
    record for each device. `rounds` limits the records to some rounds of the session.
    """
    target = target or target_of(session.device)
    wanted = session.rounds if rounds is None else rounds
    found = (_record(session, item, where, target) for where in _on_devices(session) for item in wanted)
    return tuple(item for item in found if item is not None)


def _on_devices(session: Session) -> Iterator[_OnDevice]:
    here: dict[str, Evaluation] = {}
    for item in session.rounds:
        evaluation = parent_evaluation(session, item)
        if item.candidate and evaluation:
            here[item.candidate.digest] = evaluation
    yield _OnDevice(
        device=session.device, evaluations=here, versions=_versions(session.device, session.environment)
    )
    for device in {item.device.name: item.device for item in session.measurements}.values():
        some = [item for item in session.measurements if item.device.name == device.name]
        yield _OnDevice(
            device=device,
            evaluations={item.candidate_digest: item.evaluation for item in some},
            versions=_versions(device, some[-1].environment),
        )


def _versions(device: Device, environment: Mapping[str, str]) -> dict[str, str]:
    return {**environment, **({"driver": device.driver} if device.driver else {})}


def _record(session: Session, item: Round, where: _OnDevice, target: EstimateTarget) -> StrategyRecord | None:
    parent = session.round_of(parent_digest(item), before=item.number)
    if parent is None or parent.candidate is None or item.candidate is None or item.strategy is None:
        return None
    if parent.candidate.digest == item.candidate.digest:
        return None
    before = where.evaluations.get(parent.candidate.digest)
    after = where.evaluations.get(item.candidate.digest)
    if before is None or after is None or not before.passed or not after.passed:
        return None
    found = compare(before, after, session.facts, target=target)
    seconds = after.timing.median_ms / 1e3 if after.timing else found.estimated_s
    aligned = _aligned(session, item, item.strategy, where)
    # A person's words may have put another step in the strategy's place: its effect is not the strategy's.
    steered = any(attempt.prompt.steering for attempt in item.attempts)
    if not found.speedup or not seconds or (steered and aligned.unfulfilled):
        return None
    is_estimated = after.timing is None
    line = tuple(reversed(line_of(session, parent)))
    return StrategyRecord(
        strategy=item.strategy,
        aligned=aligned,
        line=tuple(_applied(session, one, one.strategy, where) for one in line if one.strategy),
        problem=problem_key(session.facts),
        problem_digest=session.problem.digest,
        parent_digest=parent.candidate.digest,
        candidate_digest=item.candidate.digest,
        architecture=target.sheet.architecture if is_estimated else where.device.architecture,
        device=target.name if is_estimated else where.device.name,
        bound=diagnose(session.facts, before, where.device).bound,
        parent_in_force=optimisations_in_force(_traits(session, parent, where)),
        seconds=seconds,
        speedup=found.speedup,
        total_speedup=_total(session, line[0], after, where, target) or found.speedup,
        estimated=is_estimated,
        session=session.name,
        session_at=session.created_at,
        revision=f"r{item.number}",
        recorded_at=item.started_at,
        versions=where.versions,
    )


def _total(
    session: Session, first: Round, after: Evaluation, where: _OnDevice, target: EstimateTarget
) -> float | None:
    before = where.evaluations.get(first.candidate.digest) if first.candidate else None
    return compare(before, after, session.facts, target=target).speedup if before else None


def _applied(session: Session, item: Round, strategy: Strategy, where: _OnDevice) -> AppliedStrategy:
    aligned = _aligned(session, item, strategy, where)
    return AppliedStrategy(name=strategy.name, statement=statement_of(strategy, aligned))


def _aligned(session: Session, item: Round, strategy: Strategy, where: _OnDevice) -> Alignment:
    """Return the round's alignment; in a chain, which has none, the one that the two kernels show."""
    if item.aligned is not None:
        return item.aligned
    parent = session.round_of(parent_digest(item), before=item.number)
    before = _traits(session, parent, where) if parent else None
    return align(strategy, before, _traits(session, item, where), statement="", carries=(), by=FEATURES)


def _traits(session: Session, item: Round, where: _OnDevice) -> KernelTraits:
    assert item.candidate is not None
    # Counts of the session's own evaluation serve where the other device took none.
    found = where.evaluations.get(item.candidate.digest) or item.evaluation
    profile, sample = (found.profile, found.full_size) if found else (None, None)
    return kernel_traits(item.candidate.source, session.facts, profile, sample)

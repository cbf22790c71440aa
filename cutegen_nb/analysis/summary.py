"""A session in rows: what a table, a report or ``--json`` says of each round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.quantity import change, count, duration, interval, share, times
from cutegen_nb.analysis.roofline import place
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Decision, Relation, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Bound

_GOOD = {relation.value for relation in Relation if relation.is_better}
_BAD = {Relation.SLOWER.value, Relation.MORE_WORK.value}
_DONE = {
    Action.APPROVE: "approved",
    Action.REJECT: "rejected",
    Action.STEER: "steered",
    Action.EDIT: "edited",
    Action.BRANCH: "branched",
    Action.OVERRULE: "overruled",
    Action.STOP: "stopped",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSummary:
    """One round in a row."""

    revision: str
    """``r0``, ``r1`` …"""
    strategy: str
    """Its strategy's name; empty while the first passing kernel was sought."""
    verdict: str
    """The verdict's name, ``not judged: REASON``, ``not evaluated`` or ``no candidate``."""
    passed: bool
    """Whether the verdict is PASSED."""
    relation: str
    """Against the best before it: ``faster``, ``less work`` …; empty when nothing passed."""
    reason: str
    """The figures behind the relation, or why there is no candidate."""
    decision: str
    """``approved``, ``rejected`` … at the revision gate; empty when it was not asked."""
    decided_by: str
    """Who decided."""
    words: str
    """What was said with the decision."""
    best: bool
    """Whether it is the session's best."""
    attempts: int
    """Exchanges with the author."""
    seconds: float
    """Wall time of the round, people's time included."""
    gmem_sectors: int | None = None
    """32-byte sectors touched by global requests; None without counts."""
    smem_wavefronts: int | None = None
    """Passes over shared memory; None without counts."""
    warp_instructions: int | None = None
    """Instructions issued to warps; None without counts."""
    moved_over_least: float | None = None
    """Bytes of those sectors ÷ least bytes; None without counts."""
    median_ms: float | None = None
    """Measured latency; None without a GPU."""
    speedup: float | None = None
    """Over `baseline`; None without a GPU."""
    speedup_low: float | None = None
    """Lower end of its 95 % interval; None without a GPU."""
    speedup_high: float | None = None
    """Upper end."""
    baseline: str = ""
    """What the speedup is over."""
    sol_fraction: float | None = None
    """Floor ÷ latency; None without a GPU."""


def revision(item: Round) -> str:
    """A round's short name: ``r2``."""
    return f"r{item.number}"


def simulated(session: Session) -> bool:
    """Whether the session's figures are simulated counts."""
    return session.device.kind is DeviceKind.SIMULATOR


def hardware(session: Session) -> str:
    """The GPU whose roofs are drawn, real or simulated."""
    return session.device.name.removesuffix(" (simulated)")


def floor(session: Session) -> str:
    """The least time of the problem at full size, in words; computed, never measured."""
    roof = place(session.facts, session.device)
    if not roof.floor_ms:
        return f"unknown: {session.device.source}"
    limit = "bytes ÷ bandwidth" if roof.bound is Bound.MEMORY else "FLOPs ÷ peak"
    return f"{duration(roof.floor_ms / 1e3)} at full size on {hardware(session)}, computed as {limit}"


def rows(session: Session) -> tuple[RoundSummary, ...]:
    """One row a round, in order."""
    best = session.best
    return tuple(_row(session, item, is_best=item is best) for item in session.rounds)


def decision(item: Round) -> Decision | None:
    """What was decided on the revision, last word first."""
    return next((made for made in reversed(item.decisions) if made.gate == "revision"), None)


def deed(made: Decision | None) -> str:
    """A decision as a past participle; empty for none."""
    return _DONE[made.action] if made else ""


def who(by: str) -> str:
    """Who decided, in words: ``person:ada`` is ``ada``, ``policy:auto`` is ``policy auto``."""
    kind, separator, name = by.partition(":")
    if not separator or not name:
        return by
    return name if kind == "person" else f"{kind} {name}"


def parent_round(session: Session, item: Round) -> Round | None:
    """The earlier round whose candidate this one was compared with or made from; None for a first one."""
    candidate = item.candidate
    if candidate is None:
        return None
    asked = [attempt.prompt.parent for attempt in item.attempts if attempt.prompt.parent]
    against = item.comparison.against if item.comparison else ""
    earlier = [
        (before.candidate.digest, before)
        for before in reversed(session.rounds)
        if before.number < item.number and before.candidate
    ]
    for digest in (against, *candidate.parents, *(parent.digest for parent in asked)):
        for known, before in earlier:
            if digest and digest == known:
                return before
    return None


def parent_candidate(session: Session, item: Round) -> Candidate | None:
    """The candidate to show differences from; None for a first one."""
    parent = parent_round(session, item)
    return parent.candidate if parent else None


def outcome(session: Session) -> str:
    """What the session came to, in a sentence or two."""
    best = session.best
    if not session.rounds:
        return "No round has finished yet."
    if best is None:
        passed = sum(1 for item in session.rounds if item.evaluation and item.evaluation.passed)
        if passed:
            return f"{passed} of {len(session.rounds)} rounds passed, but none was approved."
        return f"None of {_rounds(len(session.rounds))} passed."
    first = next(item for item in session.rounds if item.approved)
    strategy = best.strategy or (best.candidate.strategy if best.candidate else None)
    named = f" ({strategy.name})" if strategy else ""
    said = f"{revision(best)}{named} is the best of {_rounds(len(session.rounds))}."
    return f"{said} {_gain(session, first, best)}".rstrip()


def _rounds(number: int) -> str:
    return "1 round" if number == 1 else f"{number} rounds"


def _gain(session: Session, first: Round, best: Round) -> str:
    start, end = first.evaluation, best.evaluation
    if start is None or end is None:
        return ""
    if end.timing:
        over = "".join(
            f", {interval(item.speedup, item.speedup_low, item.speedup_high)} over {item.name}"
            for item in end.timing.baselines
        )
        return f"It takes {end.timing.median_ms:.3g} ms{over}."
    if not start.profile or not end.profile:
        return ""
    before, after = start.profile.counters, end.profile.counters
    over_least = place(session.facts, session.device, end).moved_over_least
    least = f", {times(over_least)} the least bytes" if over_least else ""
    if first is best:
        return f"It touches {count(after.gmem_sectors)} global sectors{least}."
    return (
        f"Since {revision(first)}, global sectors went "
        f"{_step(before.gmem_sectors, after.gmem_sectors)}{least}; "
        f"warp instructions {_step(before.warp_instructions, after.warp_instructions)}."
    )


def standing(item: RoundSummary) -> str:
    """``good``, ``bad`` or ``neutral``: how it stands to the best before it."""
    return "good" if item.relation in _GOOD else "bad" if item.relation in _BAD else "neutral"


def counted_figures(item: RoundSummary) -> tuple[str, str, str]:
    """Sectors, warp instructions and bytes ÷ least bytes; dashes without counts."""
    return (
        _or_dash(item.gmem_sectors, count),
        _or_dash(item.warp_instructions, count),
        _or_dash(item.moved_over_least, times),
    )


def timed_figures(item: RoundSummary, over: str = "") -> tuple[str, str, str]:
    """Latency, speedup and share of the roof; dashes without times. `over` is put behind the speedup."""
    gained = sped(item)
    return (
        _or_dash(item.median_ms, lambda value: duration(value / 1e3)),
        f"{gained} {over}".strip() if gained else "–",
        _or_dash(item.sol_fraction, share),
    )


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    return "–" if value is None else write(value)


def sped(item: RoundSummary) -> str:
    """The speedup with its interval; empty without one."""
    if item.speedup is None or item.speedup_low is None or item.speedup_high is None:
        return ""
    return interval(item.speedup, item.speedup_low, item.speedup_high)


def _step(before: int, after: int) -> str:
    return f"{count(before)} → {count(after)} ({change(before, after)})"


def _row(session: Session, item: Round, *, is_best: bool) -> RoundSummary:
    evaluation = item.evaluation
    made = decision(item)
    strategy = item.strategy or (item.candidate.strategy if item.candidate else None)
    counters = evaluation.profile.counters if evaluation and evaluation.profile else None
    timing = evaluation.timing if evaluation else None
    baseline = timing.baselines[0] if timing and timing.baselines else None
    roof = place(session.facts, session.device, evaluation)
    return RoundSummary(
        revision=revision(item),
        strategy=strategy.name if strategy else "",
        verdict=_verdict(item),
        passed=bool(evaluation and evaluation.passed),
        relation=item.comparison.relation.value if item.comparison else "",
        reason=_reason(item, evaluation),
        decision=deed(made),
        decided_by=made.by if made else "",
        words=made.reason if made else "",
        best=is_best,
        attempts=len(item.attempts),
        seconds=item.seconds,
        gmem_sectors=counters.gmem_sectors if counters else None,
        smem_wavefronts=counters.smem_wavefronts if counters else None,
        warp_instructions=counters.warp_instructions if counters else None,
        moved_over_least=roof.moved_over_least,
        median_ms=timing.median_ms if timing else None,
        speedup=baseline.speedup if baseline else None,
        speedup_low=baseline.speedup_low if baseline else None,
        speedup_high=baseline.speedup_high if baseline else None,
        baseline=baseline.name if baseline else "",
        sol_fraction=roof.sol_fraction,
    )


def _verdict(item: Round) -> str:
    if item.evaluation:
        return item.evaluation.label
    return "not evaluated" if item.candidate else "no candidate"


def _reason(item: Round, evaluation: Evaluation | None) -> str:
    if item.comparison:
        return item.comparison.reason
    if evaluation:
        return evaluation.summary
    problem = next((attempt.problem for attempt in reversed(item.attempts) if attempt.problem), "")
    return item.note or problem

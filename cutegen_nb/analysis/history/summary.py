"""Summary rows of a session, one a round, for tables, reports and ``--json``."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.estimate.estimate import estimate_of
from cutegen_nb.analysis.estimate.targets import target_named_in
from cutegen_nb.analysis.figures.baselines import missing_baselines
from cutegen_nb.analysis.figures.quantity import change, count, duration, interval, times
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.history.spending import rounds_spent
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.library import library_option, library_words, parse_library
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.comparison import Relation, same_kernel
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Bound
from cutegen_nb.core.timing import BaselineTiming

NO_CANDIDATE = "no candidate"
"""Verdict of a round that ended without a source."""
_GOOD = {relation.value for relation in Relation if relation.is_better}
"""Relations that count as an improvement, by value."""
_BAD = {Relation.SLOWER.value, Relation.ESTIMATED_SLOWER.value, Relation.MORE_WORK.value}
"""Relations that count as a loss, by value."""
_DONE = {
    Action.APPROVE: "approved",
    Action.REJECT: "rejected",
    Action.STEER: "steered",
    Action.EDIT: "edited",
    Action.BRANCH: "branched",
    Action.OVERRULE: "overruled",
    Action.STOP: "stopped",
    Action.PIN: "pinned",
    Action.DROP: "dropped",
    Action.REQUEST: "requested",
    Action.FORBID: "forbade",
    Action.BUDGET: "changed the budget to",
}
"""Actions at a gate as verbs of the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSummary:
    """Figures of one round."""

    revision: str
    """Label of the round: ``r0``, ``r1`` …"""
    strategy: str
    """Name of the strategy; empty while the first passing kernel was sought."""
    verdict: str
    """Name of the verdict, ``not judged: REASON``, ``not evaluated`` or ``no candidate``."""
    passed: bool
    """True if the verdict is PASSED."""
    relation: str
    """Relation to the best before it: ``faster``, ``less work`` …; empty where nothing passed."""
    reason: str
    """Figures behind the relation, or the reason why there is no candidate."""
    decision: str
    """Decision at the revision gate: ``approved``, ``rejected`` …; empty where the gate was not asked."""
    decided_by: str
    """Person or policy that decided: ``person:ada``, ``policy:auto``."""
    words: str
    """Reason given with the decision."""
    best: bool
    """True if it is the session's best."""
    attempts: int
    """Number of exchanges with the author."""
    seconds: float
    """Wall time of the round in seconds, people's time included."""
    estimated_s: float | None = None
    """Estimated seconds of a call at full size; None where it was timed or no sample was taken."""
    gmem_sectors: int | None = None
    """32-byte sectors touched by global requests; None without counts."""
    smem_wavefronts: int | None = None
    """Wavefronts of shared memory; None without counts."""
    warp_instructions: int | None = None
    """Warp instructions issued; None without counts."""
    moved_over_least: float | None = None
    """Bytes of the touched sectors ÷ least bytes; None without counts."""
    median_ms: float | None = None
    """Measured latency in ms; None without a GPU."""
    speedup: float | None = None
    """Speedup over `baseline`; None without a GPU."""
    speedup_low: float | None = None
    """Lower end of the speedup's 95 % interval; None without a GPU."""
    speedup_high: float | None = None
    """Upper end of the speedup's 95 % interval; None without a GPU."""
    baseline: str = ""
    """Name of the baseline of the speedup."""
    baselines: tuple[BaselineTiming, ...] = ()
    """Every baseline it was timed against, `baseline` first."""
    missing: tuple[str, ...] = ()
    """Names of baselines that were requested but could not be made."""
    sol_fraction: float | None = None
    """Floor ÷ latency; None without a GPU."""
    ended: tuple[str, ...] = ()
    """Strategies that the author ended in this round, each with its reason."""
    library: str = ""
    """Parts that PyTorch computed by the problem's library policy: ``conv,matmul``; empty for none."""
    epoch: int | None = None
    """Epoch of a population that it was made in; None in a chain, and for a first kernel."""
    move: str = ""
    """Kind of change that its slot tried: ``extend``, ``cross`` …; empty without a slot."""
    same_as: str = ""
    """Earlier revision with the same source: ``r2``; empty for a new kernel."""

    @property
    def verdict_words(self) -> str:
        """The verdict, with the parts that PyTorch computed: ``PASSED with PyTorch's conv``."""
        return f"{self.verdict} {library_words(parse_library(self.library))}".rstrip()

    @property
    def relation_words(self) -> str:
        """Relation as a person reads it; empty where nothing passed."""
        if self.same_as:
            return same_kernel(self.same_as)
        return Relation(self.relation).words if self.relation else ""


def revision(item: Round) -> str:
    """Return a round's label: ``r2``."""
    return f"r{item.number}"


def simulated(session: Session) -> bool:
    """Return whether the session's figures are simulated counts."""
    return session.device.kind is DeviceKind.SIMULATOR


def hardware(session: Session) -> str:
    """Return the name of the GPU whose roofs are drawn, real or simulated."""
    return roof_device(session).gpu_name


def roof_device(session: Session) -> Device:
    """Return the GPU whose roofs are drawn: on the simulator the one that times were estimated for."""
    reasons = (item.comparison.reason for item in session.rounds if item.comparison)
    named = next(filter(None, map(target_named_in, reasons)), None) if simulated(session) else None
    return named.device if named else session.device


def size_words(session: Session) -> str:
    """Tell at which reduced size the simulator runs the problem; empty where it runs the full size."""
    full, small = session.facts.full.graph.inputs, session.facts.scaled.graph.inputs
    pairs = [(one.spec.shape, other.spec.shape) for one, other in zip(full, small, strict=False)]
    changed = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if not simulated(session) or changed is None:
        return ""
    before, after = (" × ".join(f"{extent:,}" for extent in shape) for shape in changed)
    return (
        f"Runs at {after} instead of {before}: errors and counts are of this size, estimates of the full one."
    )


def floor(session: Session) -> str:
    """Format the least time of the problem at full size, which is computed and never measured."""
    roof = place(session.facts, roof_device(session))
    if not roof.floor_ms:
        return f"unknown: {roof_device(session).source}"
    limit = "bytes ÷ bandwidth" if roof.bound is Bound.MEMORY else "FLOPs ÷ peak"
    return f"{duration(roof.floor_ms / 1e3)} at full size on {hardware(session)}, computed as {limit}"


def rows(session: Session) -> tuple[RoundSummary, ...]:
    """Return one summary a round, in order."""
    best = session.best
    return tuple(_row(session, item, is_best=item is best) for item in session.rounds)


def row(session: Session, item: Round) -> RoundSummary:
    """Return the summary of one of the session's rounds."""
    return _row(session, item, is_best=item is session.best)


def decision(item: Round) -> Decision | None:
    """Return the last decision at the revision gate; None if there is none."""
    return next((made for made in reversed(item.decisions) if made.gate == "revision"), None)


def decision_word(made: Decision | None) -> str:
    """Return a decision as a past participle; empty for none."""
    return _DONE[made.action] if made else ""


def who(by: str) -> str:
    """Return the decider in words: ``ada`` for ``person:ada``, ``policy auto`` for ``policy:auto``."""
    kind, separator, name = by.partition(":")
    if not separator or not name:
        return by
    return name if kind == "person" else f"{kind} {name}"


def estimated_time(session: Session, item: Round) -> Estimate | None:
    """Return the estimate of a round's kernel for the GPU of its comparison; None where there is none."""
    target = target_named_in(item.comparison.reason) if item.comparison else None
    return estimate_of(item.evaluation, session.device, target)


def parent_round(session: Session, item: Round) -> Round | None:
    """Return the earlier round whose candidate this one was compared with or made from.

    None for a first one.
    """
    if item.candidate is None:
        return None
    against = item.comparison.against if item.comparison else ""
    asked = [attempt.prompt.parent.digest for attempt in item.attempts if attempt.prompt.parent]
    found = (session.round_of(digest, item.number) for digest in (against, *item.candidate.parents, *asked))
    return next((before for before in found if before), None)


def parent_candidate(session: Session, item: Round) -> Candidate | None:
    """Return the candidate to show differences from; None for a first one."""
    parent = parent_round(session, item)
    return parent.candidate if parent else None


def outcome(session: Session) -> str:
    """Summarise the result of the session in a sentence or two."""
    best = session.best
    if not session.rounds:
        return "No round was finished." if session.stopped else "No round has finished yet."
    if best is None:
        passed = sum(1 for item in session.rounds if item.evaluation and item.evaluation.passed)
        if passed:
            return f"{passed} of {len(session.rounds)} rounds passed, but none was approved."
        return f"None of {_rounds(len(session.rounds))} passed."
    first = next(item for item in session.rounds if item.approved)
    parts = (best_words(session, best), _gain(session, first, best), missing_words(session))
    return " ".join(part for part in parts if part)


def best_words(session: Session, best: Round) -> str:
    """Name the best round in a sentence."""
    strategy = best.strategy or (best.candidate.strategy if best.candidate else None)
    named = f" ({strategy.name})" if strategy else ""
    beside = library_words(best.evaluation.library) if best.evaluation else ""
    of = f"is the best of {_rounds(rounds_spent(session))}"
    return f"{revision(best)}{named} {of}, {beside}." if beside else f"{revision(best)}{named} {of}."


def missing_words(session: Session, told: Round | None = None) -> str:
    """List the baselines that could not be made, each with its rounds and reason, except those of `told`."""
    rounds: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for item in session.rounds:
        for name, reason in missing_baselines(item.evaluation) if item.evaluation else ():
            if item is not told:
                rounds.setdefault(name, []).append(revision(item))
                reasons.setdefault(name, reason)
    return " ".join(
        f"Not compared with {name} in {', '.join(rounds[name])}: {reason.rstrip('.')}."
        for name, reason in reasons.items()
    )


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
        f"{_estimated_gain(first, best)}Since {revision(first)}, global sectors went "
        f"{_step(before.gmem_sectors, after.gmem_sectors)}{least}; "
        f"warp instructions {_step(before.warp_instructions, after.warp_instructions)}."
    )


def _estimated_gain(first: Round, best: Round) -> str:
    """Tell the estimated times of the first and the best revision; empty without them."""
    start, end = first.comparison, best.comparison
    if start is None or end is None or not start.estimated_s or not end.estimated_s:
        return ""
    ratio = times(start.estimated_s / end.estimated_s)
    return (
        f"Its estimated time is {duration(end.estimated_s)}, that of {revision(first)} "
        f"{duration(start.estimated_s)} ({ratio}). "
    )


def relation_kind(item: RoundSummary) -> str:
    """Return ``good``, ``bad`` or ``neutral``, from the relation to the best before it."""
    return "good" if item.relation in _GOOD else "bad" if item.relation in _BAD else "neutral"


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
        strategy=strategy.name if strategy else item.title if item.slot else "",
        verdict=_verdict(item),
        passed=bool(evaluation and evaluation.passed),
        relation=item.comparison.relation.value if item.comparison else "",
        reason=_reason(item, evaluation),
        decision=decision_word(made),
        decided_by=made.by if made else "",
        words=made.reason if made else "",
        best=is_best,
        attempts=len(item.attempts),
        seconds=item.seconds,
        estimated_s=item.comparison.estimated_s if item.comparison else None,
        gmem_sectors=counters.gmem_sectors if counters else None,
        smem_wavefronts=counters.smem_wavefronts if counters else None,
        warp_instructions=counters.warp_instructions if counters else None,
        moved_over_least=roof.moved_over_least,
        median_ms=timing.median_ms if timing else None,
        speedup=baseline.speedup if baseline else None,
        speedup_low=baseline.speedup_low if baseline else None,
        speedup_high=baseline.speedup_high if baseline else None,
        baseline=baseline.name if baseline else "",
        baselines=timing.baselines if timing else (),
        missing=tuple(name for name, _ in missing_baselines(evaluation)) if evaluation else (),
        sol_fraction=roof.sol_fraction,
        ended=tuple(ended.text for ended in item.ended),
        library=library_option(evaluation.library) if evaluation else "",
        epoch=item.slot.epoch if item.slot else None,
        move=item.slot.move.value if item.slot else "",
        same_as=item.comparison.same_as if item.comparison else "",
    )


def verdict_words(item: Round) -> str:
    """Return a round's verdict with the parts that PyTorch computed, or why there is none."""
    beside = library_words(item.evaluation.library) if item.evaluation else ""
    return f"{_verdict(item)} {beside}".rstrip()


def _verdict(item: Round) -> str:
    if item.evaluation:
        return item.evaluation.label
    return "not evaluated" if item.candidate else NO_CANDIDATE


def _reason(item: Round, evaluation: Evaluation | None) -> str:
    if item.comparison:
        return item.comparison.reason
    if evaluation:
        return evaluation.summary
    problem = next((attempt.problem for attempt in reversed(item.attempts) if attempt.problem), "")
    return item.note or problem

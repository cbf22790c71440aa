"""Figures of a round at a glance: its bound with a bar for each limit, and the figures that changed most."""

from __future__ import annotations

import math

from cutegen_nb.analysis.bottleneck.diagnose import Demand, Diagnosis
from cutegen_nb.analysis.figures.quantity import change, duration, times
from cutegen_nb.analysis.history.claim_score import full_counters
from cutegen_nb.analysis.history.prediction import round_claims
from cutegen_nb.analysis.history.summary import estimated_time, size_words
from cutegen_nb.analysis.tables.count_changes import (
    CountChange,
    count_changes,
    counter_changes,
    is_comparable,
)
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report.markup import visible

_BARS = 4
"""Bars shown at most: the bound, and what would bound next."""
_LEAST = 0.05
"""Share below which a limit has no bar: it decides nothing."""
_CHANGES = 5
"""Counts shown at most; the tab Counts has all of them."""
_FROM_NOTHING = 2.0
"""Ratio as which a count that begins or ends at 0 is ranked: it has none, and would hide all others."""
_CAUSES = {
    "launch-bound": "a problem smaller than a launch",
    "below-roof": "a kernel far below the roof",
    "too-few-ctas": "too few CTAs",
    "tail-effect": "a nearly empty last wave of CTAs",
    "serialised-wgmma": "wgmma that wait for each other",
    "unpipelined-loads": "loads without a pipeline",
    "occupancy": "low occupancy",
    "uncoalesced": "uncoalesced accesses",
    "repeated-requests": "repeated requests for the same data",
    "extra-traffic": "extra traffic",
    "bank-conflicts": "bank conflicts",
    "shared-reuse": "too little reuse of what is read from shared memory",
    "divergence": "divergent or idle lanes",
    "instruction-overhead": "instruction overhead",
    "memory-latency": "the latency of memory",
    "narrow-accesses": "narrow accesses",
}
"""Causes in words; others read well by their own name."""
_REPEATED = frozenset({"Global sectors of loads", "Global sectors of stores", "Sectors ÷ ideal"})
"""Counts that mostly repeat the count of global sectors."""


def glance(
    session: Session, item: Round, base: Round | None, base_name: str, found: Diagnosis | None
) -> dict[str, object] | None:
    """Return headline, bars and changes of a round that passed; None where nothing was diagnosed."""
    evaluation = item.evaluation
    if found is None or evaluation is None:
        return None
    estimated = estimated_time(session, item)
    bars, of = _time_bars(estimated) if estimated else _demand_bars(found)
    before = base.evaluation if base else None
    changes, size = _changes(session, item, base, evaluation, before)
    return {
        "headline": visible(_headline(found, estimated)),
        "bars": bars,
        "of": of,
        "against": base_name,
        "size": size,
        "changes": [_shown(one) for one in changes],
    }


def _headline(found: Diagnosis, estimated: Estimate | None) -> str:
    bound = estimated.terms[0].name if estimated and estimated.terms else found.bound.value
    # Counts know the problem's floor and not the kernel's time, which the estimate does.
    passed_over = "launch-bound" if estimated and bound != "launch" else ""
    cause = next((one.name for one in found.causes if one.name != passed_over), "")
    is_told = not cause or cause == f"{bound}-bound"
    return f"Bound by {bound}." + ("" if is_told else f" The counts point to {_CAUSES.get(cause, cause)}.")


def _time_bars(estimated: Estimate) -> tuple[list[dict[str, object]], str]:
    """Return each limit of an estimated time as a share of that time. They overlap."""
    whole = estimated.seconds or 1.0
    shares = [(term.name, min(1.0, term.seconds / whole)) for term in estimated.terms]
    return _bars(shares), f"share of the estimated {duration(estimated.seconds)}"


def _demand_bars(found: Diagnosis) -> tuple[list[dict[str, object]], str]:
    """Return each unit's share: of its own peak where that was measured, else of the busiest unit."""
    counted = [one for one in found.demands if one.counter]
    is_measured = any(one.peak_fraction is not None for one in counted)
    of = "share of each unit's peak, measured" if is_measured else "demand, as a share of the busiest unit"
    return _bars([(one.unit, min(1.0, _fraction(one))) for one in counted]), of


def _fraction(one: Demand) -> float:
    return one.fraction if one.peak_fraction is None else one.peak_fraction


def _bars(shares: list[tuple[str, float]]) -> list[dict[str, object]]:
    longest = sorted(shares, key=lambda one: -one[1])
    return [
        {"name": visible(name), "fraction": round(fraction, 3), "figure": f"{100 * fraction:.0f} %"}
        for name, fraction in longest
        if fraction >= _LEAST
    ][:_BARS]


def _changes(
    session: Session, item: Round, base: Round | None, evaluation: Evaluation, before: Evaluation | None
) -> tuple[list[CountChange], str]:
    """Return the time, then the counts that changed most, with the size that these are of.

    Both are empty without a base. A count that the round's claims name is not left out.
    """
    if base is None or before is None:
        return [], ""
    counts, size = _counts(session, evaluation, before)
    named = {one.score.claim.counter for one in round_claims(session, item) if one.score}
    moved = [one for one in counts if one.kind != "neutral"]
    told = [one for one in moved if one.title not in _REPEATED] or moved
    most = sorted(told, key=_rank)[:_CHANGES]
    shown = sorted((one for one in counts if one in most or one.counter in named), key=_rank)
    return [*_time(item, base, evaluation, before), *shown], size if shown else ""


def _rank(one: CountChange) -> float:
    return -(_FROM_NOTHING if math.isinf(one.ratio) else one.ratio)


def _counts(
    session: Session, evaluation: Evaluation, before: Evaluation
) -> tuple[tuple[CountChange, ...], str]:
    """Return the counts of both at full size where both were sampled at it, else those of what ran."""
    full, full_before = full_counters(evaluation), full_counters(before)
    if full and full_before:
        return counter_changes(full, full_before), "counts at full size"
    if not evaluation.profile or not is_comparable(evaluation.profile, before.profile):
        return (), ""
    size = "counts at the reduced size" if size_words(session) else ""
    return count_changes(evaluation.profile, before.profile), size


def _time(item: Round, base: Round, evaluation: Evaluation, before: Evaluation) -> list[CountChange]:
    """Return the measured or estimated times of both; empty where one has none.

    Two times do not decide which kernel is faster: paired turns do, and the comparison above says so.
    """
    if evaluation.timing and before.timing:
        return [_two_times("Latency", before.timing.median_ms / 1e3, evaluation.timing.median_ms / 1e3)]
    old = base.comparison.estimated_s if base.comparison else None
    new = item.comparison.estimated_s if item.comparison else None
    return [_two_times("Estimated time", old, new)] if old and new else []


def _two_times(title: str, old: float, new: float) -> CountChange:
    ratio = f" ({times(old / new)} as fast)" if new else ""
    return CountChange(
        title=title,
        before=duration(old),
        after=duration(new),
        change=f"{change(old, new)}{ratio}",
    )


def _shown(one: CountChange) -> dict[str, str]:
    return {
        "title": one.title,
        "before": one.before,
        "after": one.after,
        "moved": one.moved,
        "kind": one.kind,
    }

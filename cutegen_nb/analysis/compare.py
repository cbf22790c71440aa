"""Is a candidate better than the best before it?

On a GPU: faster, slower or cannot tell, from the two timed in the same turns of one run, paired call by call.
Where that one was not timed beside the candidate, from the speedups each had over the same baseline in its
own run, which says less. Without a GPU: less, same or more work, from exact simulated counts, which are never
called a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.analysis.quantity import change, count, interval, interval_parts, share, times
from cutegen_nb.core.evaluation import BaselineTiming, Evaluation, Timing
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, Profile, ProfileSource
from cutegen_nb.core.round import Comparison, Relation

WORK_FRACTION = 0.005
"""Counts closer than this are the same work: one warp's tail must not decide a round."""
TIME_FRACTION = 0.01
"""One kernel beside itself in one run differs by well under a per cent; a smaller gain is not one."""
ACROSS_FRACTION = 0.05
"""Between two runs a kernel of 4 µs has differed from itself by 4 %, outside of the interval of either."""
SLOWED_FRACTION = 0.2
"""A best that is so much slower over a baseline than in its own evaluation is not itself."""

WORK_ORDER: tuple[tuple[str, Callable[[Counters], int]], ...] = (
    ("global sectors", lambda counters: counters.gmem_sectors),
    ("shared-memory wavefronts", lambda counters: counters.smem_wavefronts),
    ("warp instructions", lambda counters: counters.warp_instructions),
)
"""What decides, in order: the slowest memory first."""


def compare(
    best: Evaluation | None, candidate: Evaluation, facts: ProblemFacts, *, against: str = ""
) -> Comparison:
    """Judge a candidate against the best before it, where there is one; `against` is that one's digest."""
    if not candidate.passed:
        return Comparison(
            relation=Relation.CANNOT_TELL,
            reason=f"The candidate did not pass ({candidate.label}), so there is nothing to compare.",
            against=against,
        )
    if best is None or not best.passed:
        return Comparison(relation=Relation.FIRST, reason=_first_reason(candidate, facts))
    relation, reason = _judge(best, candidate, facts)
    return Comparison(relation=relation, reason=reason, against=against)


def _judge(best: Evaluation, candidate: Evaluation, facts: ProblemFacts) -> tuple[Relation, str]:
    if candidate.timing and _is_its_rival(best, candidate.timing):
        return _by_pairs(best.timing, candidate.timing)
    if best.timing and candidate.timing:
        return _by_time(best.timing, candidate.timing)
    if best.timing or candidate.timing:
        return Relation.CANNOT_TELL, "Only one of the two was timed; evaluate both on the same device."
    if best.profile and candidate.profile:
        return _by_work(best.profile, candidate.profile, facts)
    return Relation.CANNOT_TELL, "There are neither times nor counts for both; evaluate both again."


def _is_its_rival(best: Evaluation, timing: Timing) -> bool:
    rival = timing.rival
    return rival is not None and _usable(rival) and timing.rival_digest == best.candidate_digest != ""


def _by_pairs(best: Timing | None, timing: Timing) -> tuple[Relation, str]:
    """From the best and the candidate called by turns, each pair under the same clocks and temperature."""
    rival = timing.rival
    assert rival is not None
    if rival.speedup > 1 and best is not None and _slowed(best, timing, rival):
        return Relation.CANNOT_TELL, (
            f"{times(rival.speedup)} the speed of the best before it, which ran much slower beside this "
            "candidate than when it was evaluated itself; evaluate both again."
        )
    value, span = interval_parts(rival.speedup, rival.speedup_low, rival.speedup_high)
    figures = f"{value} the speed of the best before it, 95 % interval {span}, both timed in the same turns"
    return _told(rival.speedup, rival.speedup_low, rival.speedup_high, _noise(timing), figures)


def _slowed(best: Timing, timing: Timing, rival: BaselineTiming) -> bool:
    """Whether the best ran slower beside the candidate, in whose process it was compiled, than by itself.

    Both times it is held against the same baseline.
    """
    pair = _common_baseline(best, timing)
    if best.method != timing.method or pair is None or rival.median_ms <= 0:
        return False
    before, now = pair
    return now.median_ms / rival.median_ms < (1 - SLOWED_FRACTION) * before.speedup


def _by_time(best: Timing, candidate: Timing) -> tuple[Relation, str]:
    if best.method != candidate.method:
        return Relation.CANNOT_TELL, (
            f"One was timed by {best.method}, the other by {candidate.method}; evaluate both again."
        )
    pair = _common_baseline(best, candidate)
    if pair is None:
        return Relation.CANNOT_TELL, "The two were timed against no common baseline; evaluate both again."
    before, after = pair
    ratio = after.speedup / before.speedup
    low, high = _interval(before, after)
    value, span = interval_parts(ratio, low, high)
    figures = (
        f"{value} the speed of the best before it, 95 % interval {span} "
        f"(over {after.name}: {times(after.speedup)}, the best {times(before.speedup)})"
    )
    noise = max(_noise(best), _noise(candidate))
    return _told(ratio, low, high, max(ACROSS_FRACTION, noise), figures)


def _noise(timing: Timing) -> float:
    """What one kernel differs from itself by, or the clock cannot tell apart."""
    return max(timing.noise_fraction or 0.0, timing.resolution_fraction)


def _told(ratio: float, low: float, high: float, noise: float, figures: str) -> tuple[Relation, str]:
    """What a ratio with its interval says, where one kernel against itself strays by `noise`."""
    floor = max(TIME_FRACTION, noise)
    if low > 1 and ratio >= 1 + floor:
        return Relation.FASTER, f"{figures}."
    if high < 1 and ratio <= 1 - floor:
        return Relation.SLOWER, f"{figures}."
    if low <= 1 <= high:
        return Relation.CANNOT_TELL, f"{figures}: the interval holds 1.00×."
    return (
        Relation.CANNOT_TELL,
        f"{figures}: under {share(floor)} is less than two runs of one kernel can differ by.",
    )


def _common_baseline(best: Timing, candidate: Timing) -> tuple[BaselineTiming, BaselineTiming] | None:
    before = {item.name: item for item in best.baselines if _usable(item)}
    after = {item.name: item for item in candidate.baselines if _usable(item)}
    for name in ("eager", *after):
        if name in before and name in after:
            return before[name], after[name]
    return None


def _usable(item: BaselineTiming) -> bool:
    return 0 < item.speedup_low <= item.speedup <= item.speedup_high < math.inf


def _interval(before: BaselineTiming, after: BaselineTiming) -> tuple[float, float]:
    """95 % interval of the quotient of two independent speedups.

    In logarithms the quotient is a difference, whose half-widths add in squares.
    """
    ratio = after.speedup / before.speedup
    down = _log_distance(after.speedup_low, after.speedup, before.speedup, before.speedup_high)
    up = _log_distance(after.speedup, after.speedup_high, before.speedup_low, before.speedup)
    return ratio * math.exp(-down), ratio * math.exp(up)


def _log_distance(one_low: float, one_high: float, other_low: float, other_high: float) -> float:
    return math.hypot(math.log(one_high / one_low), math.log(other_high / other_low))


def _by_work(best: Profile, candidate: Profile, facts: ProblemFacts) -> tuple[Relation, str]:
    if best.source is not candidate.source:
        return Relation.CANNOT_TELL, (
            f"Counts from different sources ({best.source}, {candidate.source}) cannot be compared."
        )
    before, after = best.counters, candidate.counters
    least = _over_least(candidate, facts)
    for name, read in WORK_ORDER:
        old, new = read(before), read(after)
        if abs(new - old) <= WORK_FRACTION * max(old, new):
            continue
        relation = Relation.LESS_WORK if new < old else Relation.MORE_WORK
        return relation, f"{name} {count(old)} → {count(new)} ({change(old, new)}){least}."
    unchanged = "; ".join(f"{name} {count(read(after))}" for name, read in WORK_ORDER if read(after))
    return Relation.SAME_WORK, f"All counts within 0.5 % of the parent's: {unchanged or 'none'}{least}."


def _over_least(profile: Profile, facts: ProblemFacts) -> str:
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    if not run.least_bytes:
        return ""
    moved = profile.counters.gmem_sectors * SECTOR_BYTES
    return f"; bytes moved {times(moved / run.least_bytes)} the least"


def _first_reason(candidate: Evaluation, facts: ProblemFacts) -> str:
    reason = "The first passing revision"
    if candidate.timing:
        over = "".join(
            f", {interval(item.speedup, item.speedup_low, item.speedup_high)} over {item.name}"
            for item in candidate.timing.baselines
        )
        return f"{reason}: {candidate.timing.median_ms:.3g} ms{over}."
    if candidate.profile:
        sectors = count(candidate.profile.counters.gmem_sectors)
        return f"{reason}: {sectors} global sectors{_over_least(candidate.profile, facts)}."
    return f"{reason}."

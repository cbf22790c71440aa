"""Comparison of a candidate with the best candidate before it.

On a GPU the result is faster, slower or no clear difference. It comes from both kernels timed alternately in
one run, paired call by call. Where the best was not timed with the candidate, each one's speedup over the
same baseline in its own run is used, which is less exact. Without a GPU the result is estimated faster,
estimated slower or no clear difference, from counts at full size. Where no time could be estimated, it is
less, same or more work, from exact simulated counts; these are never called a time.
"""

from __future__ import annotations

import math

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.ratio import compare_estimates
from cutegen_nb.analysis.estimate.targets import DEFAULT_TARGET, EstimateTarget, find_target
from cutegen_nb.analysis.figures.quantity import (
    change,
    count,
    duration,
    interval,
    interval_parts,
    share,
    times,
)
from cutegen_nb.analysis.history.worsened import WORK, worsened
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.timing import LEAST_GAIN, BaselineTiming, Timing

WORK_FRACTION = 0.005
"""Relative difference up to which counts are the same work: one warp's tail must not decide a round."""
ACROSS_FRACTION = 0.05
"""Least relative gain in time between two runs. A kernel of 4 µs has differed from itself by 4 %, outside the
interval of either run."""
SLOWED_FRACTION = 0.2
"""Relative loss of the best compared with its own evaluation, from which its timing beside the candidate is
not accepted."""


def compare(
    best: Evaluation | None,
    candidate: Evaluation,
    facts: ProblemFacts,
    *,
    against: str = "",
    target: EstimateTarget | None = None,
) -> Comparison:
    """Compare a candidate with the best before it, if there is one.

    Args:
        best: evaluation of the best candidate before; None if there is none.
        candidate: evaluation of the new candidate.
        facts: traced facts of their problem.
        against: digest of the best candidate.
        target: GPU that times are estimated for where neither was timed; by default `DEFAULT_TARGET`.
    """
    target = target or find_target(DEFAULT_TARGET)
    if not candidate.passed:
        return Comparison(
            relation=Relation.CANNOT_TELL,
            reason=f"The candidate did not pass ({candidate.label}), so there is nothing to compare.",
            against=against,
        )
    if best is None or not best.passed:
        relation, reason, against = Relation.FIRST, _first_reason(candidate, facts, target), ""
        speedup = None
    else:
        relation, reason = _judge(best, candidate, facts, target)
        speedup = _speedup(best, candidate, target)
    return Comparison(
        relation=relation,
        reason=reason,
        against=against,
        estimated_s=_estimated_s(candidate, target),
        speedup=speedup,
    )


def _speedup(best: Evaluation, candidate: Evaluation, target: EstimateTarget) -> float | None:
    """Return the best's time ÷ the candidate's by the figures that `_judge` uses; None for counts alone."""
    if candidate.timing and _is_its_rival(best, candidate.timing):
        return candidate.timing.rival.speedup if candidate.timing.rival else None
    if best.timing and candidate.timing:
        pair = _common_baseline(best.timing, candidate.timing)
        return pair[1].speedup / pair[0].speedup if pair else None
    before, after = _estimated_s(best, target), _estimated_s(candidate, target)
    return before / after if before and after else None


def _estimated_s(candidate: Evaluation, target: EstimateTarget) -> float | None:
    sample = candidate.full_size
    if candidate.timing or sample is None or not sample.launches:
        return None
    return estimate(sample, target).seconds


def _judge(
    best: Evaluation, candidate: Evaluation, facts: ProblemFacts, target: EstimateTarget
) -> tuple[Relation, str]:
    if candidate.timing and _is_its_rival(best, candidate.timing):
        return _by_pairs(best.timing, candidate.timing)
    if best.timing and candidate.timing:
        return _by_time(best.timing, candidate.timing)
    if best.timing or candidate.timing:
        return Relation.CANNOT_TELL, "Only one of the two was timed; evaluate both on the same device."
    before, after = best.full_size, candidate.full_size
    if before and after and before.launches and after.launches:
        return _by_estimate(before, after, target)
    if best.profile and candidate.profile:
        relation, reason = _by_work(best.profile, candidate.profile, facts)
        worse = worsened(best.profile.launches, candidate.profile.launches, target)
        return relation, f"{reason}{worse}{_not_estimated(before, after)}"
    return Relation.CANNOT_TELL, "There are neither times nor counts for both; evaluate both again."


def _is_its_rival(best: Evaluation, timing: Timing) -> bool:
    rival = timing.rival
    return rival is not None and _usable(rival) and timing.rival_digest == best.candidate_digest != ""


def _by_pairs(best: Timing | None, timing: Timing) -> tuple[Relation, str]:
    """Compare from paired calls: each pair ran under the same clocks and temperature."""
    rival = timing.rival
    assert rival is not None
    if rival.speedup > 1 and best is not None and _slowed(best, timing, rival):
        return Relation.CANNOT_TELL, (
            f"{times(rival.speedup)} the speed of the best before it, which ran much slower beside this "
            "candidate than when it was evaluated itself; evaluate both again."
        )
    value, span = interval_parts(rival.speedup, rival.speedup_low, rival.speedup_high)
    figures = f"{value} the speed of the best before it, 95 % interval {span}, both timed in the same turns"
    return _relation_of(rival.speedup, rival.speedup_low, rival.speedup_high, _noise(timing), figures)


def _slowed(best: Timing, timing: Timing, rival: BaselineTiming) -> bool:
    """Return whether the best ran much slower beside the candidate than in its own evaluation.

    The candidate's process compiled the best. Its own time and its ratio to each baseline must agree: lower
    clocks change the time alone, and another choice of algorithm in a library one ratio alone.
    """
    pairs = _common_baselines(best, timing)
    if best.method != timing.method or not pairs:
        return False
    kept = (1 - SLOWED_FRACTION) * rival.median_ms
    return kept > best.median_ms and all(kept * before.speedup > now.median_ms for before, now in pairs)


def _by_time(best: Timing, candidate: Timing) -> tuple[Relation, str]:
    if best.method != candidate.method:
        return Relation.CANNOT_TELL, (
            f"One was timed by {best.method}, the other by {candidate.method}; evaluate both again."
        )
    pair = _common_baseline(best, candidate)
    if pair is None:
        return Relation.CANNOT_TELL, "The two were timed against no common baseline; evaluate both again."
    before, after = pair
    # Speedup is baseline time ÷ kernel time, so the quotient cancels the baseline.
    ratio = after.speedup / before.speedup
    low, high = _interval(before, after)
    value, span = interval_parts(ratio, low, high)
    figures = (
        f"{value} the speed of the best before it, 95 % interval {span} "
        f"(over {after.name}: {times(after.speedup)}, the best {times(before.speedup)})"
    )
    noise = max(_noise(best), _noise(candidate))
    return _relation_of(ratio, low, high, max(ACROSS_FRACTION, noise), figures)


def _noise(timing: Timing) -> float:
    """Return the larger of a kernel's difference from itself and the clock's resolution, as a fraction."""
    return max(timing.noise_fraction or 0.0, timing.resolution_fraction)


def _relation_of(ratio: float, low: float, high: float, noise: float, figures: str) -> tuple[Relation, str]:
    """Return the relation that a ratio with its interval shows, given a kernel's `noise` against itself."""
    floor = max(LEAST_GAIN, noise)
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
    return next(iter(_common_baselines(best, candidate)), None)


def _common_baselines(best: Timing, candidate: Timing) -> list[tuple[BaselineTiming, BaselineTiming]]:
    """Pair the baselines that both were timed against, eager first."""
    before = {item.name: item for item in best.baselines if _usable(item)}
    after = {item.name: item for item in candidate.baselines if _usable(item)}
    names = sorted(before.keys() & after.keys(), key=lambda name: (name != "eager", name))
    return [(before[name], after[name]) for name in names]


def _usable(item: BaselineTiming) -> bool:
    return 0 < item.speedup_low <= item.speedup <= item.speedup_high < math.inf


def _interval(before: BaselineTiming, after: BaselineTiming) -> tuple[float, float]:
    """Return the 95 % interval of the quotient of two independent speedups.

    In logarithms the quotient is a difference, whose half-widths add in squares.
    """
    ratio = after.speedup / before.speedup
    # The lower end combines the candidate's lower half-width with the best's upper one; the upper end, the
    # opposite.
    down = _log_distance(after.speedup_low, after.speedup, before.speedup, before.speedup_high)
    up = _log_distance(after.speedup, after.speedup_high, before.speedup_low, before.speedup)
    return ratio * math.exp(-down), ratio * math.exp(up)


def _log_distance(one_low: float, one_high: float, other_low: float, other_high: float) -> float:
    return math.hypot(math.log(one_high / one_low), math.log(other_high / other_low))


def _by_estimate(
    best: FullSizeSample, candidate: FullSizeSample, target: EstimateTarget
) -> tuple[Relation, str]:
    relation, figures = compare_estimates(estimate(best, target), estimate(candidate, target))
    before, after = (tuple(one.profile for one in sample.launches) for sample in (best, candidate))
    return relation, f"{figures}{worsened(before, after, target, where='at full size')}"


def _not_estimated(best: FullSizeSample | None, candidate: FullSizeSample | None) -> str:
    """Return the reason why counts decide in place of estimates; empty where no sample was asked for."""
    missing = next((one.missing for one in (candidate, best) if one and one.missing), "")
    return f" No time could be estimated: {missing}" if missing else ""


def _by_work(best: Profile, candidate: Profile, facts: ProblemFacts) -> tuple[Relation, str]:
    if best.source is not candidate.source:
        return Relation.CANNOT_TELL, (
            f"Counts from different sources ({best.source}, {candidate.source}) cannot be compared."
        )
    before, after = best.counters, candidate.counters
    least = _over_least(candidate, facts)
    for name, read in WORK:
        old, new = read(before), read(after)
        # The first counter that differs decides; the next ones are not looked at.
        if abs(new - old) <= WORK_FRACTION * max(old, new):
            continue
        relation = Relation.LESS_WORK if new < old else Relation.MORE_WORK
        return relation, f"{name} {count(old)} → {count(new)} ({change(old, new)}){least}."
    unchanged = "; ".join(f"{name} {count(read(after))}" for name, read in WORK if read(after))
    return Relation.SAME_WORK, f"All counts within 0.5 % of the parent's: {unchanged or 'none'}{least}."


def _over_least(profile: Profile, facts: ProblemFacts) -> str:
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    if not run.least_bytes:
        return ""
    moved = profile.counters.gmem_sectors * SECTOR_BYTES
    return f"; bytes moved {times(moved / run.least_bytes)} the least"


def _first_reason(candidate: Evaluation, facts: ProblemFacts, target: EstimateTarget) -> str:
    reason = "The first passing revision"
    if candidate.timing:
        over = "".join(
            f", {interval(item.speedup, item.speedup_low, item.speedup_high)} over {item.name}"
            for item in candidate.timing.baselines
        )
        return f"{reason}: {candidate.timing.median_ms:.3g} ms{over}."
    if candidate.full_size and candidate.full_size.launches:
        found = estimate(candidate.full_size, target)
        span = f"{duration(found.seconds_low)} to {duration(found.seconds_high)}"
        value, bound = duration(found.seconds), found.bound
        return f"{reason}: estimated {value}, {span}, on {found.target}, bound by {bound}."
    if candidate.profile:
        sectors = count(candidate.profile.counters.gmem_sectors)
        return f"{reason}: {sectors} global sectors{_over_least(candidate.profile, facts)}."
    return f"{reason}."

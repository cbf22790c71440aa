"""Estimates of time against times measured on a GPU: `python benchmarks/estimate.py RECORD.json`.

    python benchmarks/estimate.py RECORD.json [RECORD.json …] [--target GPU] [--fit [0|1|2]] [--each]
                                  [--strategies] [--plot FILE.png]

RECORD.json is written by `benchmarks/ladders.py`: kernels with measured times and counts at full size; the
target is the GPU that timed them. Problems are split by the SHA-256 of their file's name: a third is for
fitting, the rest is held out. The constants in `cutegen_nb/analysis/estimate/constants.py` are used as they
are; `--fit` prints and uses those that fit a third of all records best (by default the first, whose values
they are), and changes nothing. The order that decided before (sectors, then wavefronts, then instructions) is
scored on the same pairs.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.analysis.estimate.constants import CONSTANTS, EstimateConstants
from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.interval import interval, ratio_deviation
from cutegen_nb.analysis.estimate.ratio import compare_estimates
from cutegen_nb.analysis.estimate.targets import EstimateTarget, find_target
from cutegen_nb.analysis.history.worsened import WORK
from cutegen_nb.core.codec import decode
from cutegen_nb.core.estimate import Estimate, FullSizeSample
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.search.comparison import Relation

APART = 1.1
"""Ratio of two measured times from which their order counts."""
SAME_WORK = 0.005
"""Relative difference up to which the old order called counts the same."""
FITTED = (
    "latency_factor", "scattered_l1_clocks", "scattered_l2_sectors", "scattered_dram_factor",
    "cta_start_clocks", "instruction_clocks", "barrier_clocks", "shuffle_clocks", "overlap",
)  # fmt: skip
"""Constants that `--fit` varies."""
PRIOR = EstimateConstants(
    latency_factor=1.5, scattered_l1_clocks=1.5, scattered_l2_sectors=3.0, scattered_dram_factor=3.0,
    cta_start_clocks=700.0, instruction_clocks=3.0, barrier_clocks=30.0, shuffle_clocks=20.0, overlap=4.0,
)  # fmt: skip
"""Constants that fitting starts from and is drawn to."""
USUAL, LOOSE, TRUST = 0.1, 0.3, 0.3
"""Errors in logarithms: of a usual kernel; from which on one counts linearly; of a constant of `PRIOR`."""
RATIOS = (0.3, 0.5, 0.7, 1, 1.4, 2, 3)
"""Ratios that the plot marks."""
STEPS = (1.3, 1.1, 1.03, 1.01)
"""Factors that a fitted constant is multiplied and divided by, from coarse to fine."""


@dataclass(frozen=True)
class Point:
    """One kernel."""

    problem: str
    revision: str
    strategy: str
    measured_s: float
    sample: FullSizeSample

    @property
    def name(self) -> str:
        """Problem, revision and strategy."""
        return f"{self.problem} {self.revision} {self.strategy}".strip()

    @property
    def third(self) -> int:
        """Third of the problems that the kernel belongs to: 0, 1 or 2."""
        return int(hashlib.sha256(self.problem.encode()).hexdigest(), 16) % 3

    @property
    def is_for_fitting(self) -> bool:
        """True for the third that the constants in use were fitted on."""
        return self.third == 0


@dataclass(frozen=True)
class Record:
    """Kernels timed on one GPU."""

    points: list[Point]
    target: EstimateTarget


def read_record(path: Path, target: str | None) -> Record:
    """Read a record with the GPU that timed its kernels, or with the one named."""
    device = json.loads(path.read_text())["device"]
    return Record(points_of(path), find_target(target or device))


def points_of(path: Path) -> list[Point]:
    """Read a record; kernels without a sample are named and left out."""
    points = []
    for row in json.loads(path.read_text())["points"]:
        sample = decode(FullSizeSample, row["sample"])
        if not sample.launches:
            print(f"no sample of {row['problem']} {row['revision']}: {sample.missing.splitlines()[0][:120]}")
            continue
        points.append(
            Point(row["problem"], row["revision"], row["strategy"] or "", row["measured_ms"] / 1e3, sample)
        )
    return points


def errors(points: Iterable[Point], target: EstimateTarget, constants: EstimateConstants) -> list[float]:
    """Return ln(estimate ÷ measured) of each kernel."""
    return [math.log(estimate(one.sample, target, constants).seconds / one.measured_s) for one in points]


def fitted(records: Sequence[Record], third: int) -> EstimateConstants:
    """Return the constants with the least mean square error on a third, by coordinate descent."""
    chosen = [([one for one in each.points if one.third == third], each.target) for each in records]

    def cost(constants: EstimateConstants) -> float:
        # Huber's loss: one kernel that the model cannot describe must not bend it for all others.
        misfit = sum(
            min(abs(error), LOOSE) * (2 * abs(error) - min(abs(error), LOOSE))
            for points, target in chosen
            for error in errors(points, target, constants)
        )
        # What these kernels do not show stays as the published figures and physics suggest.
        moved = [math.log(getattr(constants, name) / getattr(PRIOR, name)) for name in FITTED]
        return misfit / USUAL**2 + sum((one / TRUST) ** 2 for one in moved)

    best, least = PRIOR, cost(PRIOR)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for name, factor in itertools.product(FITTED, (step, 1 / step)):
                tried = replace(best, **{name: getattr(best, name) * factor})
                if tried.overlap > 8 or tried.scattered_l2_sectors > 4 or tried.scattered_l1_clocks < 1:
                    continue
                if (now := cost(tried)) < least * (1 - 1e-6):
                    best, least, moved = tried, now, True
    return best


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Spearman's coefficient; times of kernels have no ties."""
    ranks = [[sorted(values).index(value) for value in values] for values in (one, other)]
    n = len(one)
    return 1 - 6 * sum((a - b) ** 2 for a, b in zip(*ranks, strict=True)) / (n * (n * n - 1))


def by_problem(points: Iterable[Point]) -> dict[str, list[Point]]:
    """Group kernels by their problem."""
    groups: dict[str, list[Point]] = {}
    for one in points:
        groups.setdefault(one.problem, []).append(one)
    return groups


def counters(point: Point) -> Counters:
    """Return the counts of all launches."""
    total = Counters()
    for launch in point.sample.launches:
        total += launch.profile.counters
    return total


def old_order(best: Point, candidate: Point) -> bool | None:
    """Return whether the counts called the candidate better; None where they called it the same."""
    before, after = counters(best), counters(candidate)
    for _, read in WORK:
        old, new = read(before), read(after)
        if abs(new - old) > SAME_WORK * max(old, new):
            return new < old
    return None


def told(best: Estimate, candidate: Estimate) -> bool | None:
    """Return whether the estimates call the candidate faster; None for "cannot tell"."""
    relation, _ = compare_estimates(best, candidate)
    return None if relation is Relation.CANNOT_TELL else relation is Relation.ESTIMATED_FASTER


def score(points: list[Point], answer: Callable[[Point, Point], bool | None]) -> str:
    """Score the order of pairs of one problem, whose measured times are at least 10 % apart."""
    right, undecided, pairs, wrong = 0, 0, 0, []
    for group in by_problem(points).values():
        for one, other in itertools.combinations(group, 2):
            ratio = one.measured_s / other.measured_s
            if max(ratio, 1 / ratio) < APART:
                continue
            pairs += 1
            said = answer(one, other)
            if said is None:
                undecided += 1
            elif said == (ratio > 1):
                right += 1
            else:
                wrong.append(f"{one.name} → {other.revision} ({ratio:.2f}×)")
    decided = max(pairs - undecided, 1)
    text = f"{right} of {decided} right ({right / decided:.0%}), {undecided} of {pairs} undecided"
    return (
        text + (f" ({undecided / pairs:.0%})" if pairs else "") + "".join(f"\n    wrong: {w}" for w in wrong)
    )


def ratios_inside(points: list[Point], estimates: dict[str, Estimate]) -> str:
    """Count the pairs of one problem whose measured ratio lies in the interval of the estimated one."""
    inside = pairs = 0
    for group in by_problem(points).values():
        for one, other in itertools.combinations(group, 2):
            best, candidate = estimates[one.name], estimates[other.name]
            low, high = interval(best.seconds / candidate.seconds, ratio_deviation(best, candidate))
            pairs += 1
            inside += low <= one.measured_s / other.measured_s <= high
    return f"{inside} of {pairs}"


def report(title: str, points: list[Point], target: EstimateTarget, constants: EstimateConstants) -> None:
    """Print the figures of some kernels."""
    if not points:
        return
    estimates = {one.name: estimate(one.sample, target, constants) for one in points}
    ratios = sorted((estimates[one.name].seconds / one.measured_s, one.name) for one in points)
    groups = [group for group in by_problem(points).values() if len(group) > 2]
    correlations = [
        rank_correlation([one.measured_s for one in group], [estimates[one.name].seconds for one in group])
        for group in groups
    ]
    values = [ratio for ratio, _ in ratios]
    inside = sum(
        found.seconds_low <= one.measured_s <= found.seconds_high
        for one in points
        for found in [estimates[one.name]]
    )
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    print(f"\n{title}: {len(points)} kernels of {len(by_problem(points))} problems")
    first, median, third = quartiles
    print(f"  estimate ÷ measured: median {median:.2f}, quartiles {first:.2f} to {third:.2f}")
    print(f"  worst: {values[0]:.2f} {ratios[0][1]}; {values[-1]:.2f} {ratios[-1][1]}")
    print(f"  measured time inside the interval: {inside} of {len(points)}")
    print(f"  ratio of two kernels inside its interval: {ratios_inside(points, estimates)}")
    if correlations:
        print(
            f"  Spearman within a problem: median {statistics.median(correlations):.2f}, "
            f"least {min(correlations):.2f} ({len(groups)} problems of three kernels or more)"
        )
    print(f"  pairs by estimates: {score(points, lambda a, b: told(estimates[a.name], estimates[b.name]))}")
    print(f"  pairs by the old order: {score(points, old_order)}")


def each(points: list[Point], target: EstimateTarget) -> None:
    """Print one line a kernel, with its largest terms."""
    for one in points:
        found = estimate(one.sample, target)
        terms = ", ".join(f"{term.name} {term.seconds * 1e3:.3g}" for term in found.terms[:4])
        half = "fit " if one.is_for_fitting else "held"
        ratio = found.seconds / one.measured_s
        print(f"{half} {one.name[:48]:<48} {one.measured_s * 1e3:9.3f} ms, estimated {ratio:.2f}×: {terms}")


def by_strategy(points: list[Point], target: EstimateTarget, constants: EstimateConstants) -> None:
    """Print estimate ÷ measured by the strategy that was applied last, the farthest from 1 first."""
    groups: dict[str, list[float]] = {}
    for one in points:
        ratio = estimate(one.sample, target, constants).seconds / one.measured_s
        groups.setdefault(one.strategy or "first kernel", []).append(ratio)
    print("\nestimate ÷ measured by strategy: kernels, median, least, most")
    for name, ratios in sorted(groups.items(), key=lambda item: -abs(math.log(statistics.median(item[1])))):
        middle = statistics.median(ratios)
        print(f"  {name:<26} {len(ratios):3} {middle:6.2f} {min(ratios):6.2f} {max(ratios):6.2f}")


def plot(records: Sequence[Record], path: Path) -> None:
    """Draw estimate ÷ measured over the measured time, by the term that bounds it; held out is filled."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    groups: dict[str, list[tuple[float, float, bool]]] = {}
    for one, found in ((one, estimate(one.sample, each.target)) for each in records for one in each.points):
        place = one.measured_s * 1e3, found.seconds / one.measured_s, one.is_for_fitting
        groups.setdefault(found.bound, []).append(place)
    for color, (bound, places) in enumerate(sorted(groups.items(), key=lambda item: -len(item[1]))):
        for fits, face in ((False, f"C{color}"), (True, "none")):
            chosen = [(x, y) for x, y, is_for_fitting in places if is_for_fitting is fits]
            label = None if fits else f"{bound} ({len(places)})"
            axes.scatter(
                *zip(*chosen, strict=True) if chosen else ((), ()),
                s=14,
                facecolors=face,
                edgecolors=f"C{color}",
                lw=0.8,
                label=label,
            )
    axes.axhline(1, color="grey", lw=0.8)
    names = ", ".join(each.target.name for each in records)
    axes.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="estimated ÷ measured", title=names)
    axes.set_yticks([], minor=True)
    axes.set_yticks(RATIOS, map(str, RATIOS))
    legend = {"loc": "outside right upper", "title": "bound by;\nhollow: used for fitting"}
    figure.legend(fontsize=7, title_fontsize=7, **legend)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    parser.add_argument("--target", help="another GPU than the one that timed the kernels")
    parser.add_argument(
        "--fit", nargs="?", type=int, const=0, choices=range(3), help="fit the constants on this third"
    )
    parser.add_argument("--each", action="store_true", help="print a line for each kernel")
    parser.add_argument("--strategies", action="store_true", help="print a line for each strategy")
    parser.add_argument("--plot", type=Path, help="draw estimate ÷ measured over the measured time")
    options = parser.parse_args()
    records = [read_record(path, options.target) for path in options.records]
    constants = CONSTANTS
    if options.fit is not None:
        constants = fitted(records, options.fit)
        print("fitted:", ", ".join(f"{name} {getattr(constants, name):.3g}" for name in FITTED))
    for record in records:
        print(f"\n{record.target.name}")
        if options.each:
            each(record.points, record.target)
        third = options.fit or 0
        inside = [[one for one in record.points if (one.third == third) is fits] for fits in (True, False)]
        for title, points in zip(("for fitting", "held out"), inside, strict=True):
            report(title, points, record.target, constants)
        if options.strategies:
            by_strategy(record.points, record.target, constants)
    if options.plot:
        plot(records, options.plot)


if __name__ == "__main__":
    main()

"""Share of kernels rightly called faster or slower, on devices that behave badly. By simulation.

    python benchmarks/timing_calibration.py [--times 200] [--tier A|B|C] [--json FILE]

Latencies are drawn from models of a device: drift, throttling, clocks that jump between two states, heavy
tails, interference, memory of what was before, coarse clocks, an effect of order. What samples them, says
when it is enough, makes the interval and calls the result is the program's own code, as it runs on a GPU.
For each model the candidate is as fast as the best before it, or faster by 1, 3 and 10 %; each figure is a
share of so many comparisons. `held` is how often the 95 % interval holds the true ratio. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.timing import LEAST_GAIN, BaselineTiming, Timing
from cutegen_nb.evaluator.timing import bench, statistics

GAINS = (0.0, 0.01, 0.03, 0.1)
LONGEST_S = {"A": 0.6, "B": 4.0, "C": 8.0}
"""As the worker allows it."""
HOST_S = 250e-6
"""Work between two calls: the flush, the head start and the host's own work."""
EAGER, RIVAL = "eager", "best before"
_WORK = Workload(graph=Graph(inputs=(), parameters=(), nodes=(), outputs=()), flops=1, least_bytes=1)
FACTS = ProblemFacts(workload_class=WorkloadClass.ELEMENTWISE, full=_WORK, scaled=_WORK, dtype="float32")


@dataclass(slots=True, kw_only=True)
class Device:
    """Draws latencies; time passes as it is used."""

    ms: float
    """Latency that all calls share, before the model's factor."""
    random: np.random.Generator
    """Of one comparison."""
    now_s: float = 0.0
    """Its clock."""
    before: str = ""
    """The call before this one."""
    state: dict[str, float] = field(default_factory=dict)
    """Memory of a model."""


Model = Callable[[Device, str], float]
"""The factor by which the device is slow now."""


def steady(device: Device, _name: str) -> float:
    return 1 + 0.01 * device.random.standard_normal()


def noisy(device: Device, _name: str) -> float:
    return 1 + 0.1 * device.random.standard_normal()


def drift(device: Device, name: str) -> float:
    return (1 + 0.1 * device.now_s) * steady(device, name)


def throttling(device: Device, name: str) -> float:
    """A fifth slower within a third of a second, once it is warm."""
    return (1 + 0.2 * (1 - math.exp(-device.now_s / 0.3))) * steady(device, name)


def two_clocks(device: Device, _name: str) -> float:
    """Jumps between two states 7 % apart, every 20 ms on average."""
    until = device.state.get("until", 0.0)
    if device.now_s > until:
        device.state["slow"] = 1 - device.state.get("slow", 0.0)
        device.state["until"] = device.now_s + device.random.exponential(0.02)
    return (1 + 0.07 * device.state.get("slow", 0.0)) * (1 + 0.003 * device.random.standard_normal())


def heavy_tails(device: Device, _name: str) -> float:
    return float(np.exp(0.02 * device.random.standard_t(2)))


def interference(device: Device, name: str) -> float:
    """One call in ten is slower by up to a half."""
    return steady(device, name) + (device.random.random() < 0.1) * 0.5 * device.random.random()


def memory(device: Device, _name: str) -> float:
    """Each call is much like the one before it (a correlation of 0.95)."""
    device.state["at"] = 0.95 * device.state.get("at", 0.0) + 0.006 * device.random.standard_normal()
    return 1 + device.state["at"] + 0.003 * device.random.standard_normal()


def coarse_clock(device: Device, _name: str) -> float:
    """Little noise, in steps of half a microsecond."""
    step = 0.0005 / device.ms
    return step * round((1 + 0.004 * device.random.standard_normal()) / step)


def order(device: Device, name: str) -> float:
    """A call after another kind of call is 2 % slower than one after its like."""
    return steady(device, name) * (1.02 if device.before != name else 1.0)


def slow_phases(device: Device, name: str) -> float:
    """Phases of 30 ms in which another program slows everything by a third, one in ten."""
    phase = int(device.now_s / 0.03)
    if device.state.get("phase") != phase:
        device.state["phase"] = phase
        device.state["slow"] = float(device.random.random() < 0.1)
    return (1 + 0.33 * device.state["slow"]) * steady(device, name)


MODELS: dict[str, Model] = {
    item.__name__.replace("_", " "): item
    for item in (
        steady, noisy, drift, throttling, two_clocks, heavy_tails, interference, memory, coarse_clock, order,
        slow_phases,
    )
}  # fmt: skip


def compared(model: Model, gain: float, longest_s: float, seed: int) -> tuple[Relation, bool, int]:
    """One comparison: what it is called, whether the interval holds the true ratio, pairs it took."""
    device = Device(ms=0.02, random=np.random.default_rng(seed))
    speeds = {statistics.CANDIDATE: 1 / (1 + gain), EAGER: 1.5, RIVAL: 1.0, statistics.AGAIN: 1.5}

    def once(name: str) -> float:
        ms = device.ms * speeds[name] * max(0.2, model(device, name))
        device.now_s += HOST_S + ms * 1e-3
        device.before = name
        return ms

    samples = bench.sample_in_turns(list(speeds), once, longest_s, now=lambda: device.now_s)
    middle, low, high = statistics.ratio_interval(
        samples[RIVAL], samples[statistics.CANDIDATE], resamples=2000
    )
    rival = BaselineTiming(name=RIVAL, median_ms=1.0, speedup=middle, speedup_low=low, speedup_high=high)
    pairs = sum(len(block) for block in samples[RIVAL])
    noise = max(statistics.noise_fraction(samples) or 0.0, statistics.resolution_fraction(samples))
    return called(rival, noise), low <= 1 + gain <= high, pairs


def called(rival: BaselineTiming, noise: float) -> Relation:
    """Words of a session on a candidate beside the best before it."""
    timing = Timing(
        median_ms=1.0,
        samples_ms=(),
        baselines=(),
        bandwidth_bytes_per_s=1.0,
        noise_fraction=noise,
        rival=rival,
        rival_digest="before",
    )
    passed = Judged(verdict=Verdict.PASSED)
    parent = Evaluation(outcome=passed, summary="", device="", candidate_digest="before")
    candidate = Evaluation(outcome=passed, summary="", device="", timing=timing, candidate_digest="after")
    return compare(parent, candidate, FACTS).relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Many comparisons of one kind."""

    model: str
    gain: float
    faster: float
    slower: float
    held: float
    pairs: float


def row(name: str, gain: float, times: int, longest_s: float) -> Row:
    found = [compared(MODELS[name], gain, longest_s, seed) for seed in range(times)]
    return Row(
        model=name,
        gain=gain,
        faster=sum(relation is Relation.FASTER for relation, _, _ in found) / times,
        slower=sum(relation is Relation.SLOWER for relation, _, _ in found) / times,
        held=sum(held for _, held, _ in found) / times,
        pairs=sum(pairs for _, _, pairs in found) / times,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--tier", choices=sorted(LONGEST_S), default="A")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(f"{options.times} comparisons each, tier {options.tier}; a gain under {LEAST_GAIN:.0%} is none")
    print(f"{'model':14} {'truly':>6} {'faster':>7} {'slower':>7} {'held':>7} {'pairs':>6}")
    rows = []
    for name in options.models.split(","):
        for gain in GAINS:
            item = row(name, gain, options.times, LONGEST_S[options.tier])
            rows.append(item)
            shares = f"{item.faster:7.1%} {item.slower:7.1%} {item.held:7.1%}"
            print(f"{name:14} {gain:6.0%} {shares} {item.pairs:6.0f}", flush=True)
    if options.json:
        kept = {"times": options.times, "tier": options.tier, "rows": [vars_of(item) for item in rows]}
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


def vars_of(item: Row) -> dict[str, object]:
    return {name: getattr(item, name) for name in Row.__slots__}


if __name__ == "__main__":
    sys.exit(main())

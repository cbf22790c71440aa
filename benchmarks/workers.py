"""W evaluations at once against one at a time, in one run: `python benchmarks/workers.py --workers 2`.

The same candidates are evaluated by a pool of one place and by a pool of W, in turns: at tier A on the
simulator, and at tier B on a GPU, which times the right ones. Each pool is started and warmed up before: one
evaluation a place is not counted. Printed are the ratio of the throughputs, the number of verdicts that are
the same on both sides and, of a GPU, the latency of each timed candidate by W ÷ alone. On the simulator, the
seconds are of this machine's CPU, never of a kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Tier
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator_pool import EvaluatorPool
from cutegen_nb.evaluator.host_members import HostMembers

TESTS = Path(__file__).parent.parent / "tests" / "evaluator"
PROBLEM = Problem(
    name="relu", source=(TESTS / "problems" / "relu.py").read_text(), form=ProblemForm.KERNELBENCH
)
ON_SIMULATOR: tuple[str, ...] = (
    "relu", "zeros", "out_of_range", "shared_race", "compile_error", "wrong_number", "wrong_dtype",
    "through_shared",
)  # fmt: skip
ON_GPU: tuple[str, ...] = (
    "relu",
    "zeros",
    "compile_error",
    "wrong_number",
    "wrong_dtype",
    "relu",
    "relu",
    "relu",
)
"""Without candidates that leave a GPU's memory or race: what those do there is not certain."""
GPU_SIZE = "8192, 8192"
"""Instead of the problem's own 37 × 61, whose kernel is too short to compare times of."""


def candidates(names: Sequence[str], turn: int) -> list[Candidate]:
    """The candidates, with a comment that no turn and no other candidate has: nothing can be kept."""
    return [
        Candidate(
            source=f"{(TESTS / 'candidates' / f'{name}.py').read_text()}\n# {turn} {place}\n",
            author="benchmark",
        )
        for place, name in enumerate(names)
    ]


def pool(device: str, workers: int) -> EvaluatorPool:
    """A pool on this host, not started."""
    return EvaluatorPool(
        HostMembers(workers=workers, device=device, baselines=("eager",), screening=True, say=print)
    )


async def evaluated(
    one: EvaluatorPool, problem: Problem, tier: Tier, given: list[Candidate]
) -> tuple[float, list[Evaluation]]:
    """Seconds of all candidates together, and their evaluations in the order given."""
    began = time.monotonic()
    found = await asyncio.gather(*(one.evaluate(problem, item, lambda _: None, tier) for item in given))
    return time.monotonic() - began, found


async def compare(device: str, workers: int, turns: int, times: int) -> int:
    """Evaluate each candidate `times` times a turn, print, and return how many verdicts differ."""
    alone, together = pool(device, 1), pool(device, workers)
    try:
        found = await together.device()
        names, tier, problem = ON_SIMULATOR, Tier.A, PROBLEM
        if found.kind is not DeviceKind.SIMULATOR:
            names, tier = ON_GPU, Tier.B
            problem = replace(PROBLEM, source=PROBLEM.source.replace("37, 61", GPU_SIZE))
        names = names * times
        for one, places in ((alone, 1), (together, workers)):
            await evaluated(one, problem, tier, candidates(("relu",) * places, -1))
        ratios, latencies, different = [], [], 0
        for turn in range(turns):
            given = candidates(names, turn)
            order = [alone, together] if turn % 2 == 0 else [together, alone]
            results = {one: await evaluated(one, problem, tier, given) for one in order}
            (slow, first), (quick, second) = results[alone], results[together]
            different += sum(a.label != b.label for a, b in zip(first, second, strict=True))
            ratios.append(slow / quick)
            latencies += [
                b.timing.median_ms / a.timing.median_ms
                for a, b in zip(first, second, strict=True)
                if a.timing and b.timing
            ]
            print(f"turn {turn + 1}: {slow:.2f} s one at a time, {quick:.2f} s by {workers}")
    finally:
        await alone.close()
        await together.close()
    total = turns * len(names)
    print(f"{found.name}: {total - different} of {total} verdicts are the same")
    print(f"throughput by {workers} ÷ one at a time: {_spread(ratios, turns, 'turns')}")
    if latencies:
        print(f"latency by {workers} ÷ alone: {_spread(latencies, len(latencies), 'candidates')}")
    return different


def _spread(ratios: list[float], count: int, noun: str) -> str:
    median, least, greatest = statistics.median(ratios), min(ratios), max(ratios)
    return f"{median:.3f} at the median of {count} {noun} ({least:.3f} to {greatest:.3f})"


def main() -> int:
    """Read the options and compare; the status is 1 where a verdict differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "simulator"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--times", type=int, default=1, help="evaluations of each candidate in a turn")
    options = parser.parse_args()
    return int(asyncio.run(compare(options.device, options.workers, options.turns, options.times)) > 0)


if __name__ == "__main__":
    sys.exit(main())

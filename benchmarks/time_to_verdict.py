"""Time to a verdict, from a candidate's source to its outcome: `python benchmarks/time_to_verdict.py`.

Tier A of a small ReLU on the device there is, several times in one session, each time with another source so
that nothing can be kept: the first, which starts the processes and looks at the problem; then with a worker
waiting and time between two candidates, as an author takes; then one upon the other; then with no worker
waiting. Printed are medians, their ranges, and the seconds of each stage.

With `--kernelbench FOLDER` the candidates are the last kernels of the offline author for problems of
KernelBench, at their own sizes, at the tier that lets a revision become best, with a worker waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import sys
import time
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from rungs import last_kernel, problems

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator import KernelEvaluator

TESTS = Path(__file__).parent.parent / "tests" / "evaluator"
PROBLEM = Problem(
    name="relu", source=(TESTS / "problems" / "relu.py").read_text(), form=ProblemForm.KERNELBENCH
)
SOURCE = (TESTS / "candidates" / "relu.py").read_text()
NUMBER = itertools.count()
SAID: list[str] = []
"""Sentences of the evaluations, each printed once."""
WAYS = ["waiting", "busy", "bare"]
"""A worker waits and an author takes a while; one candidate upon the other; no worker waits."""


async def verdict(
    evaluator: KernelEvaluator, problem: Problem = PROBLEM, source: str = SOURCE, tier: Tier = Tier.A
) -> dict[str, float]:
    """Seconds of one verdict, in all and by stage. Raises SystemExit when the right kernel did not pass."""
    marks: list[tuple[float, str]] = []
    began = time.monotonic()
    evaluation = await evaluator.evaluate(
        problem,
        Candidate(source=f"{source}\n# {next(NUMBER)}\n", author="benchmark"),
        lambda text: marks.append((time.monotonic() - began, text)),
        tier,
    )
    ended = time.monotonic() - began
    if not evaluation.passed:
        raise SystemExit(f"The right kernel did not pass: {evaluation.summary}")
    for line in (evaluation.confinement, *(item.message for item in evaluation.findings)):
        if line not in SAID:
            SAID.append(line)
            print(line)
    ends = [*(at for at, _ in marks[1:]), ended]
    stages = {"until the first stage": marks[0][0]}
    for (at, text), end in zip(marks, ends, strict=True):
        stages[text] = stages.get(text, 0.0) + end - at
    return {"in all": ended} | stages


async def several(evaluator: KernelEvaluator, count: int, pause_s: float) -> list[dict[str, float]]:
    """That many verdicts, the pause before each."""
    found = []
    for _ in range(count):
        await asyncio.sleep(pause_s)
        found.append(await verdict(evaluator))
    return found


def told(name: str, runs: list[dict[str, float]]) -> dict[str, object]:
    """Print the medians of some runs, and give them as values."""
    whole = [run["in all"] for run in runs]
    middle = statistics.median(whole)
    print(f"{name}: {middle:.2f} s at the median of {len(runs)} ({min(whole):.2f} to {max(whole):.2f})")
    stages = {stage: statistics.median(run.get(stage, 0.0) for run in runs) for stage in runs[-1]}
    for stage, seconds in stages.items():
        if stage != "in all" and seconds >= 0.01:
            print(f"    {seconds:6.2f}  {stage}")
    return {"name": name, "median_s": middle, "all_s": whole, "stages_s": stages}


async def kernelbench(folder: Path, only: str, count: int, pause_s: float) -> dict[str, object]:
    """Verdicts at tier B on the offline author's last kernels for KernelBench's problems."""
    evaluator, runs = KernelEvaluator(device="cuda", spare=True), []
    try:
        found = await evaluator.device()
        print(found.name)
        for stem, problem in problems(folder, only):
            facts = await evaluator.facts(problem, lambda _: None)
            source = last_kernel(problem, facts)
            await verdict(evaluator, problem, source, Tier.B)  # starts the worker, fills the caches
            times = []
            for _ in range(count):
                await asyncio.sleep(pause_s)
                times.append(await verdict(evaluator, problem, source, Tier.B))
            runs.append(told(stem, times))
    finally:
        await evaluator.close()
    return _record(found.name, found.driver, "the offline author's last kernels, tier B", pause_s, runs)


def _record(
    device: str, driver: str, candidate: str, pause_s: float, runs: list[dict[str, object]]
) -> dict[str, object]:
    versions = {name: metadata.version(name) for name in ("torch", "nvidia-cutlass-dsl")}
    return {
        "recorded": time.strftime("%Y-%m-%d"),
        "device": device,
        "driver": driver,
        **versions,
        "candidate": candidate,
        "pause_s": pause_s,
        "said": SAID,
        "runs": runs,
    }


async def measured(device: str, ways: list[str], count: int, pause_s: float) -> dict[str, object]:
    """The first verdict and the `ways` of asking, each told as soon as it is known."""
    evaluator = KernelEvaluator(device=device, spare=True)
    bare = KernelEvaluator(device=device, spare=False)
    try:
        found = await evaluator.device()
        print(found.name)
        runs = [told("the first", [await verdict(evaluator)])]
        if "waiting" in ways:
            runs.append(told("a worker waiting", await several(evaluator, count, pause_s)))
        if "busy" in ways:
            runs.append(told("one upon the other", await several(evaluator, count, 0.0)))
        await evaluator.close()
        if "bare" in ways:
            await verdict(bare)
            runs.append(told("no worker waiting", await several(bare, count, 0.0)))
    finally:
        await evaluator.close()
        await bare.close()
    return _record(found.name, found.driver, "tests/evaluator/candidates/relu.py, tier A", pause_s, runs)


def main() -> None:
    """Measure, print, and write the numbers where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "simulator"))
    parser.add_argument("--count", type=int, default=7, help="verdicts of each kind")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds that an author takes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--kernelbench", type=Path, help="a folder of KernelBench's problems")
    parser.add_argument("--only", default="", help="with it, numbers: 1,19,23-26")
    parser.add_argument("--out", type=Path, help="a JSON file for the numbers")
    options = parser.parse_args()
    if options.kernelbench:
        work = kernelbench(options.kernelbench, options.only, options.count, options.pause)
    else:
        work = measured(options.device, options.ways, options.count, options.pause)
    found = asyncio.run(work)
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

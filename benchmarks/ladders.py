"""Kernels of the offline author with their measured times and their counts at full size, as points of a file.

    python benchmarks/ladders.py record OUT.json FOLDER [LIST]
    python benchmarks/ladders.py rebuild OUT.json FOLDER RESULTS.json

FOLDER holds KernelBench's files. `record`, on a GPU, writes every ladder of a campaign and times each kernel;
LIST is that of ``campaign --only``. `rebuild` writes the same strategies in the same order as RESULTS.json, a
file of ``results`` with rounds, lists with their times. Both take the counts on the simulator.
`benchmarks/estimate.py` reads OUT.json.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.cli.answer import FAULT
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import EAGER
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.full_size import sampling
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import versions

sampling.DEADLINE_S = 240.0  # a loaded machine must lose no point
ROUNDS = 9


def problem_of(path: Path) -> Problem:
    """Return the problem of a KernelBench file."""
    name = path.stem.partition("_")[2].strip("_")
    return Problem(name=name, source=path.read_text(), form=ProblemForm.KERNELBENCH)


def timed(folder: Path, only: str | None) -> Iterator[dict]:
    """Yield a point of every kernel that the offline author writes, timed by the product's own protocol."""
    with tempfile.TemporaryDirectory() as kept:
        words = ["campaign", str(folder), "--device", "cuda", "--rounds", str(ROUNDS), "--store", kept]
        words += ["--baseline", EAGER, *(["--only", only] if only else [])]
        if subprocess.run([sys.executable, "-m", "cutegen_nb", *words], check=False).returncode == FAULT:
            sys.exit("the campaign did not run to its end")
        with SqliteStore(Path(kept), writable=False) as store:
            sessions, _ = store.load_all()
    for session in sessions:
        for item in session.rounds:
            timing = item.evaluation.timing if item.evaluation else None
            if item.candidate and timing:
                yield {
                    "problem": Path(session.problem.path).stem, "revision": f"r{item.number}",
                    "measured_ms": timing.median_ms,
                    "strategy": item.strategy.name if item.strategy else None,
                    "source": item.candidate.source,
                }  # fmt: skip


async def written_again(evaluator: KernelEvaluator, folder: Path, results: list[Path]) -> list[dict]:
    """Return the points of older results, each kernel written again from its list of strategies."""
    points = []
    for name, rounds in _older(results):
        problem = problem_of(_file(folder, name))
        facts = await evaluator.facts(problem, lambda _: None)
        writer = next(one for one in WRITERS if one.accepts(facts))
        applied: tuple[str, ...] = ()
        for number, item in enumerate(rounds):
            strategy = item["strategy"]
            chosen = (*applied, strategy) if strategy else applied
            measured = item.get("median_ms") or item["timing"]["median_ms"]
            try:
                source = writer.write(problem, facts, chosen).source
            except Declined as reason:
                print(f"{name} {strategy}: {reason}", file=sys.stderr)
                continue
            points.append(
                {
                    "problem": _file(folder, name).stem, "revision": f"r{number}", "strategy": strategy,
                    "measured_ms": measured, "source": source,
                }
            )  # fmt: skip
            # A rejected strategy is not in the kernels that follow.
            applied = chosen if item["approved"] else applied
    return points


def _older(results: list[Path]) -> Iterator[tuple[str, list[dict]]]:
    """Yield each problem of older results with its rounds; the first results that have it count."""
    seen = set()
    for path in results:
        written = json.loads(path.read_text())
        for run in written.get("runs", [{"results": written.get("answers", {})}]):
            for name, answer in run["results"].items():
                if name not in seen and answer.get("rounds"):
                    seen.add(name)
                    yield name, answer["rounds"]


def _file(folder: Path, name: str) -> Path:
    number = name.partition("_")[0]
    return next(folder.glob(f"{number}_*.py"))


async def sampled(
    evaluator: KernelEvaluator, sampler: sampling.FullSizeSampler, folder: Path, point: dict
) -> dict:
    """Return a point with its digest and its counts at full size in place of its source."""
    problem = problem_of(_file(folder, point["problem"]))
    candidate = Candidate(source=point["source"], author="offline")
    facts = await evaluator.facts(problem, lambda _: None)
    sample = await sampler.sample(problem, facts, candidate, lambda _: None)
    print(point["problem"], point["revision"], f"{sample.duration_s:.1f} s", sample.missing, flush=True)
    kept = {name: value for name, value in point.items() if name != "source"}
    return {**kept, "digest": candidate.digest, "sample": encode(short(sample))}


def short(sample: FullSizeSample) -> FullSizeSample:
    """Return a sample without counts by line and without code, which no estimate reads."""
    launches = tuple(
        dataclasses.replace(one, profile=dataclasses.replace(one.profile, lines=(), code=None))
        for one in sample.launches
    )
    return dataclasses.replace(sample, launches=launches)


async def main() -> None:
    """Write a file of points."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("how", choices=("record", "rebuild"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", help="LIST, or the files of older results")
    options = parser.parse_args()
    settings = {"device": "simulator", "architecture": "sm_90a", "deadline_s": 300, "memory_bytes": 4 << 30}
    simulator = KernelEvaluator(**settings)
    workers = Workers(**settings, spare=False)
    sampler = sampling.FullSizeSampler(workers)
    if options.how == "record":
        gpu = KernelEvaluator(device="cuda")
        device = await gpu.device()
        assert device.kind is DeviceKind.GPU
        await gpu.close()
        head = {"device": device.name, "driver": device.driver, "versions": versions()}
        head["date"] = datetime.now(UTC).date().isoformat()
        points = list(timed(options.folder, options.rest[0] if options.rest else None))
    else:
        results = [Path(one) for one in options.rest]
        first = json.loads(results[0].read_text())
        head = {"device": first["device"], "driver": first["driver"], "times_from": [p.name for p in results]}
        points = await written_again(simulator, options.folder, results)
    done: list[dict] = []
    for point in points:
        done.append(await sampled(simulator, sampler, options.folder, point))
        options.out.write_text(json.dumps({**head, "points": done}, indent=1, ensure_ascii=False) + "\n")
    await simulator.close()
    await workers.close()


if __name__ == "__main__":
    asyncio.run(main())

"""Kernels of the offline author with their measured times and their counts at full size, as points of a file.

    python benchmarks/ladders.py record OUT.json FOLDER [LIST]
    python benchmarks/ladders.py rebuild OUT.json FOLDER RESULTS.json
    python benchmarks/ladders.py write SOURCES.json FOLDER RUNGS.json
    python benchmarks/ladders.py sample OUT.json FOLDER SOURCES.json

FOLDER holds KernelBench's files. `record`, on a GPU, writes every ladder of a campaign and times each kernel;
LIST is that of ``campaign --only``. `rebuild` writes the same strategies in the same order as RESULTS.json, a
file of ``results`` with rounds, lists with their times. Both take the counts on the simulator.
`benchmarks/estimate.py` reads OUT.json.

For ladders that `benchmarks/rungs.py` timed, FOLDER is the one above its folders. `write` writes their kernels
again; it must run with the offline author of that time. `sample` takes their counts, a kernel in at most
60 seconds, and goes on where an earlier run ended.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.cli.answer import FAULT
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError, Declined
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import EAGER
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.full_size import sampling
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import versions

sampling.DEADLINE_S = 240.0  # a loaded machine must lose no point
LADDER_DEADLINE_S = 60.0
"""Seconds for a kernel of `sample`: it has hundreds of them."""
ROUNDS = 9
SETTINGS: dict[str, Any] = {
    "device": "simulator", "architecture": "sm_90a", "deadline_s": 300, "memory_bytes": 4 << 30,
}  # fmt: skip
"""Settings of the simulator."""
HOPPER = "sm_90"
"""Architecture of the GPU that timed the ladders of `write`."""


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


async def ladder_sources(evaluator: KernelEvaluator, folder: Path, rungs: dict) -> list[dict]:
    """Return a point with its source for every timed rung of a file of `benchmarks/rungs.py`."""
    points = []
    for name, rows in rungs["results"].items():
        problem = problem_of(folder / f"{name}.py")
        try:
            facts = await evaluator.facts(problem, lambda _: None)
            writer = next(one for one in WRITERS if one.accepts(facts))
            menu = [one.name for one in writer.menu(facts) if _is_for_hopper(one, facts.dtype)]
            for row in rows:
                if "ms" in row and row["rung"] != EAGER:
                    points.append(_ladder_point(name, row, problem, facts, menu))
        except (CutegenError, ValueError) as reason:
            print(f"{name}: {type(reason).__name__}: {reason}", file=sys.stderr)
    return points


def _ladder_point(name: str, row: dict, problem: Problem, facts: ProblemFacts, menu: list[str]) -> dict:
    """Write one rung again. Raises ValueError where the author's menu has no such strategy."""
    applied = tuple(menu[: menu.index(row["rung"]) + 1]) if row["rung"] != "first kernel" else ()
    writer = next(one for one in WRITERS if one.accepts(facts))
    return {
        "problem": name, "revision": f"r{len(applied)}", "strategy": applied[-1] if applied else None,
        "measured_ms": row["ms"], "source": writer.write(problem, facts, applied).source,
    }  # fmt: skip


def _is_for_hopper(strategy: Strategy, dtype: str) -> bool:
    here = not strategy.architectures or HOPPER in strategy.architectures
    return here and (not strategy.dtypes or dtype in strategy.dtypes)


async def sample_ladders(out: Path, folder: Path, written: dict) -> None:
    """Add to `out` the counts of every kernel of `written` that it does not have yet."""
    sampling.DEADLINE_S = LADDER_DEADLINE_S
    head = {key: value for key, value in written.items() if key != "points"}
    head |= {"sampled": datetime.now(UTC).date().isoformat(), "sampled_with": versions()}
    done = json.loads(out.read_text())["points"] if out.exists() else []
    known = {(one["problem"], one["revision"], one["digest"]) for one in done}
    simulator, workers = KernelEvaluator(**SETTINGS), Workers(**SETTINGS, spare=False)
    sampler = sampling.FullSizeSampler(workers)
    for point in written["points"]:
        digest = Candidate(source=point["source"], author="offline").digest
        if (point["problem"], point["revision"], digest) not in known:
            done.append(await sampled(simulator, sampler, folder / f"{point['problem']}.py", point))
            out.write_text(json.dumps({**head, "points": done}, ensure_ascii=False) + "\n")
    await simulator.close()
    await workers.close()


def _file(folder: Path, name: str) -> Path:
    number = name.partition("_")[0]
    return next(folder.glob(f"{number}_*.py"))


async def sampled(
    evaluator: KernelEvaluator, sampler: sampling.FullSizeSampler, path: Path, point: dict
) -> dict:
    """Return a point with its digest and its counts at full size in place of its source."""
    problem = problem_of(path)
    candidate = Candidate(source=point["source"], author="offline")
    facts = await evaluator.facts(problem, lambda _: None)
    sample = await sampler.sample(problem, facts, candidate, lambda _: None)
    print(point["problem"], point["revision"], f"{sample.duration_s:.1f} s", sample.missing, flush=True)
    kept = {name: value for name, value in point.items() if name != "source"}
    return {**kept, "digest": candidate.digest, "sample": encode(_short(sample))}


def _short(sample: FullSizeSample) -> FullSizeSample:
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
    parser.add_argument("how", choices=("record", "rebuild", "write", "sample"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", help="LIST, or the files of older results")
    options = parser.parse_args()
    if options.how == "sample":
        await sample_ladders(options.out, options.folder, json.loads(Path(options.rest[0]).read_text()))
        return
    simulator = KernelEvaluator(**SETTINGS)
    if options.how == "write":
        rungs = json.loads(Path(options.rest[0]).read_text())
        head = {"device": rungs["device"], "driver": rungs["driver"], "date": rungs["date"]}
        head |= {"times_from": [Path(options.rest[0]).name]}
        points = await ladder_sources(simulator, options.folder, rungs)
        options.out.write_text(json.dumps({**head, "points": points}, indent=1, ensure_ascii=False) + "\n")
        await simulator.close()
        return
    workers = Workers(**SETTINGS, spare=False)
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
        path = _file(options.folder, point["problem"])
        done.append(await sampled(simulator, sampler, path, point))
        options.out.write_text(json.dumps({**head, "points": done}, indent=1, ensure_ascii=False) + "\n")
    await simulator.close()
    await workers.close()


if __name__ == "__main__":
    asyncio.run(main())

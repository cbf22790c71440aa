"""Counts at full size of the kernels that `benchmarks/rungs.py` timed, without a GPU.

    python benchmarks/rung_counts.py write SOURCES.json FOLDER RUNGS.json
    python benchmarks/rung_counts.py sample OUT.json FOLDER SOURCES.json

FOLDER holds KernelBench's folders `level1` and `level2`. `write` writes the kernels of RUNGS.json again: the
offline author is deterministic. Where it has changed since, copy this file and `ladders.py` into a checkout
of that time. `sample` takes their counts on the simulator, each kernel in at most a minute. It goes on where
an earlier run ended, and tries those again that have no sample. `benchmarks/estimate.py` reads OUT.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from ladders import problem_of, short

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import EAGER
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.full_size import sampling
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.wiring import versions

Json = dict[str, Any]
DEADLINE_S = 60.0
"""Seconds for a kernel. There are hundreds of them: one that takes longer is left without a sample."""
ARCHITECTURE = "sm_90"
"""Architecture of the GPU that timed the ladders."""
SETTINGS: Json = {
    "device": "simulator", "architecture": "sm_90a", "deadline_s": 300, "memory_bytes": 4 << 30,
}  # fmt: skip
FIRST = "first kernel"
"""Name of the rung without a strategy."""


async def written_again(folder: Path, ladders: dict[str, list[Json]]) -> list[Json]:
    """Return a point with its source for every timed rung; skip ladders that differ now, by name."""
    evaluator, points = KernelEvaluator(**SETTINGS), []
    for name, rows in ladders.items():
        problem = problem_of(folder / f"{name}.py")
        try:
            facts = await evaluator.facts(problem, lambda _: None)
            points += list(_rungs(name, rows, problem, facts))
        except (CutegenError, ValueError) as reason:
            print(f"{name}: {type(reason).__name__}: {reason}", file=sys.stderr)
    await evaluator.close()
    return points


def _rungs(name: str, rows: list[Json], problem: Problem, facts: ProblemFacts) -> Iterator[Json]:
    """Yield the points of one ladder. Raises ValueError where the author's menu lacks a strategy."""
    writer = next(one for one in WRITERS if one.accepts(facts))
    menu = [one.name for one in writer.menu(facts) if _fits(one, facts.dtype)]
    for row in rows:
        if "ms" not in row or row["rung"] == EAGER:
            continue
        count = 0 if row["rung"] == FIRST else menu.index(row["rung"]) + 1
        yield {
            "problem": name, "revision": f"r{count}", "strategy": menu[count - 1] if count else None,
            "measured_ms": row["ms"], "source": writer.write(problem, facts, tuple(menu[:count])).source,
        }  # fmt: skip


def _fits(strategy: Strategy, dtype: str) -> bool:
    here = not strategy.architectures or ARCHITECTURE in strategy.architectures
    return here and (not strategy.dtypes or dtype in strategy.dtypes)


async def sample(out: Path, folder: Path, sources: Json) -> None:
    """Add to `out` the counts of every kernel that it does not have yet."""
    sampling.DEADLINE_S = DEADLINE_S
    head = {key: value for key, value in sources.items() if key != "points"}
    head |= {"sampled": datetime.now(UTC).date().isoformat(), "sampled_with": versions()}
    done = _sampled_before(out)
    known = {(one["problem"], one["digest"]) for one in done}
    evaluator, workers = KernelEvaluator(**SETTINGS), Workers(**SETTINGS, spare=False)
    sampler = sampling.FullSizeSampler(workers)
    for point in sources["points"]:
        problem = problem_of(folder / f"{point['problem']}.py")
        candidate = Candidate(source=point["source"], author="offline")
        if (point["problem"], candidate.digest) in known:
            continue
        facts = await evaluator.facts(problem, lambda _: None)
        counts = await sampler.sample(problem, facts, candidate, lambda _: None)
        print(point["problem"], point["revision"], f"{counts.duration_s:.1f} s", counts.missing, flush=True)
        kept = {name: value for name, value in point.items() if name != "source"}
        done.append({**kept, "digest": candidate.digest, "sample": without_zeros(encode(short(counts)))})
        _keep(out, {**head, "points": done})
    await evaluator.close()
    await workers.close()


def _sampled_before(out: Path) -> list[Json]:
    """Return the points of an earlier run that have a sample."""
    points = json.loads(out.read_text())["points"] if out.exists() else []
    return [one for one in points if not one["sample"].get("missing")]


def _keep(out: Path, record: Json) -> None:
    """Write a record, a point a line."""
    head = {key: value for key, value in record.items() if key != "points"}
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in record["points"])
    out.write_text(f'{json.dumps(head)[:-1]}, "points": [\n{lines}\n]}}\n')


def without_zeros(value: Any) -> Any:
    """Return JSON without the fields that are zero or empty, as they are where none is given."""
    if isinstance(value, list):
        return [without_zeros(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_zeros(one)
        for key, one in value.items()
        if one not in (0, "", [], {}, None) or key in _NEEDED
    }


_NEEDED = frozenset(
    {
        "dynamic_smem_bytes",
        "requests",
        "bytes",
        "passes",
        "ideal",
        "scattered_load_sectors",
        "scattered_store_sectors",
    }
)
"""Fields that have no default, or another one than zero."""


def main() -> None:
    """Write the kernels again, or take their counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("how", choices=("write", "sample"))
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("given", type=Path)
    options = parser.parse_args()
    given = json.loads(options.given.read_text())
    if options.how == "sample":
        asyncio.run(sample(options.out, options.folder, given))
        return
    head = {name: given[name] for name in ("device", "driver", "date")} | {"times_from": options.given.name}
    points = asyncio.run(written_again(options.folder, given["results"]))
    options.out.write_text(json.dumps({**head, "points": points}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

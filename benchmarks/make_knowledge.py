"""Write cutegen_nb/knowledge/h200.json from the recorded results of an H200.

    python benchmarks/make_knowledge.py KERNELBENCH/level1

The times are those of the results named in `RESULTS`, each round against the round it started from. The
results name the strategies and not the sources. The offline author therefore writes each kernel again from
its strategies; the counts at full size of `COUNTS`, which were taken of such kernels, tell what it carries
out. A kernel that today's author writes otherwise than the one that was counted, or measured where its digest
was recorded, is named and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.analysis.hardware.devices import find_data_sheet
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.authors.offline.writers import Writer
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.loop.learning import records_of
from cutegen_nb.store.knowledge_file import SHIPPED, write_records

FOLDER = Path(__file__).parent / "results"
RESULTS = ("h200-2026-11-21.json", "kernelbench-h200-2026-11-22.json")
"""Results of `benchmarks/kernelbench.py` on an H200, with every round of each problem."""
COUNTS = "estimate-h200-2026-11-23.json"
"""Counts at full size of the same kernels, by `benchmarks/ladders.py`."""
NOTE = (
    "Times of kernels by the offline author for problems of KernelBench's level 1 at full size, measured on "
    f"one NVIDIA H200; from benchmarks/results: {', '.join(RESULTS)}. The first of the two names strategies "
    "and no sources, so that its kernels were written again from their strategies to say what they carry "
    f"out, by the counts of {COUNTS}; kernels of the second are those measured, byte for byte. Strategies "
    "for model authors, other dtypes than float32 and other GPUs have no measured record yet."
)


@dataclass(frozen=True)
class Ladder:
    """Rounds of one problem in one file of results."""

    problem: str
    """Name of KernelBench's file without its ending."""
    rounds: list[dict[str, Any]]
    """The rounds as recorded."""
    date: str
    """Day of the measurement."""
    versions: dict[str, str]
    """Versions of driver and packages."""


def ladders() -> Iterator[Ladder]:
    """Yield every problem of the results."""
    for name in RESULTS:
        whole = json.loads((FOLDER / name).read_text())
        packages = whole.get("versions") or {
            one: whole[one] for one in ("torch", "nvidia-cutlass-dsl", "python")
        }
        versions = {**packages, "driver": whole["driver"]}
        for run in whole.get("runs", [{"results": whole.get("answers", {})}]):
            for problem, answer in run["results"].items():
                yield Ladder(problem, answer["rounds"], whole.get("recorded") or whole["date"], versions)


def counted() -> dict[tuple[str, str], tuple[str, FullSizeSample]]:
    """Return digest and counts of every counted kernel, by the problem's number and the revision."""
    points = json.loads((FOLDER / COUNTS).read_text())["points"]
    return {
        (one["problem"].partition("_")[0], one["revision"]): (
            one["digest"],
            decode(FullSizeSample, one["sample"]),
        )
        for one in points
    }


def h200(driver: str) -> Device:
    """Return the device that was measured, with the figures of its data sheet."""
    sheet = find_data_sheet("H200")
    assert sheet is not None
    return Device(
        kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a", driver=driver, source=sheet.source,
        bandwidth_bytes_per_s=sheet.bandwidth_bytes_per_s, peak_flops=dict(sheet.peak_flops),
        sm_count=sheet.sm_count, l2_bytes=sheet.l2_bytes, clock_hz=sheet.clock_hz,
    )  # fmt: skip


def timing_of(item: dict[str, Any], rival: str) -> Timing:
    """Return the timing of a recorded round; `rival` is the digest of the best before it."""
    found = item.get("timing") or item
    beside = found.get("best_before")
    return Timing(
        median_ms=found["median_ms"],
        samples_ms=(),
        baselines=tuple(BaselineTiming(**one) for one in found["baselines"]),
        bandwidth_bytes_per_s=0.0,
        method=found.get("method", "events"),
        rival=BaselineTiming(**{**beside, "name": "the best before it"}) if beside else None,
        rival_digest=rival if beside else "",
    )


def round_of(  # noqa: PLR0913, PLR0917 - what a round is
    number: int, item: dict[str, Any], source: str, parent: Candidate | None, strategy: Strategy | None,
    sample: FullSizeSample | None, date: str,
) -> Round:  # fmt: skip
    """Return a recorded round with the kernel that the author writes for it."""
    candidate = Candidate(source=source, author="offline", strategy=strategy)
    evaluation = Evaluation(
        outcome=Judged(verdict=Verdict[item["verdict"]]), summary=".", device="NVIDIA H200", tier=Tier.B,
        timing=timing_of(item, parent.digest if parent else ""), candidate_digest=candidate.digest,
        full_size=sample,
    )  # fmt: skip
    prompt = Prompt(system="", user="", digest="", strategy=strategy, parent=parent)
    attempt = Attempt(purpose="", prompt=prompt, reply=None, candidate=candidate, evaluation=evaluation)
    action = Action.APPROVE if item["approved"] else Action.REJECT
    return Round(
        number=number, stage=Stage.STRUCTURE if strategy else Stage.CORRECT, strategy=strategy,
        attempts=(attempt,),
        comparison=Comparison(relation=Relation(item["relation"]), reason="."),
        decisions=(Decision(gate="revision", action=action, by="policy:auto"),), started_at=date, seconds=0.0,
    )  # fmt: skip


def session_of(
    ladder: Ladder, problem: Problem, facts: ProblemFacts, writer: Writer,
    counts: dict[tuple[str, str], tuple[str, FullSizeSample]],
) -> Session:  # fmt: skip
    """Return a ladder as the session that it was, each kernel written again."""
    named = {item.name: item for item in writer.menu(facts)}
    applied: tuple[str, ...] = ()
    best: Candidate | None = None
    rounds: list[Round] = []
    for number, item in enumerate(ladder.rounds):
        chosen = (*applied, item["strategy"]) if item["strategy"] else applied
        source = writer.write(problem, facts, chosen).source
        digest, sample = counts.get((ladder.problem.partition("_")[0], f"r{number}"), ("", None))
        made = round_of(number, item, source, best, named.get(item["strategy"]), sample, ladder.date)
        assert made.candidate is not None
        if made.candidate.digest != item.get("candidate", digest):
            print(f"{ladder.problem} r{number}: today's author writes another kernel; left out from here on")
            break
        rounds.append(made)
        if item["approved"]:
            applied, best = chosen, made.candidate
    return Session(
        name=problem.name, problem=problem, facts=facts, device=h200(ladder.versions["driver"]),
        author="offline", budget=Budget(), created_at=ladder.date, rounds=tuple(rounds),
        environment={name: value for name, value in ladder.versions.items() if name != "driver"},
    )  # fmt: skip


async def main() -> None:
    """Write the file and print a line for each record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the files of KernelBench's level 1")
    folder = parser.parse_args().folder
    evaluator = KernelEvaluator(device="simulator", architecture="sm_90a")
    counts = counted()
    found: dict[str, StrategyRecord] = {}
    for ladder in ladders():
        number = ladder.problem.partition("_")[0]
        path = next(folder.glob(f"{number}_*.py"))
        problem = replace(
            read_problem(str(path), name=path.stem.partition("_")[2].strip("_")), path=path.name
        )
        facts = await evaluator.facts(problem, lambda _: None)
        writer = next(one for one in WRITERS if one.accepts(facts))
        for item in records_of(session_of(ladder, problem, facts, writer, counts)):
            found[item.digest] = item
            title = f"{problem.name} {item.revision} {item.strategy.name}"
            print(f"{title}: {item.speedup:.3g}×, {item.problem.words}")
    await evaluator.close()
    path = SHIPPED / "h200.json"
    write_records(path, list(found.values()), NOTE)
    print(f"{len(found)} records in {path}")


if __name__ == "__main__":
    asyncio.run(main())

"""Cost of the loop itself a round, with neither a model nor a kernel, against the 0.05 s it may take.

    python benchmarks/loop_overhead.py [--rounds 1000] [--json F]

A session of so many rounds, each answered from a list and judged from a record, is written to a real store.
Printed are the median and the worst of the last hundred rounds (rules, step, prompt, parsing, comparison,
one transaction), CPU time and wall time, and how long the store takes to open the session again.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from pathlib import Path

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.session import Budget
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import FixedClock, RecordedEvaluator, ScriptedModel, examples

ALLOWED_S = 0.05
_LAST = 100


class Numbered(ScriptedModel):
    """Answers with a kernel of the round's number."""

    async def write(self, prompt, session, progress):  # noqa: ARG002 - the port's
        """A whole file in one block."""
        source = examples.kernel_source(f"round {len(session.rounds)}")
        return Reply(text=f"Rationale: once more.\n```python\n{source}```\n", usage=Usage(input_tokens=1))


def play(folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    """Wall and CPU seconds between the ends of neighbouring rounds."""
    found = {
        source_digest(examples.kernel_source(f"round {number}")): examples.passed(
            100_000 - 10 * number if number % 3 == 0 else 200_000
        )
        for number in range(rounds)
    }
    menu = tuple(Strategy(name=f"s{number}", statement="Do it.") for number in range(rounds))
    effects = Effects(
        author=Numbered([], menu=menu),
        evaluator=RecordedEvaluator(examples.relu_facts(), examples.simulated_device(), found),
        approver=AutoApprover(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda _: None,
    )
    wall, cpu = [time.perf_counter()], [time.process_time()]

    def ended(*_) -> None:
        wall.append(time.perf_counter())
        cpu.append(time.process_time())

    async def go() -> None:
        with SqliteStore(folder) as store:
            session = await open_session(examples.relu_problem(), effects, store, Budget(rounds=rounds))
            await run_session(session, effects, store, on_round=ended)

    asyncio.run(go())
    return tuple([after - before for before, after in itertools.pairwise(m)] for m in (wall, cpu))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = (series[-_LAST:] for series in play(Path(folder), options.rounds))
        start = time.perf_counter()
        with SqliteStore(Path(folder)) as store:
            stored = len(store.load("relu").rounds)
        opened = time.perf_counter() - start
    figures = {
        "rounds": stored,
        "wall_median_s": round(statistics.median(wall), 4),
        "wall_worst_s": round(max(wall), 4),
        "cpu_median_s": round(statistics.median(cpu), 4),
        "open_s": round(opened, 3),
        "of_allowed": round(statistics.median(cpu) / ALLOWED_S, 2),
    }
    for name, value in figures.items():
        print(f"{name:>14}  {value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

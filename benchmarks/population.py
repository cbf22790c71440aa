"""Chain against population on landscapes of known effects, with the same number of rounds.

    python benchmarks/population.py [LANDSCAPES] [ROUNDS]

No GPU and no model: an author carries out every strategy as asked, and the time of a kernel follows from its
strategies. A landscape draws 20 strategies with gains of 0.7 to 1.5, of which some pairs cannot be added to
one another in one step (a crossover, which rewrites both ideas, can join them), and some pairs gain or lose
together. It says how a search behaves where such pairs exist, and nothing on how often real kernels have
them. The last line of each search is its geometric mean over the chain's best kernel.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.population import planning
from cutegen_nb.loop.population.run import refine
from cutegen_nb.loop.session import open_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.landscape import Landscape, LandscapeAuthor, LandscapeEvaluator, strategies_named

STRATEGIES = 20
GAINS = (0.7, 1.5)
BLOCKED_PAIRS = 0.25
SYNERGIES = 0.2
FIRST_MS = 8.0
EXTEND, CROSS, INVENT = MoveKind.EXTEND, MoveKind.CROSS, MoveKind.INVENT
SEARCHES = {
    "chain": (1, dict(planning.SHARES)),
    "population 4, default shares": (4, dict(planning.SHARES)),
    "population 4, extend only": (4, {EXTEND: 1.0}),
    "population 4, extend 1, cross 3": (4, {EXTEND: 1.0, CROSS: 3.0, INVENT: 0.5}),
    "population 4, extend 3, cross 1": (4, {EXTEND: 3.0, CROSS: 1.0, INVENT: 0.5}),
    "population 2, default shares": (2, dict(planning.SHARES)),
    "population 6, default shares": (6, dict(planning.SHARES)),
}


def landscape(seed: int) -> Landscape:
    """Draw a landscape."""
    draw = random.Random(seed)
    names = [f"s{number}" for number in range(STRATEGIES)]
    gains = {name: math.exp(draw.uniform(math.log(GAINS[0]), math.log(GAINS[1]))) for name in names}
    pairs = list(itertools.combinations(names, 2))
    together = {pair: draw.uniform(0.8, 1.3) for pair in pairs if draw.random() < SYNERGIES}
    blocked: dict[str, set[str]] = {name: set() for name in names}
    for one, other in pairs:
        if draw.random() < BLOCKED_PAIRS:
            blocked[one].add(other)
            blocked[other].add(one)

    def time_ms(carried: frozenset[str]) -> float:
        speed = math.prod(gains[name] for name in carried if name in gains)
        speed *= math.prod(gain for pair, gain in together.items() if carried.issuperset(pair))
        return FIRST_MS / speed

    return Landscape(
        menu=strategies_named(names),
        time_ms=time_ms,
        blocked={name: frozenset(others) for name, others in blocked.items()},
    )


async def searched(ground: Landscape, size: int, rounds: int, folder: str) -> Session:
    """Run a chain, or a population of `size`, of the scripted author on a landscape."""
    effects = Effects(
        author=LandscapeAuthor(ground),
        evaluator=LandscapeEvaluator(ground),
        approver=AutoApprover(),
        clock=FixedClock(),
        library=shipped_library(),
        progress=lambda _: None,
    )
    budget = Budget(rounds=rounds, epochs=rounds if size > 1 else None)
    with SqliteStore(Path(folder)) as store:
        session = await open_session(
            examples.relu_problem(), effects, store, budget, plan=lambda plan: replace(plan, population=size)
        )
        return await refine(session, effects, store)


def best_speed(ground: Landscape, size: int, rounds: int, folder: str) -> float:
    """Return the speed of the best kernel over the first one."""
    ended = asyncio.run(searched(ground, size, rounds, folder))
    assert ended.best is not None
    assert ended.best.evaluation is not None
    assert ended.best.evaluation.timing is not None
    return FIRST_MS / ended.best.evaluation.timing.median_ms


def speeds(size: int, shares: Mapping[MoveKind, float], count: int, rounds: int) -> list[float]:
    """Return the best speed of one search on each landscape."""
    kept = dict(planning.SHARES)
    planning.SHARES.clear()
    planning.SHARES.update(shares)
    try:
        found = []
        for seed in range(count):
            with tempfile.TemporaryDirectory() as folder:
                found.append(best_speed(landscape(seed), size, rounds, folder))
        return found
    finally:
        planning.SHARES.clear()
        planning.SHARES.update(kept)


def main() -> None:
    """Print one line a search."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 17
    print(f"{count} landscapes, {rounds} rounds a search")
    chain: list[float] = []
    for name, (size, shares) in SEARCHES.items():
        found = speeds(size, shares, count, rounds)
        chain = chain or found
        ratios = [one / other for one, other in zip(found, chain, strict=True)]
        won = sum(ratio > 1.005 for ratio in ratios)
        lost = sum(ratio < 0.995 for ratio in ratios)
        print(
            f"{name:34}  best over first {statistics.geometric_mean(found):.2f}×, "
            f"over the chain {statistics.geometric_mean(ratios):.3f}×  ({won} won, {lost} lost)"
        )


if __name__ == "__main__":
    main()

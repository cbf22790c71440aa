"""Chain against population after the same number of requests to the author, those in words included.

    python benchmarks/equal_requests.py [BUNDLE ...]

No GPU and no model. The first table reads recorded sessions, those of `notebooks/sessions` unless bundles are
given, and pairs each population with the chains of its author on the same problem and device. The second runs
the scripted author of `population.py` on its landscapes. A population asks for more than a chain: after each
kernel that passed it has the strategy restated, and before a crossover it has one stated. A search that has
ended keeps its best kernel.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from population import landscape, searched

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.store.bundle import SUFFIX, read_bundle

SESSIONS = Path(__file__).parent.parent / "notebooks" / "sessions"
REQUESTS = (9, 17, 33, 65)
LANDSCAPES = 20
SIZES = (2, 4, 6)


def main() -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(description="Chain against population after equal numbers of requests.")
    parser.add_argument("bundles", nargs="*", type=Path)
    options = parser.parse_args()
    paths = options.bundles or sorted(SESSIONS.glob(f"*{SUFFIX}"))
    found = recorded_rows([read_bundle(path) for path in paths])
    heading = ("problem", "author", "requests", "chain", "population", "chain ÷ population")
    _print("Recorded sessions", heading, found)
    heading = ("search", *(f"{number} requests" for number in REQUESTS))
    _print(f"{LANDSCAPES} landscapes, speed ÷ the chain's (won, lost)", heading, landscape_rows())


def requests_of(item: Round) -> int:
    """Return the number of requests of a round that were answered."""
    return sum(1 for attempt in item.attempts if attempt.reply)


def best_after(session: Session, requests: int) -> Round | None:
    """Return the fastest approved round within the first `requests` requests; None before any was timed."""
    spent = itertools.accumulate(requests_of(item) for item in session.rounds)
    within = [item for item, total in zip(session.rounds, spent, strict=True) if total <= requests]
    timed = [item for item in within if item.approved and _seconds(item)]
    return min(timed, key=_seconds, default=None)


def recorded_rows(sessions: Sequence[Session]) -> list[tuple[str, ...]]:
    """Return the rows of each pair of a chain and a population, after the requests of either and of both."""
    rows = []
    pairs = itertools.product(
        (one for one in sessions if one.plan.population == 1),
        (one for one in sessions if one.plan.population > 1),
    )
    for chain, population in pairs:
        if _ground(chain) != _ground(population):
            continue
        totals = {sum(map(requests_of, one.rounds)) for one in (chain, population)}
        for requests in sorted({*totals, min(totals) // 2 + 1}):
            one, other = best_after(chain, requests), best_after(population, requests)
            ratio = times(_seconds(one) / _seconds(other)) if one and other else "–"
            named = (Path(chain.problem.path).stem or chain.problem.name, chain.author)
            rows.append((*named, str(requests), _cell(one), _cell(other), ratio))
    return rows


def landscape_rows() -> list[tuple[str, ...]]:
    """Return a row for each size of a population: its speed over the chain's, at each number of requests."""
    chains = [_search(seed, 1) for seed in range(LANDSCAPES)]
    rows = []
    for size in SIZES:
        found = [_search(seed, size) for seed in range(LANDSCAPES)]
        cells = []
        for at in range(len(REQUESTS)):
            ratios = [chain[at] / other[at] for chain, other in zip(chains, found, strict=True)]
            won, lost = sum(one > 1.005 for one in ratios), sum(one < 0.995 for one in ratios)
            cells.append(f"{statistics.geometric_mean(ratios):.2f} ({won}, {lost})")
        rows.append((f"population of {size}", *cells))
    return rows


def _search(seed: int, size: int) -> list[float]:
    """Return the seconds of the best kernel on a landscape at each number of requests."""
    with tempfile.TemporaryDirectory() as folder:
        session = asyncio.run(searched(landscape(seed), size, max(REQUESTS), folder))
    best = (best_after(session, number) for number in REQUESTS)
    return [_seconds(item) if item else float("nan") for item in best]


def _ground(session: Session) -> tuple[str, str, str]:
    return session.problem.digest, session.device.name, session.author


def _seconds(item: Round) -> float:
    """Return the measured seconds of a round's kernel, else the estimated ones; 0 for neither."""
    timing = item.evaluation.timing if item.evaluation else None
    estimated = item.comparison.estimated_s if item.comparison else None
    return timing.median_ms / 1e3 if timing else estimated or 0.0


def _cell(item: Round | None) -> str:
    return f"{duration(_seconds(item))} (r{item.number})" if item else "–"


def _print(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print(f"{title}\n")
    for row in (heading, ("---",) * len(heading), *rows):
        print(f"| {' | '.join(row)} |")
    print()


if __name__ == "__main__":
    main()

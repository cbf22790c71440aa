"""Recorded sessions of a model: first and best kernel, requests and tokens, beside the offline author.

    python benchmarks/model_sessions.py [BUNDLE ...]

Reads the bundles of `notebooks/sessions` that a model wrote, or those given. Prints a Markdown table. Times
are those of each session's own judged runs on the device that it names; `offline ÷ model` divides the offline
author's latency in `benchmarks/results/kernelbench-h100-*.json` by the model's, where both ran on the same
kind of device. A request is one message that the model answered, those for strategies in words included.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.analysis.history.spending import tokens_spent
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.store.bundle import SUFFIX, read_bundle

ROOT = Path(__file__).parent.parent
HEADING = (
    "session", "search", "rounds", "requests", "tokens", "first kernel", "best kernel", "× eager",
    "× torch.compile", "offline ÷ model",
)  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Table of recorded sessions of a model.")
    parser.add_argument("bundles", nargs="*", type=Path)
    options = parser.parse_args()
    paths = options.bundles or sorted((ROOT / "notebooks" / "sessions").glob(f"*{SUFFIX}"))
    read = [(path.stem, read_bundle(path)) for path in paths]
    offline = _offline()
    rows = [_row(name, one, offline) for name, one in read if one.author.startswith("openai") and one.best]
    kernels = _kernels(one for _, one in read if one.author.startswith("openai"))
    for row in (HEADING, ("---",) * len(HEADING), *rows):
        print(f"| {' | '.join(row)} |")
    repairs = sum(
        one.purpose == "repair" for _, session in read for item in session.rounds for one in item.attempts
    )
    passed = sum(kernels.values())
    print(
        f"\n{len(kernels)} different kernels were judged, {passed} passed; {repairs} repairs were asked for."
    )


def _kernels(sessions: Iterable[Session]) -> dict[str, bool]:
    """Digests of all kernels that were judged, repairs included, each with True if it passed."""
    attempts = (attempt for one in sessions for item in one.rounds for attempt in item.attempts)
    return {
        attempt.candidate.digest: attempt.evaluation.passed
        for attempt in attempts
        if attempt.candidate and attempt.evaluation
    }


def _row(name: str, session: Session, offline: dict[tuple[str, str], float]) -> tuple[str, ...]:
    first = next(item for item in session.rounds if _latency_ms(item))
    best = session.best
    assert best is not None
    assert best.evaluation is not None
    assert best.evaluation.timing is not None
    against = {one.name: one.speedup for one in best.evaluation.timing.baselines}
    latency = _latency_ms(best)
    other = offline.get((session.device.name, Path(session.problem.path).stem))
    return (
        name,
        "chain" if session.plan.population == 1 else f"population of {session.plan.population}",
        str(len(session.rounds)),
        str(sum(1 for item in session.rounds for attempt in item.attempts if attempt.reply)),
        f"{tokens_spent(session):,}",
        f"{duration(_latency_ms(first) / 1e3)} (r{first.number})",
        f"{duration(latency / 1e3)} (r{best.number})",
        *(times(against[one]) if one in against else "–" for one in ("eager", "torch.compile")),
        times(other / latency) if other else "–",
    )


def _latency_ms(item: Round) -> float:
    found = item.evaluation
    return found.timing.median_ms if found and found.passed and found.timing else 0.0


def _offline() -> dict[tuple[str, str], float]:
    """Latency in ms of the offline author's best kernel, by device and name of the problem's file."""
    found = {}
    for path in (ROOT / "benchmarks" / "results").glob("kernelbench-*.json"):
        record = json.loads(path.read_text(encoding="utf-8"))
        for name, entry in record.get("problems", {}).items():
            if entry.get("latency_ms"):
                found[record["device"], name.rpartition("/")[2]] = entry["latency_ms"]
    return found


if __name__ == "__main__":
    main()

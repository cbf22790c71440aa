"""Export and report of a long session, against reading it from the store.

    python benchmarks/long_session.py [--rounds N]

The session repeats the rounds of one that was recorded (tests/sessions), each with a source of its own and
compared with the round before it. Printed are the processor's seconds of each step and their ratio to reading
alone. The report includes reading; the export copies the stored text and decodes no round.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.app.exporting import export, export_packed
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.store.bundle import SUFFIX, read_bundle
from cutegen_nb.store.sqlite import SqliteStore

_RECORDED = Path(__file__).parent.parent / "tests" / "sessions" / "linear_gelu.cutegen"


def long_session(rounds: int) -> Session:
    """Repeat the rounds of the recorded session, each with the one before it as its best before."""
    recorded = read_bundle(_RECORDED)
    made: list[Round] = []
    for number in range(rounds):
        made.append(_changed(recorded.rounds[number % len(recorded.rounds)], number, made))
    return dataclasses.replace(recorded, rounds=tuple(made))


def _changed(item: Round, number: int, before: list[Round]) -> Round:
    attempts = []
    for attempt in item.attempts:
        candidate = attempt.candidate
        if candidate:
            candidate = dataclasses.replace(candidate, source=f"{candidate.source}\n# round {number}\n")
        attempts.append(dataclasses.replace(attempt, candidate=candidate))
    last = before[-1].candidate if before else None
    comparison = item.comparison
    if comparison and last:
        comparison = dataclasses.replace(comparison, against=last.digest)
    return dataclasses.replace(item, number=number, attempts=tuple(attempts), comparison=comparison)


def main() -> None:
    """Time reading, export and report of the same session."""
    parser = argparse.ArgumentParser(description="Time export and report of a long session.")
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args()
    made = long_session(options.rounds)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteStore(folder) as store:
            store.create(made)
        seconds = {}
        for step, suffix in (("read", ""), ("export", SUFFIX), ("report", ".html")):
            began = time.process_time()
            with SqliteStore(folder, writable=False) as store:
                if suffix == SUFFIX:
                    export_packed(store.packed(made.name), str(folder / f"it{suffix}"))
                else:
                    session = store.load(made.name)
            if suffix == ".html":
                export(session, str(folder / f"it{suffix}"), None)
            seconds[step] = time.process_time() - began
        size = (folder / "it.html").stat().st_size / 1e6
    for step, taken in seconds.items():
        print(f"{step} {taken:.1f} s, {taken / seconds['read']:.1f} times reading")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"{options.rounds} rounds, page {size:.1f} MB, peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()

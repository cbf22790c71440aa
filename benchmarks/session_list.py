"""A list of stored sessions from the summaries that the store keeps, against reading every session whole.

    python benchmarks/session_list.py [--sessions N] [--rounds N]

Both are timed in this process on a store of made-up sessions of the size of short real ones. Printed are the
seconds of each and their ratio, reading whole ÷ summaries.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples


def main() -> None:
    """Make the store, list it in both ways and print the ratio."""
    parser = argparse.ArgumentParser(description="Time a list of stored sessions in two ways.")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    first = examples.session_of(Relation.FIRST)
    rounds = tuple(dataclasses.replace(first.rounds[0], number=number) for number in range(options.rounds))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteStore(folder) as store:
            for number in range(options.sessions):
                store.create(dataclasses.replace(first, name=f"s{number}", rounds=rounds))
            store.summaries()  # the first list keeps them
        with SqliteStore(folder, writable=False) as store:
            began = time.process_time()
            whole = tuple(summarise(store.load(name)) for name in store.names())
            between = time.process_time()
            listed, _ = store.summaries()
            ended = time.process_time()
    if listed != whole:
        raise SystemExit("the two lists differ")
    print(f"{options.sessions} sessions of {options.rounds} rounds")
    print(f"read whole {between - began:.2f} s, from summaries {ended - between:.2f} s")
    print(f"ratio {(between - began) / (ended - between):.0f}")


if __name__ == "__main__":
    main()

"""Rounds of a session that a report shows with all their evidence; the others it shows in short."""

from __future__ import annotations

import re

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Session

MOST_WHOLE = 40
"""Most rounds with all their evidence, unless they are asked for. Each takes about 0.3 MB of the page."""
_RANGE = re.compile(r"r?(\d+)(?:-r?(\d+))?")


def whole_rounds(session: Session, asked: str = "") -> frozenset[int]:
    """Return the numbers of the rounds to show whole.

    `asked` is ``all``, or revisions such as ``r3,r10-r19``. Without it these are the first round and the
    best, then the newest that improved, then the newest of the rest. Raises UsageError for revisions that are
    not there.
    """
    numbers = frozenset(item.number for item in session.rounds)
    if asked.strip().lower() == "all":
        return numbers
    if asked:
        return _named(asked, numbers)
    best = session.best
    ranked = sorted(
        session.rounds,
        key=lambda item: (
            item is best or item.number == 0,
            item.approved and item.comparison is not None and item.comparison.relation.is_better,
            item.number,
        ),
        reverse=True,
    )
    return frozenset(item.number for item in ranked[:MOST_WHOLE])


def _named(asked: str, numbers: frozenset[int]) -> frozenset[int]:
    found: set[int] = set()
    for word in asked.split(","):
        written = _RANGE.fullmatch(word.strip())
        first, last = (int(written[1]), int(written[2] or written[1])) if written else (0, -1)
        named = numbers.intersection(range(first, last + 1))
        if not named:
            there = f"r{min(numbers)} to r{max(numbers)}" if numbers else "none yet"
            raise UsageError(
                f"--whole {word.strip()!r} names no revision of the session, which has {there}: "
                "write r3, r3,r7 or r10-r19, or all"
            )
        found |= named
    return frozenset(found)

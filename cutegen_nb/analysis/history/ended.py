"""Reason for the end of a session: its kind, its stored text for a person's stop, its words for a reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from textwrap import shorten

from cutegen_nb.analysis.history.summary import who

_STOP = re.compile(
    r"^(?P<by>person:.*?) stopped (?:it|the session) (?P<where>(?:in|at|after) (?:round|epoch) \d+)"
    r"(?P<doing> while (?:[^:]|:(?! ))*)?(?:: (?P<words>.*))?$",
    re.DOTALL,
)
"""Text of `stored_stop`. Sessions of before say ``stopped it`` where a round was cut off."""


_LONGEST_REASON = 300
"""Characters up to which a reason is read whole."""
_MOST_CLAUSES = 3
"""Clauses of a longer reason that a person reads at once."""
_LONGEST_CLAUSE = 200
"""Characters of a clause that a person reads at once."""


class EndKind(StrEnum):
    """Kind of the end of a session."""

    OPEN = "open"
    """It has not ended and may go on."""
    PERSON = "person"
    """A person stopped it."""
    BUDGET = "budget"
    """A budget is spent."""
    EXHAUSTED = "exhausted"
    """No strategy is left to try, or none brought a gain for long."""
    ROOF = "roof"
    """The best revision runs near the hardware's limit."""
    SCHEDULE = "schedule"
    """The schedule of stages has ended."""
    FAILED = "failed"
    """Author or evaluator could not go on."""

    @property
    def is_final(self) -> bool:
        """True where going on would end for the same reason at once."""
        return self in {EndKind.EXHAUSTED, EndKind.ROOF, EndKind.SCHEDULE}


_KINDS = (
    (EndKind.BUDGET, re.compile(r"the budget of .* is spent")),
    (
        EndKind.EXHAUSTED,
        re.compile(r"every strategy was tried|nothing is left to try|\d+ epochs in a row brought no gain"),
    ),
    (EndKind.ROOF, re.compile(r"the best revision runs at")),
    (EndKind.SCHEDULE, re.compile(r"the paper's schedule ends")),
)
"""Beginnings of the reasons of each kind, from `loop`; every other reason is a failure."""


def end_kind(reason: str) -> EndKind:
    """Return the kind of an end from its stored reason."""
    if not reason:
        return EndKind.OPEN
    if is_stopped_by_person(reason):
        return EndKind.PERSON
    return next((kind for kind, pattern in _KINDS if pattern.match(reason)), EndKind.FAILED)


def stored_stop(by: str, where: str, words: str = "", doing: str = "") -> str:
    """Return the reason that is stored where somebody stopped the session.

    `by` is the decider, ``person:ada``; `where` the place, ``at round 2``; `doing` the step that was cut off.
    """
    step = f" while {doing}" if doing else ""
    said = f": {words.strip()}" if words.strip() else ""
    return f"{by} stopped the session {where}{step}{said}"


def is_stopped_by_person(reason: str) -> bool:
    """Return whether a stored reason is a person's stop."""
    return _STOP.match(reason) is not None


def ended_words(reason: str) -> str:
    """Return a stored reason as a person reads it: ``ada stopped it at round 2: “enough for today”``."""
    stop = _STOP.match(reason)
    if stop is None:
        return reason
    words = f": “{stop['words'].strip().rstrip('.')}”" if stop["words"] else ""
    return f"{who(stop['by'])} stopped it {stop['where']}{stop['doing'] or ''}{words}"


def short_reason(reason: str) -> tuple[str, tuple[str, ...]]:
    """Return the first clauses of a reason with the number of the others, and whole what that leaves out.

    The reason of a session that tried all strategies has a clause for each that was not carried out. The
    words of a person are never cut.
    """
    if is_stopped_by_person(reason) or len(reason) <= _LONGEST_REASON:
        return ended_words(reason), ()
    clauses = list(_clauses(reason))
    shown = [_short(clause) for clause in clauses[:_MOST_CLAUSES]]
    left_out = clauses[_MOST_CLAUSES:]
    cut = [clause for clause in clauses[:_MOST_CLAUSES] if _short(clause) != clause]
    if left_out:
        shown.append(f"and {len(left_out)} more reason{'' if len(left_out) == 1 else 's'}")
    return "; ".join(shown), (*cut, *left_out)


def few_ended(texts: Sequence[str]) -> str:
    """Return the first of the strategies that an author ended, with the number of all; empty for none."""
    if len(texts) <= 1:
        return _short(texts[0]) if texts else ""
    return f"{len(texts)} strategies ended by the author, first {_short(texts[0])}"


def _clauses(reason: str) -> Iterator[str]:
    """Split a reason at the semicolons that stand outside brackets."""
    depth, start = 0, 0
    for index, mark in enumerate(reason):
        depth += (mark in "([{") - (mark in ")]}")
        if mark == ";" and depth <= 0:
            yield reason[start:index].strip()
            start = index + 1
    yield reason[start:].strip()


def _short(clause: str) -> str:
    return shorten(clause, _LONGEST_CLAUSE, placeholder=" …")

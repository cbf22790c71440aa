"""Reason for the end of a session: its kind, its stored text for a person's stop, its words for a reader."""

from __future__ import annotations

import re
from enum import StrEnum

from cutegen_nb.analysis.history.summary import who

_STOP = re.compile(
    r"^(?P<by>person:.*?) stopped (?:it|the session) (?P<where>(?:in|at|after) (?:round|epoch) \d+)"
    r"(?P<doing> while [^:]*)?(?:: (?P<words>.*))?$",
    re.DOTALL,
)
"""Text of `stored_stop`. Sessions of before say ``stopped it`` where a round was cut off."""


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

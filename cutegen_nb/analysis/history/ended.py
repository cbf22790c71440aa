"""Reason for the end of a session: its stored text for a stop by a person, and its words for a reader."""

from __future__ import annotations

import re

from cutegen_nb.analysis.history.summary import who

_STOP = re.compile(
    r"^(?P<by>person:.*?) stopped (?:it|the session) (?P<where>(?:in|at|after) (?:round|epoch) \d+)"
    r"(?P<doing> while [^:]*)?(?:: (?P<words>.*))?$",
    re.DOTALL,
)
"""Text of `stored_stop`. Sessions of before say ``stopped it`` where a round was cut off."""


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

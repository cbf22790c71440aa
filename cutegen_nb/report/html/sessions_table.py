"""Table of all sessions that sorts and filters: one row a session, its revisions below it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.history.session_summary import RevisionSummary, SessionSummary
from cutegen_nb.core.library import library_option
from cutegen_nb.report.markup import Style, fill

_TEMPLATES = Path(__file__).parent.with_name("templates")
SCRIPT = (_TEMPLATES / "sessions.js").read_text(encoding="utf-8")
"""Script that sorts, filters and unfolds. Without it the table is whole and stands in its first order."""
_STYLE = (_TEMPLATES / "sessions.css").read_text(encoding="utf-8")
_WIDTH, _HEIGHT, _MARGIN = 92.0, 24.0, 3.0
"""Pixels of the chart of one session."""
_MOST_MARKS = 48
"""Most rounds that the chart marks one by one."""
_FULL_GAIN = 16.0
"""Gain whose bar fills its cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Chart of one session: time of its best revision by round, logarithmic, and the rounds that failed."""

    line: str
    """Points of the line, as SVG writes them."""
    timed: tuple[tuple[float, float], ...]
    """Points of the revisions with a time."""
    failed: tuple[float, ...]
    """Horizontal places of the rounds that did not pass."""
    words: str
    """The same in words."""


def sessions_table(
    sessions: Sequence[SessionSummary],
    *,
    damaged: Mapping[str, str] | None = None,
    link: Callable[[str], str] = lambda _: "",
) -> Markup:
    """Return the table with its style, newest session first; the script goes behind it.

    `damaged` gives the error of each session that could not be read, `link` the address of its report.
    """
    newest = sorted(sessions, key=lambda item: item.created_at, reverse=True)
    baselines = dict.fromkeys(name for item in newest if item.shown for name in item.shown.speedups)
    return fill(
        "sessions_table",
        Style.PAGE,
        sessions=newest,
        damaged=dict(damaged or {}),
        baselines=tuple(baselines),
        with_library=any(item.library for item in newest),
        style=Markup(_STYLE),  # noqa: S704 - a file of the package
        link=link,
        course=course,
        searched=_searched,
        share_of_bar=_share_of_bar,
        times=times,
        library=library_option,
        width=_WIDTH,
        height=_HEIGHT,
    )


def lead(sessions: Sequence[SessionSummary]) -> str:
    """Count the sessions, those with a best revision and those with measured times, in a sentence."""
    if not sessions:
        return "No session is stored yet."
    shown = [item.shown for item in sessions if item.best is not None]
    measured = sum(1 for item in shown if item and item.is_measured)
    source = f"{measured:,} of them measured on a GPU" if measured else "none of them measured on a GPU"
    problems = len({item.problem_digest for item in sessions})
    return (
        f"{_counted(len(sessions), 'session')} of {_counted(problems, 'problem')}; "
        f"{len(shown):,} with a kernel that was approved, {source}."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _searched(item: SessionSummary) -> str:
    """Return the text that the filter searches, in lower case."""
    verdict = item.shown.verdict if item.shown else ""
    parts = (item.name, item.problem, item.workload_class, item.author, item.device, verdict)
    strategies = dict.fromkeys(revision.strategy for revision in item.revisions)
    simulated = "simulated" if item.is_simulated else ""
    return " ".join((*parts, simulated, library_option(item.library), *strategies)).lower()


def _share_of_bar(gain: float) -> int:
    """Return the width of a gain's bar in percent, logarithmic."""
    return round(100 * min(max(math.log2(gain) / math.log2(_FULL_GAIN), 0.0), 1.0)) if gain > 0 else 0


def course(item: SessionSummary) -> Course | None:
    """Return the chart of a session; None where no revision has a time."""
    alike = [one for one in item.revisions if one.seconds and one.is_measured == _is_measured(item)]
    if not alike:
        return None
    seconds = [one.seconds for one in alike if one.seconds]
    low, high = math.log(min(seconds)), math.log(max(seconds))
    count = max(len(item.revisions) - 1, 1)
    place = {one.number: index for index, one in enumerate(item.revisions)}

    def x(one: RevisionSummary) -> float:
        return _MARGIN + (_WIDTH - 2 * _MARGIN) * place[one.number] / count

    def y(one: RevisionSummary) -> float:
        above = (high - math.log(one.seconds or 1.0)) / (high - low) if high > low else 0.5
        return _MARGIN + (_HEIGHT - 2 * _MARGIN) * above

    few = len(item.revisions) <= _MOST_MARKS
    steps = [one for one in alike if one.is_better and one.decision in {"approved", "overruled"}]
    return Course(
        line=_line([(x(one), y(one)) for one in steps]),
        timed=tuple((x(one), y(one)) for one in (alike if few else steps)),
        failed=tuple(x(one) for one in item.revisions if few and not one.passed),
        words=_words(item),
    )


def _is_measured(item: SessionSummary) -> bool:
    """Return whether the chart is one of measured times: a session has those or estimates."""
    return any(one.is_measured for one in item.revisions)


def _line(points: Sequence[tuple[float, float]]) -> str:
    """Return the steps of the best time up to the last round."""
    found: list[tuple[float, float]] = []
    for at in points:
        if found:
            found.append((at[0], found[-1][1]))
        found.append(at)
    if found:
        found.append((_WIDTH - _MARGIN, found[-1][1]))
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in found)


def _words(item: SessionSummary) -> str:
    failed = sum(1 for one in item.revisions if not one.passed)
    gain = f", {times(item.gain)} from first to best" if item.gain else ""
    return (
        f"time by round, logarithmic, higher is slower{gain}; {failed} of {item.rounds} rounds did not pass"
    )

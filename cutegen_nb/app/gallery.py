"""Gallery of recorded sessions: the bundles of a folder, each with its device, its times and its lesson."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.session_summary import RevisionSummary, SessionSummary, summarise
from cutegen_nb.analysis.history.summary import roof_device
from cutegen_nb.app.output import columns
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Session
from cutegen_nb.store.bundle import SUFFIX, read_bundle

LESSONS = "lessons.toml"
"""File beside the bundles: what each session teaches, a sentence under the name of its file."""
_HEADING = ("file", "problem", "device", "first kernel", "best kernel", "gain", "teaches")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSession:
    """Bundle of a folder, as the gallery shows it."""

    path: Path
    """File of the bundle."""
    session: Session
    """The session in it."""
    summary: SessionSummary
    """Its times, first and best revision."""
    stated: str = ""
    """Lesson of the session, as the folder's file states it; empty where it states none."""

    @property
    def device(self) -> str:
        """GPU that timed the kernels, or the one that times were estimated for."""
        if not self.summary.is_simulated:
            return self.summary.device
        return f"simulator, estimates for {roof_device(self.session).gpu_name}"

    @property
    def first(self) -> RevisionSummary | None:
        """First approved revision."""
        return self._revision(self.summary.first)

    @property
    def best(self) -> RevisionSummary | None:
        """Best revision."""
        return self._revision(self.summary.best)

    @property
    def teaches(self) -> str:
        """Lesson of the session: the stated sentence, else the largest step or the reason of its end."""
        return self.stated or _largest_step(self.summary) or f"Ended: {ended_words(self.summary.stopped)}"

    def _revision(self, number: int | None) -> RevisionSummary | None:
        return next((one for one in self.summary.revisions if one.number == number), None)


def read_gallery(folder: Path) -> tuple[RecordedSession, ...]:
    """Read every bundle of a folder, in the order of their names.

    Raises UsageError for a folder without bundles and a faulty file of lessons, StoreError for a
    damaged bundle.
    """
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise UsageError(
            f"{folder} holds no {SUFFIX} file: `cutegen-nb export NAME -o NAME{SUFFIX}` makes one"
        )
    stated = _stated(folder / LESSONS)
    unknown = sorted(set(stated) - {path.stem for path in paths})
    if unknown:
        raise UsageError(
            f"{folder / LESSONS} has a lesson for {unknown[0]}, but there is no {unknown[0]}{SUFFIX}"
        )
    return tuple(_recorded(path, stated.get(path.stem, "")) for path in paths)


def gallery_rows(recorded: Sequence[RecordedSession]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heading and rows of the gallery, a row a session."""
    return _HEADING, [_row(one) for one in recorded]


def gallery_text(recorded: Sequence[RecordedSession]) -> str:
    """Return the gallery as a table for a terminal, what each session teaches below it."""
    heading, rows = gallery_rows(recorded)
    table = columns(heading[:-1], [row[:-1] for row in rows])
    return "\n".join([table, "", *(f"{row[0]}: {row[-1]}" for row in rows)])


def gallery_markdown(recorded: Sequence[RecordedSession]) -> str:
    """Return the gallery as Markdown: the table of all sessions, then the rounds of each."""
    heading, rows = gallery_rows(recorded)
    parts = [_markdown_table(heading, rows)]
    for one in recorded:
        facts = one.session.facts
        about = f"{facts.workload_class.value}, {facts.dtype}; written by {one.summary.author}; {one.device}."
        rounds = [_round_row(item) for item in one.summary.revisions]
        parts += [f"## {one.path.stem}", one.teaches, about]
        parts += [
            _markdown_table(("round", "strategy", "verdict", "time", "against best", "decision"), rounds)
        ]
    return "\n\n".join(parts) + "\n"


def _recorded(path: Path, stated: str) -> RecordedSession:
    session = read_bundle(path)
    return RecordedSession(path=path, session=session, summary=summarise(session), stated=stated)


def _stated(path: Path) -> dict[str, str]:
    """Read the file of lessons; a folder may have none."""
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    wrong = next((key for key, value in found.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise UsageError(
            f'{path}: {wrong} is no text; write a line such as {wrong} = "It ends at the floor."'
        )
    return found


def _row(one: RecordedSession) -> tuple[str, ...]:
    gain = one.summary.gain
    return (
        one.path.stem,
        one.summary.problem,
        one.device,
        _time(one.first),
        _time(one.best),
        times(gain) if gain else "–",
        one.teaches,
    )


def _round_row(item: RevisionSummary) -> tuple[str, ...]:
    return (
        f"r{item.number}",
        item.strategy,
        item.verdict,
        _time(item, named=False),
        item.relation,
        item.decision,
    )


def _time(item: RevisionSummary | None, *, named: bool = True) -> str:
    """Return the time of a revision with its origin: ``3.04 ms, measured (r2)``."""
    if item is None:
        return "none"
    label = f" (r{item.number})" if named else ""
    if item.seconds is None:
        return f"not timed{label}"
    return f"{duration(item.seconds)}, {'measured' if item.is_measured else 'estimated'}{label}"


def _largest_step(summary: SessionSummary) -> str:
    """Return a sentence on the approved round that gained most over the one before it; empty for none."""
    if summary.best is None:
        return ""
    kept = [one for one in summary.revisions if one.decision == "approved" and one.seconds]
    steps = [
        (before.seconds / after.seconds, after)
        for before, after in itertools.pairwise(kept)
        if before.seconds and after.seconds and before.is_measured == after.is_measured
    ]
    if not steps:
        return ""
    gain, item = max(steps, key=lambda step: step[0])
    return f"Its largest step is {item.strategy} (r{item.number}), {times(gain)}."


def _markdown_table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)

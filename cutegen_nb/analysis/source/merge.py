"""Three-way merge of two revisions against their common ancestor.

The merge works by lines as diff3 does (Khanna, Kunal and Pierce, "A Formal Investigation of Diff3", 2007).
Unlike there, changes of neighbouring lines do not conflict: the result is evaluated like any candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from cutegen_nb.analysis.source.diff import Diff, apply, diff, split_lines
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Session

_EXCERPT = 6
"""Most lines of each side that a conflict's message shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Place that both sides changed in different ways."""

    first: int
    """First line of the ancestor, from 1; for an insertion the line after it."""
    last: int
    """Last line of the ancestor; `first` − 1 for an insertion."""
    left: str
    """Lines of the left side, line ends included."""
    right: str
    """Lines of the right side, line ends included."""

    @property
    def place(self) -> str:
        """Place in words: ``line 12``, ``lines 12–14``, ``before line 12``."""
        if self.last < self.first:
            return f"before line {self.first}"
        return f"line {self.first}" if self.first == self.last else f"lines {self.first}–{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Result of merging two revisions."""

    source: str
    """Merged source."""
    ancestor: str
    """Label of the common ancestor, or the start of its digest if it is no revision."""
    labels: tuple[str, str]
    """Labels of the two revisions."""
    parents: tuple[str, str]
    """Digests of the two revisions."""

    @property
    def words(self) -> str:
        """Description of the merge, in a sentence."""
        return f"merged {self.labels[0]} and {self.labels[1]}, both made from {self.ancestor}"


class MergeConflict(UsageError):
    """Error for two revisions that change the same lines in different ways; nothing was merged."""

    def __init__(self, left: str, right: str, places: str) -> None:
        super().__init__(
            f"{left} and {right} change the same lines in different ways, and nothing was merged: take only "
            f"some hunks of one ({left}:1,3), or edit one of them by hand.\n{places}"
        )
        self.places = places
        """Each place with both sides' lines, over several lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparateChanges:
    """Changes of two revisions since their common ancestor, each by itself."""

    ancestor: Candidate
    """Common ancestor."""
    origin: str
    """Label of the ancestor, or the start of its digest if it is no revision."""
    labels: tuple[str, str]
    """Labels of the two revisions."""
    changes: tuple[Diff, Diff]
    """Diff of each revision from the ancestor, which numbers the hunks for a merge."""
    sources: tuple[str, str]
    """Source of each revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Replacement of the ancestor's lines `start` up to `stop`."""

    start: int
    """Index of the first line, from 0."""
    stop: int
    """Index after the last line; equal to `start` for an insertion before it."""
    lines: tuple[str, ...]
    """New lines, line ends included."""


def merge_texts(ancestor: str, left: str, right: str) -> tuple[str, tuple[Conflict, ...]]:
    """Apply the changes of both sides to `ancestor`, and return the text with its conflicts.

    The ancestor's lines stay where the sides conflict. A change that both sides made is applied once.
    """
    lines = split_lines(ancestor)
    ours, theirs = _changes(lines, split_lines(left)), _changes(lines, split_lines(right))
    pieces: list[str] = []
    conflicts: list[Conflict] = []
    position = 0
    while ours or theirs:
        first, second = _next_group(ours, theirs)
        group = [*first, *second]
        start, stop = min(one.start for one in group), max(one.stop for one in group)
        pieces += lines[position:start]
        position = stop
        if first and second and first != second:
            conflicts.append(
                Conflict(
                    first=start + 1,
                    last=stop,
                    left="".join(_applied(lines, first, start, stop)),
                    right="".join(_applied(lines, second, start, stop)),
                )
            )
            pieces += lines[start:stop]
        else:
            pieces += _applied(lines, first or second, start, stop)
    return "".join([*pieces, *lines[position:]]), tuple(conflicts)


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [
        _Change(start=start, stop=stop, lines=tuple(new[new_start:new_stop]))
        for tag, start, stop, new_start, new_stop in matcher.get_opcodes()
        if tag != "equal"
    ]


def _next_group(ours: list[_Change], theirs: list[_Change]) -> tuple[list[_Change], list[_Change]]:
    """Take the first change from the two lists, with all changes of either side that meet it."""
    lists = (ours, theirs)
    taken: tuple[list[_Change], list[_Change]] = ([], [])
    side = 0 if ours and (not theirs or ours[0].start <= theirs[0].start) else 1
    taken[side].append(lists[side].pop(0))
    while True:
        met = next(
            (
                index
                for index in (0, 1)
                if lists[index] and any(_meet(one, lists[index][0]) for one in taken[1 - index])
            ),
            None,
        )
        if met is None:
            return taken
        taken[met].append(lists[met].pop(0))


def _meet(one: _Change, other: _Change) -> bool:
    """Return whether two changes touch the same lines, or one inserts at an edge of the other.

    The order of such an insertion and the other change would be unknown.
    """
    if one.start < other.stop and other.start < one.stop:
        return True
    inserts = one.start == one.stop or other.start == other.stop
    return inserts and one.start <= other.stop and other.start <= one.stop


def _applied(lines: Sequence[str], changes: Sequence[_Change], start: int, stop: int) -> list[str]:
    """Return lines `start` up to `stop` with the changes applied."""
    made: list[str] = []
    for one in changes:
        made += [*lines[start : one.start], *one.lines]
        start = one.stop
    return [*made, *lines[start:stop]]


def merge_revisions(session: Session, first: str, second: str) -> Merged:
    """Merge two revisions: ``r3`` takes all changes of r3, ``r3:1,4`` only two of its hunks.

    Hunks are numbered as in a diff from the common ancestor. Raises UsageError if a revision or hunk is
    unknown, if one was made from the other, or if they conflict.
    """
    left, right = _side(session, first), _side(session, second)
    ancestor = _ancestor(session, left, right)
    source, conflicts = merge_texts(ancestor.source, left.taken(ancestor), right.taken(ancestor))
    origin = _label(session, ancestor)
    if conflicts:
        raise MergeConflict(left.label, right.label, _places(conflicts, left.label, right.label, origin))
    return Merged(
        source=source,
        ancestor=origin,
        labels=(left.label, right.label),
        parents=(left.candidate.digest, right.candidate.digest),
    )


def changes_apart(session: Session, first: str, second: str) -> SeparateChanges:
    """Return the changes of each revision that a merge could take.

    Raises UsageError as `merge_revisions` does, except for conflicts.
    """
    left, right = _side(session, first), _side(session, second)
    ancestor = _ancestor(session, left, right)
    sources = (left.candidate.source, right.candidate.source)
    return SeparateChanges(
        ancestor=ancestor,
        origin=_label(session, ancestor),
        labels=(left.label, right.label),
        changes=(diff(ancestor.source, sources[0]), diff(ancestor.source, sources[1])),
        sources=sources,
    )


def mergeable(session: Session) -> tuple[int, ...]:
    """Return the numbers of rounds whose changes the last round's candidate lacks and could take.

    Oldest first.
    """
    last = session.rounds[-1].candidate if session.rounds else None
    if last is None:
        return ()
    known = _sources(session)
    found: list[int] = []
    seen = {last.digest}
    for item in session.rounds[:-1]:
        other = item.candidate
        common = _common(known, other, last) if other else None
        if other is None or common is None or other.digest in seen:
            continue
        seen.add(other.digest)
        if common.digest not in {other.digest, last.digest}:
            found.append(item.number)
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """Revision to merge, with the hunks that are wanted."""

    label: str
    """Label: ``r3``."""
    candidate: Candidate
    """Candidate of the revision."""
    hunks: frozenset[int] | None
    """Numbers of the wanted hunks; None for all."""

    def taken(self, ancestor: Candidate) -> str:
        """Return the ancestor with the wanted hunks applied."""
        if self.hunks is None:
            return self.candidate.source
        return apply(ancestor.source, diff(ancestor.source, self.candidate.source), set(self.hunks))


def _side(session: Session, words: str) -> _Side:
    name, separator, hunks = words.strip().partition(":")
    number = name.removeprefix("r")
    found = next((item for item in session.rounds if str(item.number) == number and item.candidate), None)
    if found is None or found.candidate is None:
        able = ", ".join(f"r{item.number}" for item in session.rounds if item.candidate) or "none yet"
        raise UsageError(f"{session.name} has no revision {name!r}: there is {able}")
    numbers = [word.strip() for word in hunks.split(",")] if separator else []
    if not all(word.isascii() and word.isdigit() for word in numbers):
        raise UsageError(
            f"{hunks!r} names no hunks: r{number}:1,3 takes the first and the third of r{number}"
        )
    chosen = frozenset(int(word) for word in numbers) if separator else None
    return _Side(label=f"r{number}", candidate=found.candidate, hunks=chosen)


def _sources(session: Session) -> dict[str, Candidate]:
    """Return every candidate of the session by digest, the earliest of equals."""
    found: dict[str, Candidate] = {}
    for item in session.rounds:
        for attempt in item.attempts:
            for one in (attempt.prompt.parent, attempt.candidate):
                if one is not None:
                    found.setdefault(one.digest, one)
    return found


def _ancestor(session: Session, left: _Side, right: _Side) -> Candidate:
    """Return the common ancestor. Raises UsageError if there is none, or if it is one of the two."""
    ancestor = _common(_sources(session), left.candidate, right.candidate)
    if ancestor is None:
        raise UsageError(
            f"{left.label} and {right.label} were not made from one revision, so that nothing tells their "
            "changes apart: compare them, and edit one of them by hand"
        )
    if ancestor.digest in {left.candidate.digest, right.candidate.digest}:
        newer = left.label if ancestor.digest == right.candidate.digest else right.label
        raise UsageError(f"{newer} has all of the other's changes already: it was made from it")
    return ancestor


def _common(known: dict[str, Candidate], left: Candidate, right: Candidate) -> Candidate | None:
    """Return the nearest common ancestor; one of the two if the other was made from it."""
    ours, theirs = _ancestors(known, left), _ancestors(known, right)
    return next((known[digest] for digest in ours if digest in theirs), None)


def _ancestors(known: dict[str, Candidate], candidate: Candidate) -> list[str]:
    """Return the digests of a candidate and its ancestors, nearest first."""
    found = [candidate.digest]
    for digest in found:
        if digest in known:
            found += [one for one in known[digest].parents if one in known and one not in found]
    return found


def _label(session: Session, candidate: Candidate) -> str:
    for item in session.rounds:
        if item.candidate and item.candidate.digest == candidate.digest:
            return f"r{item.number}"
    return candidate.digest[:12]


def _places(conflicts: Sequence[Conflict], left: str, right: str, origin: str) -> str:
    return "\n".join(
        f"{one.place} of {origin}:\n{_quoted(left, one.left)}\n{_quoted(right, one.right)}"
        for one in conflicts
    )


def _quoted(label: str, text: str) -> str:
    lines = text.splitlines()
    more = [f"… {len(lines) - _EXCERPT} lines more"] if len(lines) > _EXCERPT else []
    shown = [*lines[:_EXCERPT], *more] or ["(removed)"]
    return "\n".join(f"  {label} | {line}" for line in shown)

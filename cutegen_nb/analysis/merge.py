"""The changes of two revisions against their common ancestor as one source, or where they contradict.

A three-way merge by lines, as diff3's (Khanna, Kunal and Pierce, "A Formal Investigation of Diff3",
2007), but changes of neighbouring lines do not contradict: the result is evaluated as any candidate is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from cutegen_nb.analysis.diff import Diff, apply, diff, split_lines
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Session

_EXCERPT = 6
"""Lines of each side shown of a contradiction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """A place that both sides changed, each in its own way."""

    first: int
    """First line of the ancestor, from 1; of an insertion the line it stands before."""
    last: int
    """Last line of the ancestor; `first` − 1 for an insertion."""
    left: str
    """The one side's lines, ends included."""
    right: str
    """The other's."""

    @property
    def place(self) -> str:
        """``line 12``, ``lines 12–14``, ``before line 12``."""
        if self.last < self.first:
            return f"before line {self.first}"
        return f"line {self.first}" if self.first == self.last else f"lines {self.first}–{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Two revisions as one source."""

    source: str
    """The new source."""
    ancestor: str
    """Label of the revision that both came from; its digest's start where it is no revision."""
    labels: tuple[str, str]
    """The revisions, as they are called."""
    parents: tuple[str, str]
    """Their digests."""

    @property
    def words(self) -> str:
        """What was done, in a sentence."""
        return f"merged {self.labels[0]} and {self.labels[1]}, both made from {self.ancestor}"


class Contradiction(UsageError):
    """Two revisions that change the same lines, each in its own way; nothing was merged."""

    def __init__(self, left: str, right: str, places: str) -> None:
        super().__init__(
            f"{left} and {right} change the same lines in different ways, and nothing was merged: take only "
            f"some hunks of one ({left}:1,3), or edit one of them by hand.\n{places}"
        )
        self.places = places
        """Each place with both sides' lines, over several lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """What two revisions changed, each for itself, since the one that both came from."""

    ancestor: Candidate
    """That one."""
    origin: str
    """Its label; its digest's start where it is no revision."""
    labels: tuple[str, str]
    """The two, as they are called."""
    changes: tuple[Diff, Diff]
    """Of each from the ancestor: what a merge numbers its hunks by."""
    sources: tuple[str, str]
    """Of each, whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Lines `start` up to `stop` of the ancestor become `lines`."""

    start: int
    """Index of the first, from 0."""
    stop: int
    """Index after the last; `start` for an insertion before it."""
    lines: tuple[str, ...]
    """What stands there instead, ends included."""


def merge_texts(ancestor: str, left: str, right: str) -> tuple[str, tuple[Conflict, ...]]:
    """Both sides' changes applied to `ancestor`; its lines stay where they contradict, and that is told.

    A change that both made is made once.
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
    """Take the first change from the front of the lists, with all that meet it from either side."""
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
    """Whether they touch the same lines, or one puts lines at an edge of the other: in which order?"""
    if one.start < other.stop and other.start < one.stop:
        return True
    inserts = one.start == one.stop or other.start == other.stop
    return inserts and one.start <= other.stop and other.start <= one.stop


def _applied(lines: Sequence[str], changes: Sequence[_Change], start: int, stop: int) -> list[str]:
    """Lines `start` up to `stop` with the changes made."""
    made: list[str] = []
    for one in changes:
        made += [*lines[start : one.start], *one.lines]
        start = one.stop
    return [*made, *lines[start:stop]]


def merge_revisions(session: Session, first: str, second: str) -> Merged:
    """Two revisions of a session as one source; ``r3`` all of r3's changes, ``r3:1,4`` two of its hunks.

    Hunks are numbered as a diff from the common ancestor shows them. Raises UsageError where a revision or a
    hunk is unknown, where one was made from the other, and where they contradict.
    """
    left, right = _side(session, first), _side(session, second)
    ancestor = _ancestor(session, left, right)
    source, conflicts = merge_texts(ancestor.source, left.taken(ancestor), right.taken(ancestor))
    origin = _label(session, ancestor)
    if conflicts:
        raise Contradiction(left.label, right.label, _places(conflicts, left.label, right.label, origin))
    return Merged(
        source=source,
        ancestor=origin,
        labels=(left.label, right.label),
        parents=(left.candidate.digest, right.candidate.digest),
    )


def changes_apart(session: Session, first: str, second: str) -> Apart:
    """What a merge of two revisions could take of each. Raises UsageError as `merge_revisions` does."""
    left, right = _side(session, first), _side(session, second)
    ancestor = _ancestor(session, left, right)
    sources = (left.candidate.source, right.candidate.source)
    return Apart(
        ancestor=ancestor,
        origin=_label(session, ancestor),
        labels=(left.label, right.label),
        changes=(diff(ancestor.source, sources[0]), diff(ancestor.source, sources[1])),
        sources=sources,
    )


def mergeable(session: Session) -> tuple[int, ...]:
    """Numbers of the rounds whose changes the last round's candidate lacks and could take; oldest first."""
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
    """A revision, and which hunks of it are wanted; all for None."""

    label: str
    """``r3``."""
    candidate: Candidate
    """Its candidate."""
    hunks: frozenset[int] | None
    """Their numbers."""

    def taken(self, ancestor: Candidate) -> str:
        """The ancestor with the wanted hunks."""
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
    """Every candidate of the session by its digest, the earliest of equals."""
    found: dict[str, Candidate] = {}
    for item in session.rounds:
        for attempt in item.attempts:
            for one in (attempt.prompt.parent, attempt.candidate):
                if one is not None:
                    found.setdefault(one.digest, one)
    return found


def _ancestor(session: Session, left: _Side, right: _Side) -> Candidate:
    """What both were made from. Raises UsageError where there is none, or where it is one of them."""
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
    """The nearest ancestor of both; one of them where it is the other's."""
    ours, theirs = _ancestors(known, left), _ancestors(known, right)
    return next((known[digest] for digest in ours if digest in theirs), None)


def _ancestors(known: dict[str, Candidate], candidate: Candidate) -> list[str]:
    """Digests of a candidate and of what it was made from, nearest first."""
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

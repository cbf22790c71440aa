r"""The difference between two sources as values: numbered hunks, lines, and what changed inside a line.

Lines end at ``\n`` only, as Python counts them, and every character is kept, so that applying all
hunks gives the new text exactly and applying none the old one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from cutegen_nb.core.errors import UsageError

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_ALIKE = 0.5
"""Lines at least this similar are one line edited; others are one removed and one added."""
_PAIR_LIMIT = 2500
"""Largest block (removed × added lines) whose lines are matched by likeness; larger ones keep no marks."""
_LONG = 4000
"""Above this many lines difflib's popularity rule is switched on, or a repetitive file takes minutes."""

Span = tuple[int, int]
"""Characters from the first up to, not including, the second."""


class LineKind(StrEnum):
    """What became of a line."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a hunk."""

    kind: LineKind
    """What became of it."""
    text: str
    """The line without its end."""
    old_number: int = 0
    """Its number in the old text, from 1; 0 for an added line."""
    new_number: int = 0
    """Its number in the new text, from 1; 0 for a removed line."""
    changed: tuple[Span, ...] = ()
    """Where it differs from the line it replaces or is replaced by; empty when there is no such line."""
    no_newline: bool = False
    """Whether the text ends here without a line end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Neighbouring changes with the unchanged lines around them; accepted or not as one."""

    number: int
    """From 1."""
    old_start: int
    """Index in the old lines of its first line, context included, from 0."""
    old_stop: int
    """Index after its last old line."""
    new_start: int
    """Index in the new lines of its first line, from 0."""
    new_stop: int
    """Index after its last new line."""
    old_text: str
    """The old lines, ends included."""
    new_text: str
    """The new lines, ends included."""
    lines: tuple[DiffLine, ...]
    """As shown: context, removed, added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All hunks between two texts."""

    hunks: tuple[Hunk, ...]
    """In order; empty when the texts are equal."""
    old_lines: int
    """Lines of the old text."""
    new_lines: int
    """Lines of the new text."""
    added: int
    """Lines only in the new text."""
    removed: int
    """Lines only in the old text."""

    @property
    def empty(self) -> bool:
        """Whether the texts are equal."""
        return not self.hunks


def split_lines(text: str) -> list[str]:
    r"""Lines with their ends, cut at ``\n`` only; joining them gives `text` back."""
    pieces = text.split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def diff(old: str, new: str, context: int = 3) -> Diff:
    """Compare two texts; changes closer than twice `context` lines share a hunk."""
    before, after = split_lines(old), split_lines(new)
    matcher = SequenceMatcher(None, before, after, autojunk=max(len(before), len(after)) > _LONG)
    groups = [] if old == new else list(matcher.get_grouped_opcodes(context))
    hunks = tuple(_hunk(number, group, before, after) for number, group in enumerate(groups, start=1))
    kinds = [line.kind for hunk in hunks for line in hunk.lines]
    return Diff(
        hunks=hunks,
        old_lines=len(before),
        new_lines=len(after),
        added=kinds.count(LineKind.ADDED),
        removed=kinds.count(LineKind.REMOVED),
    )


def apply(old: str, difference: Diff, accepted: set[int]) -> str:
    """The old text with the hunks of these numbers applied, exactly.

    Raises UsageError when a number is not a hunk's, or when the hunks were made from another text.
    """
    numbers = {hunk.number for hunk in difference.hunks}
    unknown = sorted(accepted - numbers)
    if unknown:
        known = f"hunks 1 to {len(numbers)}" if numbers else "no hunks"
        raise UsageError(f"There is no hunk {unknown[0]}: this change has {known}. Name one of those.")
    lines = split_lines(old)
    pieces: list[str] = []
    position = 0
    for hunk in difference.hunks:
        if "".join(lines[hunk.old_start : hunk.old_stop]) != hunk.old_text:
            raise UsageError(
                f"Hunk {hunk.number} was made from another text: line {hunk.old_start + 1} differs. "
                "Compare with the present text again."
            )
        pieces += lines[position : hunk.old_start]
        pieces.append(hunk.new_text if hunk.number in accepted else hunk.old_text)
        position = hunk.old_stop
    return "".join([*pieces, *lines[position:]])


def _hunk(
    number: int, group: Sequence[tuple[str, int, int, int, int]], before: list[str], after: list[str]
) -> Hunk:
    _, old_start, _, new_start, _ = group[0]
    _, _, old_stop, _, new_stop = group[-1]
    return Hunk(
        number=number,
        old_start=old_start,
        old_stop=old_stop,
        new_start=new_start,
        new_stop=new_stop,
        old_text="".join(before[old_start:old_stop]),
        new_text="".join(after[new_start:new_stop]),
        lines=tuple(_lines(group, before, after)),
    )


def _lines(
    group: Sequence[tuple[str, int, int, int, int]], before: list[str], after: list[str]
) -> Iterator[DiffLine]:
    for tag, old_start, old_stop, new_start, new_stop in group:
        if tag == "equal":
            for offset in range(old_stop - old_start):
                text = before[old_start + offset]
                old_number, new_number = old_start + offset + 1, new_start + offset + 1
                yield _line(LineKind.SAME, text, old_number, new_number)
            continue
        removed, added = before[old_start:old_stop], after[new_start:new_stop]
        old_marks, new_marks = _marks(removed, added)
        for offset, text in enumerate(removed):
            yield _line(LineKind.REMOVED, text, old_start + offset + 1, 0, old_marks.get(offset, ()))
        for offset, text in enumerate(added):
            yield _line(LineKind.ADDED, text, 0, new_start + offset + 1, new_marks.get(offset, ()))


def _line(
    kind: LineKind, text: str, old_number: int, new_number: int, changed: tuple[Span, ...] = ()
) -> DiffLine:
    return DiffLine(
        kind=kind,
        text=text.rstrip("\n"),
        old_number=old_number,
        new_number=new_number,
        changed=changed,
        no_newline=not text.endswith("\n"),
    )


def _marks(
    removed: Sequence[str], added: Sequence[str]
) -> tuple[dict[int, tuple[Span, ...]], dict[int, tuple[Span, ...]]]:
    old_marks: dict[int, tuple[Span, ...]] = {}
    new_marks: dict[int, tuple[Span, ...]] = {}
    for old_index, new_index in _pairs(removed, added):
        old_text, new_text = removed[old_index].rstrip("\n"), added[new_index].rstrip("\n")
        old_marks[old_index], new_marks[new_index] = changed_spans(old_text, new_text)
    return old_marks, new_marks


def changed_spans(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Which characters differ, by words: spans in `old` and spans in `new`."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    before_at, after_at = _offsets(before), _offsets(after)
    old_spans: list[Span] = []
    new_spans: list[Span] = []
    for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        if j > i:
            old_spans.append((before_at[i], before_at[j]))
        if m > k:
            new_spans.append((after_at[k], after_at[m]))
    return _joined(old, old_spans), _joined(new, new_spans)


def _joined(text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans with nothing but spaces between them as one: a changed phrase reads better than its words."""
    joined: list[Span] = []
    for start, stop in spans:
        if joined and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], stop)
        else:
            joined.append((start, stop))
    return tuple(joined)


def _offsets(tokens: Sequence[str]) -> list[int]:
    offsets = [0]
    for token in tokens:
        offsets.append(offsets[-1] + len(token))
    return offsets


def _pairs(removed: Sequence[str], added: Sequence[str]) -> list[tuple[int, int]]:
    """Which removed line became which added one: the in-order matching of the greatest likeness."""
    if not removed or not added or len(removed) * len(added) > _PAIR_LIMIT:
        return []
    likeness = [[_likeness(old, new) for new in added] for old in removed]
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    for i in range(len(removed) - 1, -1, -1):
        for j in range(len(added) - 1, -1, -1):
            paired = likeness[i][j] + best[i + 1][j + 1] if likeness[i][j] else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(removed) and j < len(added):
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _likeness(old: str, new: str) -> float:
    """Share of words two lines have in common; 0 when they are too different to be one line edited."""
    if not old.strip() or not new.strip():
        return 0.0
    words = SequenceMatcher(None, _words(old), _words(new), autojunk=False)
    if words.real_quick_ratio() < _ALIKE or words.quick_ratio() < _ALIKE:
        return 0.0
    ratio = words.ratio()
    return ratio if ratio >= _ALIKE else 0.0


def _words(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.isspace()]

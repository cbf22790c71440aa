r"""Line diff of two sources: numbered hunks, lines, and changed spans within a line.

Lines end at ``\n`` only, as Python counts them, and every character is kept. Applying all hunks gives exactly
the new text, and applying none gives the old text.
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
"""Similarity, from 0 to 1, from which a removed and an added line count as one edited line."""
_PAIR_LIMIT = 2500
"""Largest block (removed × added lines) whose lines are matched by similarity; larger blocks get no marks."""
_LONG = 4000
"""Number of lines above which difflib's popularity rule is used, without which a repetitive file takes
minutes."""

Span = tuple[int, int]
"""Range of characters: first index, and index after the last."""
Range = tuple[int, int, int, int]
"""Characters that differ: start and stop in the old text, start and stop in the new one."""


class LineKind(StrEnum):
    """Kind of a diff line."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a hunk."""

    kind: LineKind
    """Same, removed or added."""
    text: str
    """Line without its end."""
    old_number: int = 0
    """Line number in the old text, from 1; 0 for an added line."""
    new_number: int = 0
    """Line number in the new text, from 1; 0 for a removed line."""
    changed: tuple[Span, ...] = ()
    """Spans that differ from the line's counterpart in the other text; empty where it has no counterpart."""
    no_newline: bool = False
    """True if the text ends here without a newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Neighbouring changes with their context; a hunk is accepted or rejected as a whole."""

    number: int
    """Number of the hunk, from 1."""
    old_start: int
    """Index of its first old line, context included, from 0."""
    old_stop: int
    """Index after its last old line."""
    new_start: int
    """Index of its first new line, context included, from 0."""
    new_stop: int
    """Index after its last new line."""
    old_text: str
    """Old lines, line ends included."""
    new_text: str
    """New lines, line ends included."""
    lines: tuple[DiffLine, ...]
    """Lines in the order shown: context, removed, added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """All hunks between two texts."""

    hunks: tuple[Hunk, ...]
    """Hunks in order; empty if the texts are equal."""
    old_lines: int
    """Number of lines of the old text."""
    new_lines: int
    """Number of lines of the new text."""
    added: int
    """Number of lines only in the new text."""
    removed: int
    """Number of lines only in the old text."""

    @property
    def empty(self) -> bool:
        """True if the texts are equal."""
        return not self.hunks


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines with their ends, at ``\n`` only; joining them gives `text` back."""
    pieces = text.split("\n")
    lines = [piece + "\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def diff(old: str, new: str, context: int = 3) -> Diff:
    """Compare two texts; changes closer than twice `context` lines share a hunk."""
    before, after = split_lines(old), split_lines(new)
    groups = [] if old == new else list(_matcher(before, after).get_grouped_opcodes(context))
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
    """Apply the hunks with the given numbers to the old text, exactly.

    Raises UsageError if a number is unknown, or if the hunks were made from another text.
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
    """Return the spans of words that differ, in `old` and in `new`."""
    found = _changed_words(old, new)
    old_spans = [(start, stop) for start, stop, _, _ in found if stop > start]
    new_spans = [(start, stop) for _, _, start, stop in found if stop > start]
    return _joined(old, old_spans), _joined(new, new_spans)


def changed_ranges(old: str, new: str) -> tuple[Range, ...]:
    """Return what differs as ranges of characters, in order and aligned as the lines of `diff` are.

    A range is whole lines, or in an edited line the words that differ.
    """
    if old == new:
        return ()
    before, after = split_lines(old), split_lines(new)
    old_at, new_at = _offsets(before), _offsets(after)
    found: list[Range] = []
    for tag, i, j, k, m in _matcher(before, after).get_opcodes():
        if tag == "equal":
            continue
        old_line, new_line = i, k
        for old_pair, new_pair in [*_pairs(before[i:j], after[k:m]), (j - i, m - k)]:
            old_stop, new_stop = i + old_pair, k + new_pair
            if old_line < old_stop or new_line < new_stop:
                found.append((old_at[old_line], old_at[old_stop], new_at[new_line], new_at[new_stop]))
            if old_stop < j and new_stop < m:
                a, b = old_at[old_stop], new_at[new_stop]
                words = _changed_words(before[old_stop], after[new_stop])
                found += [(a + w, a + x, b + y, b + z) for w, x, y, z in words]
            old_line, new_line = old_stop + 1, new_stop + 1
    return tuple(found)


def _matcher(before: Sequence[str], after: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, before, after, autojunk=max(len(before), len(after)) > _LONG)


def _changed_words(old: str, new: str) -> list[Range]:
    """Return the words that differ between two lines, in order."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    before_at, after_at = _offsets(before), _offsets(after)
    return [
        (before_at[i], before_at[j], after_at[k], after_at[m])
        for tag, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        if tag != "equal"
    ]


def _joined(text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Join spans with only spaces between them: a changed phrase reads better than its words."""
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
    """Match removed with added lines, in order, for the greatest total similarity."""
    if not removed or not added or len(removed) * len(added) > _PAIR_LIMIT:
        return []
    likeness = [[_likeness(old, new) for new in added] for old in removed]
    best = [[0.0] * (len(added) + 1) for _ in range(len(removed) + 1)]
    # Dynamic programme as for a longest common subsequence, weighted by similarity: best[i][j] is the
    # greatest total for removed[i:] and added[j:].
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
    """Return the similarity of two lines by words, from 0 to 1.

    0 for lines too different to be one edited.
    """
    if not old.strip() or not new.strip():
        return 0.0
    words = SequenceMatcher(None, _words(old), _words(new), autojunk=False)
    # Both are upper bounds of the ratio and cheaper to compute.
    if words.real_quick_ratio() < _ALIKE or words.quick_ratio() < _ALIKE:
        return 0.0
    ratio = words.ratio()
    return ratio if ratio >= _ALIKE else 0.0


def _words(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(text) if not token.isspace()]

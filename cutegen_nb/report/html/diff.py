"""HTML view of a source diff: unified and highlighted, with changed words marked and the rest folded."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cutegen_nb.analysis.source.diff import DiffLine, Hunk, LineKind, diff
from cutegen_nb.report.html.code import Piece, highlight, pieces
from cutegen_nb.report.markup import Style, fill

_Lines = Sequence[Sequence[Piece]]
"""Highlighted lines of a source."""
_Row = tuple[DiffLine, list[tuple[str, str, bool]]]
"""Line of a diff with its pieces."""


def render(
    old: str, new: str, *, style: Style = Style.RECORD, old_name: str = "before", new_name: str = "after"
) -> Markup:
    """Return the change from `old` to `new`. RECORD, the default, can stand alone in any page or notebook."""
    difference = diff(old, new)
    before, after = highlight(old), highlight(new)
    parts: list[tuple[str, str, list[_Row]]] = []
    position = new_position = 0
    total = len(difference.hunks)
    for hunk in difference.hunks:
        parts.append(_gap(before, position, hunk.old_start, new_position))
        places = f"{_range(hunk.old_start, hunk.old_stop)} → {_range(hunk.new_start, hunk.new_stop)}"
        parts.append(("", f"Hunk {hunk.number} of {total}: lines {places}", _rows(hunk, before, after)))
        position, new_position = hunk.old_stop, hunk.new_stop
    parts.append(_gap(before, position, len(before), new_position))
    return fill("diff", style, difference=difference, names=(old_name, new_name), parts=parts)


def hunks(old: str, new: str, *, style: Style = Style.RECORD) -> tuple[tuple[int, str, str], ...]:
    """Return each hunk by itself: its number, its place and size in words, and its lines as HTML."""
    before, after = highlight(old), highlight(new)
    return tuple(
        (item.number, _place(item), fill("hunk", style, rows=_rows(item, before, after)))
        for item in diff(old, new).hunks
    )


def _place(hunk: Hunk) -> str:
    kinds = [line.kind for line in hunk.lines]
    lines = f"line{'' if hunk.old_stop - hunk.old_start == 1 else 's'}"
    size = f"+{kinds.count(LineKind.ADDED)} −{kinds.count(LineKind.REMOVED)}"
    return f"{lines} {_range(hunk.old_start, hunk.old_stop)}, {size}"


def _gap(before: _Lines, start: int, stop: int, new_start: int) -> tuple[str, str, list[_Row]]:
    """Return unchanged lines, to be folded away: title, no caption, rows."""
    hidden = stop - start
    title = f"{hidden} unchanged {'line' if hidden == 1 else 'lines'}"
    rows = [
        (DiffLine(kind=LineKind.SAME, text="", old_number=start + i, new_number=new_start + i), pieces(line))
        for i, line in enumerate(before[start:stop], start=1)
    ]
    return title, "", rows


def _range(start: int, stop: int) -> str:
    return "none" if start == stop else f"{start + 1}" if stop == start + 1 else f"{start + 1}–{stop}"


def _rows(hunk: Hunk, before: _Lines, after: _Lines) -> list[_Row]:
    return [
        (
            line,
            pieces(
                after[line.new_number - 1] if line.new_number else before[line.old_number - 1], line.changed
            ),
        )
        for line in hunk.lines
    ]

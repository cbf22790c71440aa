"""A difference between two sources as HTML: unified, highlighted, changed words marked, the rest folded."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.diff import Diff, DiffLine, Hunk, LineKind, diff
from cutegen_nb.report.code import Piece, highlight, line_html
from cutegen_nb.report.markup import Style, gap, look, safe

_SIGN = {LineKind.SAME: "", LineKind.ADDED: "+", LineKind.REMOVED: "−"}
_TAG = {LineKind.ADDED: "ins", LineKind.REMOVED: "del"}


def render(
    old: str, new: str, *, style: Style = Style.RECORD, old_name: str = "before", new_name: str = "after"
) -> str:
    """The change from `old` to `new`. RECORD, the default, stands alone in any page or notebook."""
    difference = diff(old, new)
    if difference.empty:
        return f"<p>{safe(new_name)} is identical to {safe(old_name)}.</p>"
    before, after = highlight(old), highlight(new)
    parts = [_head(difference, style, old_name, new_name)]
    position = 0
    new_position = 0
    for hunk in difference.hunks:
        parts.append(_gap(before, position, hunk.old_start, new_position, style))
        parts.append(_hunk(hunk, len(difference.hunks), before, after, style))
        position, new_position = hunk.old_stop, hunk.new_stop
    parts.append(_gap(before, position, len(before), new_position, style))
    return f"<div{look(style, 'card')}>{''.join(parts)}</div>"


def hunks(old: str, new: str, *, style: Style = Style.RECORD) -> tuple[tuple[int, str, str], ...]:
    """Each hunk by itself: its number, where it is and how large in words, and its lines as HTML."""
    difference = diff(old, new)
    before, after = highlight(old), highlight(new)
    return tuple(
        (item.number, _place(item), _table("", item, before, after, style)) for item in difference.hunks
    )


def _place(hunk: Hunk) -> str:
    kinds = [line.kind for line in hunk.lines]
    lines = f"line{'' if hunk.old_stop - hunk.old_start == 1 else 's'}"
    size = f"+{kinds.count(LineKind.ADDED)} −{kinds.count(LineKind.REMOVED)}"
    return f"{lines} {_range(hunk.old_start, hunk.old_stop)}, {size}"


def _head(difference: Diff, style: Style, old_name: str, new_name: str) -> str:
    hunks = len(difference.hunks)
    return (
        f"<p{look(style, 'diff-head')}><b>{safe(old_name)} → {safe(new_name)}</b>: "
        f"{difference.added} added (+), {difference.removed} removed (−), "
        f"in {hunks} {'hunk' if hunks == 1 else 'hunks'}</p>"
    )


def _gap(before: Sequence[Sequence[Piece]], start: int, stop: int, new_start: int, style: Style) -> str:
    """Unchanged lines, folded away."""
    hidden = stop - start
    if hidden <= 0:
        return ""
    rows = "".join(
        _row(LineKind.SAME, start + i + 1, new_start + i + 1, line_html(before[start + i], style), style)
        for i in range(hidden)
    )
    words = f"{hidden} unchanged {'line' if hidden == 1 else 'lines'}"
    return gap(style, words, f"<table{look(style, 'listing')}><tbody>{rows}</tbody></table>")


def _hunk(
    hunk: Hunk,
    total: int,
    before: Sequence[Sequence[Piece]],
    after: Sequence[Sequence[Piece]],
    style: Style,
) -> str:
    title = (
        f"Hunk {hunk.number} of {total}: lines {_range(hunk.old_start, hunk.old_stop)} → "
        f"{_range(hunk.new_start, hunk.new_stop)}"
    )
    return _table(f"<caption{look(style, 'caption')}>{title}</caption>", hunk, before, after, style)


def _table(
    caption: str,
    hunk: Hunk,
    before: Sequence[Sequence[Piece]],
    after: Sequence[Sequence[Piece]],
    style: Style,
) -> str:
    rows = "".join(_line(line, before, after, style) for line in hunk.lines)
    return f"<table{look(style, 'listing')}>{caption}<tbody>{rows}</tbody></table>"


def _range(start: int, stop: int) -> str:
    return "none" if start == stop else f"{start + 1}" if stop == start + 1 else f"{start + 1}–{stop}"


def _line(
    line: DiffLine, before: Sequence[Sequence[Piece]], after: Sequence[Sequence[Piece]], style: Style
) -> str:
    pieces = after[line.new_number - 1] if line.new_number else before[line.old_number - 1]
    mark = "" if line.kind is LineKind.SAME else f"mark-{line.kind.value}"
    text = line_html(pieces, style, line.changed, mark)
    if line.no_newline:
        text += f"<span{look(style, 'muted')}> ⟨no line end⟩</span>"
    return _row(line.kind, line.old_number, line.new_number, text, style)


def _row(kind: LineKind, old_number: int, new_number: int, text: str, style: Style) -> str:
    suffix = "" if kind is LineKind.SAME else f"-{kind.value}"
    tag = _TAG.get(kind)
    content = f"<{tag}{look(style, 'plain')}>{text}</{tag}>" if tag else text
    number = look(style, "number")
    return (
        f"<tr{look(style, 'row' + suffix)}>"
        f"<td{number}>{old_number or ''}</td><td{number}>{new_number or ''}</td>"
        f"<td{look(style, 'sign')}>{_SIGN[kind]}</td><td{look(style, 'code' + suffix)}>{content}</td></tr>"
    )

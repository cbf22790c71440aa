"""Text that fits where it is read: tables and paragraphs no wider than the terminal.

Into a file or a pipe nothing is folded, so that a line stays a line for ``grep``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from itertools import zip_longest
from textwrap import wrap

_NARROWEST = 20
"""No terminal is taken for narrower."""
_COLUMN = 10
"""A column is not folded below this; a table for which that is too much is set row by row."""
_GAP = "  "


def text_width() -> int | None:
    """Columns of the terminal that standard output is, or what COLUMNS says; None for a file or a pipe."""
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told):
        return max(int(told), _NARROWEST)
    try:
        # In a notebook the stream is no terminal, though its descriptor may be that of Jupyter's own.
        found = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError, AttributeError):
        return None
    return max(found, _NARROWEST) if found else None


def table_lines(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), rule: bool = True, width: int | None = None
) -> list[str]:
    """Rows in aligned columns, the first a heading; columns `right` hold figures and are never folded.

    Where they are wider than `width` (None: the terminal's), the widest columns of words are folded, the
    first excepted, which names the row; where that is not enough each row is a block, a line a cell.
    """
    limit = width if width is not None else text_width()
    natural = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    widths = natural if limit is None else _fitted(natural, right, limit)
    if widths is None:
        assert limit is not None
        return _blocks(rows, limit)
    lines = [line for row in rows[:1] for line in _row(row, widths, right)]
    if rule:
        lines.append(_GAP.join("─" * one for one in widths))
    return lines + [line for row in rows[1:] for line in _row(row, widths, right)]


def paragraph(
    text: str, indent: str = "", *, first: str | None = None, width: int | None = None
) -> list[str]:
    """`text` in lines of the terminal's width, `first` before the first and `indent` before the others."""
    limit = width if width is not None else text_width()
    start = indent if first is None else first
    if limit is None or len(start) + len(text) <= limit:
        return [f"{start}{text}"]
    return wrap(
        text,
        limit,
        initial_indent=start,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _fitted(natural: Sequence[int], right: Collection[int], limit: int) -> list[int] | None:
    """Widths that keep to `limit`, taken from the widest columns of words; None where there are none."""
    widths = list(natural)
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - limit
    while over > 0:
        words = [i for i, one in enumerate(widths) if i and i not in right and one > _COLUMN]
        if not words:
            return None
        widths[max(words, key=widths.__getitem__)] -= 1
        over -= 1
    return widths


def _row(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> list[str]:
    folded = [
        wrap(cell, one) or [""] if len(cell) > one else [cell] for cell, one in zip(row, widths, strict=True)
    ]
    return [
        _GAP.join(
            part.rjust(widths[index]) if index in right else part.ljust(widths[index])
            for index, part in enumerate(parts)
        ).rstrip()
        for parts in zip_longest(*folded, fillvalue="")
    ]


def _blocks(rows: Sequence[Sequence[str]], limit: int) -> list[str]:
    """A block a row: its first cell, then its others, each after its heading."""
    heading, *body = rows
    lines: list[str] = []
    for row in body:
        lines += paragraph(row[0] or "–", width=limit)
        for name, cell in zip(heading[1:], row[1:], strict=True):
            text = f"{name}: {cell or '–'}" if name else cell
            lines += paragraph(text, "    ", first="  ", width=limit)
    return lines

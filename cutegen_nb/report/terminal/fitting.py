"""Fitting of tables and paragraphs to the width of the terminal.

In a file or a pipe nothing is wrapped, so that ``grep`` finds whole lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from itertools import zip_longest
from textwrap import wrap

_NARROWEST = 20
"""Least width in columns that is assumed of a terminal."""
_COLUMN = 10
"""Least width of a column that is wrapped; a table that still does not fit is set row by row."""
_GAP = "  "
"""Space between columns."""


def text_width() -> int | None:
    """Return the width from COLUMNS, else that of the terminal at standard output.

    None for a file or a pipe.
    """
    told = os.environ.get("COLUMNS", "")
    if told.isascii() and told.isdigit() and int(told):
        return max(int(told), _NARROWEST)
    try:
        # A notebook's stream is no terminal, although its descriptor may belong to Jupyter's own.
        found = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError, AttributeError):
        return None
    return max(found, _NARROWEST) if found else None


def table_lines(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), rule: bool = True, width: int | None = None
) -> list[str]:
    """Format rows in aligned columns, the first row as heading; columns in `right` hold figures.

    Where rows exceed `width` (None: the terminal's), the widest columns of words are wrapped. Columns of
    figures and the first column, which names the row, are never wrapped. Where that does not suffice, each
    row becomes a block with a line for each cell.
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
    """Wrap `text` to the terminal's width.

    `first` stands before the first line, `indent` before the others.
    """
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
    """Return widths that fit `limit`, taken from the widest columns of words; None if that is impossible."""
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
    """Format each row as a block: its first cell, then the others, each with its heading."""
    heading, *body = rows
    lines: list[str] = []
    for row in body:
        lines += paragraph(row[0] or "–", width=limit)
        for name, cell in zip(heading[1:], row[1:], strict=True):
            text = f"{name}: {cell or '–'}" if name else cell
            lines += paragraph(text, "    ", first="  ", width=limit)
    return lines

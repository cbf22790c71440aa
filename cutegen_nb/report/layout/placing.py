"""Placement of cells, text and drawings: grids sized to their text, drawings stacked or side by side."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.report.layout.drawing import (
    TEXT,
    Cell,
    Content,
    Drawing,
    Grid,
    Room,
    Stroke,
    TextLine,
    Weight,
)

_CHARACTER = 0.62
"""Width of a digit ÷ font size, in a sans-serif face."""
_BOLD = 0.64
"""Average width of a bold letter ÷ font size."""
_LEAST_CELL, _LEAST_TEXT = 7.0, 6.5
"""Least width of a cell, and least font size that is drawn, in pixels."""
_LEAST_TITLE = 300.0
"""Width in pixels that a heading may take above narrower drawings."""
_GAP = 28.0
"""Pixels between drawings."""
_HEAD = 20.0
"""Height in pixels of a one-line heading."""


def draw(grid: Grid, room: Room) -> Drawing:
    """Draw a grid as large as its text needs, up to the room given; rows and columns left out are named."""
    rows, columns = min(grid.rows, room.rows), min(grid.columns, room.columns)
    contents = [[grid.content(row, column) for column in range(columns)] for row in range(rows)]
    longest = max((len(line) for row in contents for one in row for line in one.words), default=0)
    lines = max((len(one.words) for row in contents for one in row), default=0)
    left = max(room.left, _left_edge(grid, rows))
    wanted = max(16.0, longest * TEXT * _CHARACTER + 6)
    width = max(_LEAST_CELL, min(wanted, (room.width - left - 2) / columns))
    # Font size at which the longest line fits a cell; below the least size text is left out.
    text = min(TEXT, (width - 3) / max(1, longest) / _CHARACTER)
    text = 0.0 if text < _LEAST_TEXT else text
    height = max(lines * (text + 3) + 4, 16.0) if text else max(width, 9.0)
    height = max(height, room.cell_height)
    title, head = heading(grid.title, room.width)
    top = head + (16.0 if grid.headings else 2.0) + (14.0 if grid.names[1] else 0.0)
    cells = tuple(
        Cell(
            x=left + column * width, y=top + row * height, width=width, height=height,
            content=contents[row][column], text_size=text,
        )
        for row in range(rows)
        for column in range(columns)
    )  # fmt: skip
    frames = tuple(
        Cell(
            x=left + at[1] * width, y=top + at[0] * height, width=at[3] * width, height=at[2] * height,
            content=Content(color=None, weight=at[4]), text_size=0.0,
        )
        for at in grid.frames
        if at[0] + at[2] <= rows and at[1] + at[3] <= columns
    )  # fmt: skip
    right, bottom = left + columns * width, top + rows * height
    cut = _cut(grid, rows, columns)
    words = title + _axes(grid, (left, top), (width, height), (rows, columns))
    if not text:
        words += _of_runs(contents, (left, top), (width, height))
    if cut:
        words.append(TextLine(x=left, y=bottom + 11, text=cut))
    needed = [right + 1, min(_widest(title, _BOLD), room.width), left + len(cut) * TEXT * _CHARACTER * 0.9]
    return Drawing(
        width=max(needed),
        height=bottom + (22 if cut else 2),
        title=grid.title,
        description=cut,
        cells=(*sorted(cells, key=lambda one: one.content.weight is not Weight.PLAIN), *frames),
        words=tuple(words),
        strokes=_breaks(grid, (left, top), (width, height), (rows, columns)),
    )


def _widest(words: Sequence[TextLine], character: float) -> float:
    return max((len(one.text) * one.size * character for one in words), default=0.0)


def stacked(drawings: Sequence[Drawing], *, title: str, description: str) -> Drawing:
    """Join drawings one below the other."""
    placed, y = [], 0.0
    for one in drawings:
        placed.append(one.moved(0.0, y))
        y += one.height + _GAP / 2
    return _joined(placed, max(one.width for one in drawings), y - _GAP / 2, title, description)


def beside(drawings: Sequence[Drawing], *, title: str, description: str) -> Drawing:
    """Join drawings side by side."""
    placed, x = [], 0.0
    for one in drawings:
        placed.append(one.moved(x, 0.0))
        x += one.width + _GAP
    return _joined(placed, x - _GAP, max(one.height for one in drawings), title, description)


def heading(text: str, width: float) -> tuple[list[TextLine], float]:
    """Return a title, wrapped to the width, and the height that it takes."""
    size = TEXT + 2
    lines = _broken(text, int(width / (size * _BOLD)))
    words = [
        TextLine(x=0.0, y=_HEAD / 2 + row * (size + 4), text=line, size=size, bold=True)
        for row, line in enumerate(lines)
    ]
    return words, _HEAD + (len(lines) - 1) * (size + 4)


def titled(title: str, parts: Sequence[Drawing], description: str) -> Drawing:
    """Join drawings one below the other under one heading."""
    room = max(_LEAST_TITLE, *(one.width for one in parts))
    words, height = heading(title, room)
    width = _widest(words, _BOLD)
    over = Drawing(width=width, height=height - 4, title="", description="", words=tuple(words))
    return stacked([over, *parts], title=title, description=description)


def notes(lines: Sequence[str], *, width: float = 800.0) -> Drawing:
    """Return sentences as a drawing, wrapped to the width."""
    room = int(width / (TEXT * 0.54))
    broken = [part for line in lines for part in _broken(line, room)]
    words = tuple(TextLine(x=0.0, y=9 + 16 * row, text=line) for row, line in enumerate(broken))
    longest = max((len(line) for line in broken), default=0)
    return Drawing(
        width=min(width, longest * TEXT * 0.56),
        height=16.0 * len(broken) + 4,
        title="",
        description="",
        words=words,
    )


def legend(entries: Sequence[tuple[int, str]], width: float) -> Drawing:
    """Return a legend of fills, in as many rows as the width needs."""
    cells, words = [], []
    each = 16 + max(len(text) for _, text in entries) * TEXT * _CHARACTER + 8
    a_row = max(1, int(width / each))
    for number, (color, text) in enumerate(entries):
        x, y = number % a_row * each, number // a_row * 18.0
        content = Content(color=color)
        cells.append(Cell(x=x, y=y + 3, width=12, height=12, content=content, text_size=0))
        words.append(TextLine(x=x + 16, y=y + 9, text=text))
    return Drawing(
        width=min(a_row, len(entries)) * each,
        height=18.0 * -(-len(entries) // a_row),
        title="",
        description="",
        cells=tuple(cells),
        words=tuple(words),
    )


def _joined(placed: Sequence[Drawing], width: float, height: float, title: str, description: str) -> Drawing:
    return Drawing(
        width=width,
        height=height,
        title=title,
        description=description,
        cells=tuple(cell for one in placed for cell in one.cells),
        words=tuple(word for one in placed for word in one.words),
        strokes=tuple(stroke for one in placed for stroke in one.strokes),
    )


def _left_edge(grid: Grid, rows: int) -> float:
    named = 16.0 if grid.names[0] else 0.0
    return named + (len(str(rows - 1)) * TEXT * _CHARACTER + 7 if grid.headings else 1.0)


def _axes(
    grid: Grid, corner: tuple[float, float], cell: tuple[float, float], drawn: tuple[int, int]
) -> list[TextLine]:
    (left, top), (width, height), (rows, columns) = corner, cell, drawn
    words = []
    if grid.names[1]:
        words.append(TextLine(x=left + columns * width / 2, y=top - 23, text=grid.names[1], anchor="middle"))
    if grid.names[0]:
        words.append(TextLine(x=2, y=top + rows * height / 2, text=grid.names[0]))
    if not grid.headings:
        return words
    step = _step(len(str(columns - 1)) * TEXT * _CHARACTER + 5, width)
    words += [
        TextLine(x=left + (column + 0.5) * width, y=top - 8, text=str(column), anchor="middle", size=TEXT - 1)
        for column in range(0, columns, step)
    ]
    step = _step(TEXT + 2, height)
    words += [
        TextLine(x=left - 5, y=top + (row + 0.5) * height, text=str(row), anchor="end", size=TEXT - 1)
        for row in range(0, rows, step)
    ]
    return words


def _of_runs(
    contents: Sequence[Sequence[Content]], corner: tuple[float, float], cell: tuple[float, float]
) -> list[TextLine]:
    """Label runs of equal cells where cells are too small for text: the first word of each run that fits."""
    words = []
    for row, line in enumerate(contents):
        start = 0
        for column in range(1, len(line) + 1):
            if column < len(line) and line[column].words[:1] == line[start].words[:1]:
                continue
            said = line[start].words[0] if line[start].words else ""
            size = min(
                TEXT - 1, cell[1] - 1, ((column - start) * cell[0] - 3) / max(1, len(said)) / _CHARACTER
            )
            if said and size >= _LEAST_TEXT:
                x = corner[0] + (start + column) / 2 * cell[0]
                y = corner[1] + (row + 0.5) * cell[1]
                words.append(TextLine(x=x, y=y, text=said, size=size, anchor="middle"))
            start = column
    return words


def _step(needed: float, cell: float) -> int:
    step = 1
    while step * cell < needed:
        step *= 2
    return step


def _breaks(
    grid: Grid, corner: tuple[float, float], cell: tuple[float, float], drawn: tuple[int, int]
) -> tuple[Stroke, ...]:
    (left, top), (width, height), (rows, columns) = corner, cell, drawn
    right, bottom = left + columns * width, top + rows * height
    down = {at for every in grid.row_breaks for at in range(every, rows, every)}
    across = {at for every in grid.column_breaks for at in range(every, columns, every)}
    return (
        *(Stroke(x1=left, y1=top + at * height, x2=right, y2=top + at * height) for at in sorted(down)),
        *(Stroke(x1=left + at * width, y1=top, x2=left + at * width, y2=bottom) for at in sorted(across)),
    )


def _cut(grid: Grid, rows: int, columns: int) -> str:
    said = []
    if rows < grid.rows:
        said.append(f"rows {rows:,}–{grid.rows - 1:,}" if grid.rows - rows > 1 else f"row {rows:,}")
    if columns < grid.columns:
        said.append(f"columns {columns:,}–{grid.columns - 1:,}")
    return f"Not drawn: {' and '.join(said)}." if said else ""


def _broken(text: str, room: int) -> list[str]:
    lines: list[str] = [""]
    whole = (word[at : at + room] for word in text.split(" ") for at in range(0, max(1, len(word)), room))
    for word in whole:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines

"""Pictures of CuTe layouts: indices, swizzles, banks, thread–value partitions, MMAs, copies and accesses."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.analysis.layout.banks import (
    BANK_BYTES,
    BANKS,
    Place,
    SharedTensor,
    WarpAccess,
    shared_tensor,
    tile_access,
)
from cutegen_nb.analysis.layout.describe import (
    ASYNC_NOTE,
    access_words,
    along_words,
    is_async,
    passes,
    sharing_words,
)
from cutegen_nb.analysis.layout.layout import Layout, flat, parse_layout
from cutegen_nb.analysis.layout.partition import Partition, partition
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord
from cutegen_nb.report.layout.drawing import PALETTE, Content, Drawing, Grid, Room, Weight
from cutegen_nb.report.layout.placing import beside, draw, legend, notes, stacked, titled

_COLORS = len(PALETTE)
_BANKS_A_COLOR = BANKS // _COLORS
"""Neighbouring banks that share a colour: 32 banks, 8 colours."""
_ROOM = Room()
_MOST_COLUMNS = 4096
"""Most columns of a tensor that are searched for the elements a lane reaches."""
_LEGEND_WIDTH = 360.0
"""Most pixels of a legend in width: it wraps, so that a narrow panel shows it whole."""
_HALF_MMA = 16
"""Most columns of A that are drawn, and half the most of C."""
_MMA_WIDER = 1.18
"""Width of an MMA's picture ÷ the room given, so that thread and value fit a cell. A page scrolls or shrinks
it by that factor."""
_BESIDE, _EDGE = 28.0, 40.0
"""Pixels between drawings side by side, and for a grid's row numbers."""
_THREADS = "T is the thread and V which of its values; an element that several threads hold names the first."
"""Explanation of the labels T and V below a partition."""
_Frame = tuple[int, int, int, int, Weight]
"""Rectangle to frame: row, column, rows, columns, frame style."""
_NONE = Content(color=None, weight=Weight.EMPTY)


def picture(record: LayoutRecord, room: Room = _ROOM) -> Drawing:
    """Draw one layout of a kernel. Raises UsageError if it cannot be drawn."""
    name = record.name or record.kind.value
    match record.kind:
        case LayoutKind.SHARED:
            return banks(shared_tensor(record), f"{name}: {_type(record)}", room)
        case LayoutKind.ACCESS:
            return access_picture(record, room)
        case LayoutKind.MMA:
            return mma(record, room)
        case LayoutKind.COPY:
            return copy(record, room)
        case LayoutKind.LAYOUT:
            return indices(parse_layout(record.text), name, room)


def indices(layout: Layout, name: str = "", room: Room = _ROOM) -> Drawing:
    """Draw the index at each coordinate, coloured by index modulo eight.

    A swizzled layout is drawn without and with its swizzle, side by side.
    """
    title = f"{name}: {layout}" if name else str(layout)
    if layout.swizzle is None:
        drawn = draw(_index_grid(layout, title), room)
        return stacked(
            [drawn], title=title, description=f"Index at each coordinate. {drawn.description}".strip()
        )
    half = Room(width=(room.width - 28) / 2, rows=room.rows, columns=room.columns)
    both = beside(
        [
            draw(_index_grid(layout.plain(), "without the swizzle"), half),
            draw(_index_grid(layout, "with it"), half),
        ],
        title=title,
        description="",
    )
    said = (
        f"Index at each coordinate before and after {layout.swizzle}; a colour is an index modulo {_COLORS}."
    )
    return titled(title, [both], said)


def banks(tensor: SharedTensor, title: str, room: Room = _ROOM) -> Drawing:
    """Draw the bank of each element, with the cost of a warp's access along each mode."""
    grid = draw(_bank_grid(tensor, title), room)
    said = along_words(tensor)
    parts = [grid, _bank_legend(room.width), notes(said, width=room.width)]
    return stacked(parts, title=title, description=" ".join([*said, grid.description]).strip())


def access_picture(record: LayoutRecord, room: Room = _ROOM) -> Drawing:
    """Draw the elements that a warp's lanes reach in shared memory.

    Below them stand the words that each pass asks of each bank.
    """
    tensor, cost = shared_tensor(record), tile_access(record)
    warp, number = cost.worst_number
    shown = cost.worst
    verb = "reads" if record.views[0].role == "source" else "writes"
    title = f"{record.name or 'shared memory'}: warp {warp} {verb} {_type(record)}"
    frames = _frames(tensor, shown)
    grid = draw(_bank_grid(tensor, title, frames), _around(frames, room))
    framed = (
        f"Framed: what the lanes of warp {warp} reach in its access {number + 1}, {shown.lane_bytes} bytes "
        f"each: {passes(shown.wavefronts)}, {shown.least} at least."
    )
    said = [framed, access_words(cost), *([ASYNC_NOTE] if is_async(record) else [])]
    by_pass = draw(_pass_grid(tensor, shown), Room(width=room.width, rows=8, columns=BANKS))
    parts = [
        grid,
        _bank_legend(room.width),
        by_pass,
        notes([*said, f"Atom: {record.atom}."], width=room.width),
    ]
    return stacked(parts, title=title, description=" ".join([*said, grid.description]).strip())


def mma(record: LayoutRecord, room: Room = _ROOM) -> Drawing:
    """Draw the threads that hold A (left), B (above) and C of a tiled MMA."""
    title = _atom_title(record)
    parts = {view.role: partition(view) for view in record.views}
    if set(parts) != {"A", "B", "C"}:
        return partitions(record, title, room)
    columns = (min(parts["A"].columns, _HALF_MMA), min(parts["C"].columns, 2 * _HALF_MMA))
    width = room.width * _MMA_WIDER
    # Cells of A and C get the same width: the room without gaps, shared among both grids' columns.
    cell = (width - _BESIDE - 2 * _EDGE) / sum(columns)
    left = Room(width=cell * columns[0] + _EDGE, rows=room.rows, columns=columns[0])
    a = draw(_tv_grid(parts["A"], "A", ("m", "k")), left)
    right = Room(width=width - _BESIDE - a.width, rows=room.rows, columns=columns[1], left=_EDGE)
    level = replace(right, cell_height=a.cells[0].height)
    c = draw(_tv_grid(parts["C"], "C", ("m", "n")), level)
    if c.cells[0].height > a.cells[0].height:
        a = draw(_tv_grid(parts["A"], "A", ("m", "k")), replace(left, cell_height=c.cells[0].height))
    b = draw(_tv_grid(parts["B"], "B", ("k", "n"), turned=True), right)
    said = [f"{one}: {sharing_words(part)}." for one, part in parts.items()]
    corner = Drawing(width=a.width, height=b.height, title="", description="")
    both = stacked(
        [beside([corner, b], title="", description=""), beside([a, c], title="", description="")],
        title="", description="",
    )  # fmt: skip
    cut = [
        f"{one}: {item.description}" for one, item in zip("ABC", (a, b, c), strict=True) if item.description
    ]
    return titled(title, [both, notes([*said, _THREADS], width=room.width)], " ".join([*said, *cut]))


def copy(record: LayoutRecord, room: Room = _ROOM) -> Drawing:
    """Draw the threads of a tiled copy at its source and destination; once where both are the same."""
    return partitions(record, _atom_title(record), room)


def partitions(record: LayoutRecord, title: str, room: Room = _ROOM) -> Drawing:
    """Draw thread–value layouts over their tile, side by side."""
    views = record.views
    if len({(view.text, view.tiler) for view in views}) == 1 and len(views) > 1:
        views = views[:1]
        roles = ["source and destination"]
    else:
        roles = [view.role for view in views]
    found = [partition(view) for view in views]
    each = Room(
        width=(room.width - 28 * (len(views) - 1)) / max(1, len(views)), rows=room.rows, columns=room.columns
    )
    drawn = [
        draw(_tv_grid(part, f"{role or 'tile'}, {part.rows} × {part.columns}", ("", "")), each)
        for part, role in zip(found, roles, strict=True)
    ]
    said = [f"{role or 'tile'}: {sharing_words(part)}." for part, role in zip(found, roles, strict=True)]
    cut = [one.description for one in drawn if one.description]
    below = notes([*said, _THREADS], width=room.width)
    return titled(title, [beside(drawn, title=title, description=""), below], " ".join([*said, *cut]))


def _atom_title(record: LayoutRecord) -> str:
    name = record.name or record.kind.value
    return f"{name}: {record.atom}" if record.atom else name


def _type(record: LayoutRecord) -> str:
    swizzle = f"{record.pointer_swizzle} on bytes, " if record.pointer_swizzle else ""
    return f"{record.element}, {swizzle}{record.text}" if record.element else record.text


def _index_grid(layout: Layout, title: str) -> Grid:
    rows = layout.mode(0).size

    def content(row: int, column: int) -> Content:
        index = layout(row + column * rows)
        return Content(color=index % _COLORS, words=(str(index),))

    return Grid(
        title=title, rows=rows, columns=layout.size // rows, content=content,
        row_breaks=_inner_breaks(layout, 0), column_breaks=_inner_breaks(layout, 1),
    )  # fmt: skip


def _inner_breaks(layout: Layout, mode: int) -> tuple[int, ...]:
    """Return the period at which the first inner mode of an axis starts again."""
    if layout.rank <= mode or layout.depth < 1:
        return ()
    shape = layout.mode(mode).shape
    extents = flat(shape) if not isinstance(shape, int) else (shape,)
    if mode == 1 and layout.rank > 2:  # noqa: PLR2004 - further modes go to the right as well
        return (layout.mode(1).size,)
    return (extents[0],) if len(extents) > 1 and extents[0] > 1 else ()


def _bank_grid(tensor: SharedTensor, title: str, frames: tuple[_Frame, ...] = ()) -> Grid:
    def content(row: int, column: int) -> Content:
        bank = tensor.bank((row, column))
        return Content(color=bank // _BANKS_A_COLOR, words=(str(bank),))

    return Grid(
        title=title, rows=tensor.rows, columns=tensor.columns, content=content,
        row_breaks=_inner_breaks(tensor.layout, 0), column_breaks=_inner_breaks(tensor.layout, 1),
        frames=frames,
    )  # fmt: skip


def _bank_legend(width: float) -> Drawing:
    """Return the legend of the banks, in a block that a narrow panel shows whole."""
    entries = [
        (color, f"banks {color * _BANKS_A_COLOR}–{(color + 1) * _BANKS_A_COLOR - 1}")
        for color in range(_COLORS)
    ]
    return legend(entries, min(width, _LEGEND_WIDTH))


def _frames(tensor: SharedTensor, shown: WarpAccess) -> tuple[_Frame, ...]:
    """Return the elements each lane reaches as rectangles, those in conflicting banks last.

    A lane whose elements form a rectangle gets one frame, otherwise one frame an element.
    """
    elements = max(1, shown.lane_bytes * 8 // tensor.element_bits)
    by_address = {
        tensor.address((row, column)): (row, column)
        for row in range(tensor.rows)
        for column in range(min(tensor.columns, _MOST_COLUMNS))
    }
    step = max(1, tensor.element_bits // 8)
    found: list[_Frame] = []
    for place in shown.places:
        weight = Weight.WRONG if place in shown.worst else Weight.CHOSEN
        start = tensor.address(place)
        reached = [by_address[at] for at in range(start, start + elements * step, step) if at in by_address]
        found += [(*box, weight) for box in _boxes(reached)]
    return tuple(sorted(dict.fromkeys(found), key=lambda item: item[4] is Weight.WRONG))


def _boxes(places: Sequence[Place]) -> list[tuple[int, int, int, int]]:
    rows, columns = [row for row, _ in places], [column for _, column in places]
    height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
    if height * width == len(set(places)):
        return [(min(rows), min(columns), height, width)]
    return [(row, column, 1, 1) for row, column in places]


def _around(frames: Sequence[_Frame], room: Room) -> Room:
    """Return room for the framed cells only, at least sixteen rows and columns."""
    rows = max((row + height for row, _, height, _, _ in frames), default=0)
    columns = max((column + width for _, column, _, width, _ in frames), default=0)
    return Room(
        width=room.width, rows=min(room.rows, max(16, rows)), columns=min(room.columns, max(16, columns))
    )


def _pass_grid(tensor: SharedTensor, shown: WarpAccess) -> Grid:
    """Return a grid of the words that each group of lanes asks of each bank."""
    # Lanes served together, as in `analysis.layout.banks.access`: 128 bytes a pass.
    together = max(1, min(len(shown.places), BANKS * BANK_BYTES // shown.lane_bytes))
    groups = [shown.places[at : at + together] for at in range(0, len(shown.places), together)]
    counts = [_words_of_banks(tensor, group, shown.lane_bytes) for group in groups]

    def content(row: int, column: int) -> Content:
        words = counts[row][column]
        if not words:
            return _NONE
        weight = Weight.WRONG if words > 1 else Weight.PLAIN
        return Content(color=column // _BANKS_A_COLOR, words=(str(words),), weight=weight)

    lanes = f"each row {together} lanes" if together < len(shown.places) else "all lanes"
    return Grid(
        title=f"Words asked of each bank, {lanes} at once; more than 1 is a conflict",
        rows=len(groups), columns=BANKS, content=content, names=("", "bank"),
    )  # fmt: skip


def _words_of_banks(tensor: SharedTensor, places: Sequence[Place], lane_bytes: int) -> list[int]:
    words = {
        word
        for place in places
        for start in [tensor.address(place) // BANK_BYTES]
        for word in range(start, start + max(1, lane_bytes // BANK_BYTES))
    }
    counts = [0] * BANKS
    for word in words:
        counts[word % BANKS] += 1
    return counts


def _tv_grid(part: Partition, title: str, names: tuple[str, str], *, turned: bool = False) -> Grid:
    holders = part.holders()

    def content(row: int, column: int) -> Content:
        held = holders.get((column, row) if turned else (row, column))
        if not held:
            return _NONE
        thread, value = held[0]
        return Content(color=thread % _COLORS, words=(f"T{thread}", f"V{value}"))

    rows, columns = (part.columns, part.rows) if turned else (part.rows, part.columns)
    return Grid(title=title, rows=rows, columns=columns, content=content, names=names)


@functools.lru_cache(maxsize=64)
def checked(record: LayoutRecord, room: Room = _ROOM) -> Drawing | None:
    """Draw a layout, or return None if it cannot be drawn, so that no report fails because of a drawing.

    Results are cached: most rounds keep most layouts of their parent.
    """
    try:
        return picture(record, room)
    except UsageError:
        return None

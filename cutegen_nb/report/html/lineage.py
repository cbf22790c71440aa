"""HTML drawing of a session's lineage: a row for each revision, a lane for each line of descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from markupsafe import Markup

from cutegen_nb.analysis.history.lineage_graph import Lineage, Revision, lineage
from cutegen_nb.analysis.history.summary import who
from cutegen_nb.core.session import Session
from cutegen_nb.report.layout.svg import FACE
from cutegen_nb.report.markup import Style, fill, pixels
from cutegen_nb.report.terminal.lineage import mark, missing

_WIDTH, _ROW, _TOP, _LEFT = 900, 26, 40, 16
_LANES_WIDTH = 130
"""Width of all lanes in pixels; more lanes stand closer together."""
_LANE = 20
"""Most pixels between lanes."""
_MOST = 200
"""Most rows drawn. Of a longer session only approved revisions, parents and the newest are drawn."""
_COLUMNS = (
    ("revision", 0, 11), ("strategy", 82, 26), ("verdict", 270, 22), ("against best", 430, 13),
    ("author", 535, 18), ("stage", 672, 10),
)  # fmt: skip
"""Columns of text: title, offset in pixels, most characters."""
_GOOD, _BAD, _LINE = "#2f86c1", "#d5691e", "#8a929b"
"""Colours of marks and lines: blue and vermilion of a lightness that contrasts with white and near black."""


def lineage_section(session: Session) -> Markup:
    """Return heading, drawing, and a note on what is left out; empty before the first revision."""
    graph = lineage(session)
    if not graph.revisions:
        return Markup()
    kept = _kept(graph)
    return fill(
        "lineage",
        Style.PAGE,
        kept=len(kept.revisions),
        total=len(graph.revisions),
        missing=missing(graph),
        drawing=_svg(session.name, kept),
    )


def lineage_svg(session: Session) -> Markup:
    """Return only the drawing, as an ``<svg>`` for an HTML page, whose text colour it takes."""
    return _svg(session.name, _kept(lineage(session)))


def _kept(graph: Lineage) -> Lineage:
    if len(graph.revisions) <= _MOST:
        return graph
    built_on = {label for one in graph.revisions for label in one.parents}
    newest = {one.label for one in graph.revisions[-_MOST // 4 :]}
    kept = [one for one in graph.revisions if one.approved or one.label in built_on | newest]
    kept = kept[-_MOST:]
    known = {one.label for one in kept}
    return Lineage(
        revisions=tuple(_without(one, known) for one in kept),
        without=graph.without,
    )


def _without(one: Revision, known: set[str]) -> Revision:
    return replace(one, parents=tuple(label for label in one.parents if label in known))


def lanes(graph: Lineage) -> dict[str, int]:
    """Return a lane for each revision: an heir stays in its parent's lane, others take the first free one.

    A line of descent takes its lane from its start (below its parent, or its own row) to its last heir. A
    lane is free if no other line in it overlaps these rows.
    """
    heirs = graph.heirs()
    rows = {one.label: row for row, one in enumerate(graph.revisions)}
    found: dict[str, int] = {}
    taken: list[list[tuple[int, int]]] = []
    for one in graph.revisions:
        if one.label in found:
            continue
        line = [one.label]
        while line[-1] in heirs:
            line.append(heirs[line[-1]])
        start = rows[one.parents[0]] + 1 if _turns_early(one, heirs, rows) else rows[one.label]
        stop = rows[line[-1]]
        lane = next(
            (
                index
                for index, spans in enumerate(taken)
                if all(stop < first or last < start for first, last in spans)
            ),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, stop))
        found |= dict.fromkeys(line, lane)
    return found


def _turns_early(one: Revision, heirs: dict[str, str], rows: dict[str, int]) -> bool:
    """Return whether the line to a revision leaves its parent's lane directly below the parent.

    That is the case where the parent's heir lies above the revision, so that the parent's lane is not free
    down to the revision's row.
    """
    return bool(one.parents) and rows[heirs[one.parents[0]]] < rows[one.label]


def _svg(name: str, graph: Lineage) -> Markup:
    lane_of = lanes(graph)
    step = min(_LANE, _LANES_WIDTH / max(1, *lane_of.values())) if lane_of else _LANE
    places = {
        one.label: (_LEFT + step * lane_of[one.label], _TOP + _ROW * (row + 0.5))
        for row, one in enumerate(graph.revisions)
    }
    return fill(
        "lineage_svg",
        Style.PAGE,
        title=f"Lineage of {name}: {len(graph.revisions)} revisions",
        face=FACE,
        size=(_WIDTH, _TOP + _ROW * len(graph.revisions) + 8),
        colors={"good": _GOOD, "bad": _BAD, "line": _LINE},
        words_at=_LEFT + step * max(lane_of.values(), default=0) + 22,
        left=_LEFT,
        columns=_COLUMNS,
        lines=_lines(graph, places),
        rows=[
            (one, places[one.label], mark(one), list(zip(_texts(one), _COLUMNS, strict=True)))
            for one in graph.revisions
        ],
    )


def _lines(graph: Lineage, places: dict[str, tuple[float, float]]) -> Iterator[tuple[str, bool]]:
    """Iterate over the lines between revisions: path, and True for the first parent's."""
    heirs = graph.heirs()
    rows = {one.label: row for row, one in enumerate(graph.revisions)}
    for one in graph.revisions:
        early = _turns_early(one, heirs, rows)
        for label in one.parents[:1]:
            yield _path(places[label], places[one.label], early=early), True
        for label in one.parents[1:]:
            yield _bow(places[label], places[one.label]), False


def _path(start: tuple[float, float], end: tuple[float, float], *, early: bool) -> str:
    """Return a path down the parent's lane and then the child's, with a bend of one row between."""
    (x, y), (end_x, end_y) = start, end
    if x == end_x:
        return f"M{_at(x, y)}V{pixels(end_y)}"
    top = y if early else end_y - _ROW
    bend = f"C{_at(x, top + _ROW)} {_at(end_x, top)} {_at(end_x, top + _ROW)}"
    return f"M{_at(x, y)}V{pixels(top)}{bend}V{pixels(end_y)}"


def _bow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return the line from a further parent: outside the lanes, so that no lane hides it."""
    (x, y), (end_x, end_y) = start, end
    return f"M{_at(x, y)}Q{_at(max(x, end_x) + _LANE, (y + end_y) / 2)} {_at(end_x, end_y)}"


def _at(x: float, y: float) -> str:
    return f"{pixels(x)} {pixels(y)}"


def _texts(one: Revision) -> tuple[tuple[str, bool], ...]:
    """Return the text of each column, and True where it is bold."""
    strategy = one.strategy or ("" if one.parents else "first kernel")
    return (
        (one.label, one.best),
        (strategy, False),
        (one.verdict, False),
        (one.relation_words, False),
        (who(one.author), one.by_person),
        (one.stage, False),
    )

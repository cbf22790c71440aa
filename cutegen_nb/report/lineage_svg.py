"""The lineage of a session as a drawing: a row a revision, time going down, a lane a line of descent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cutegen_nb.analysis.lineage_graph import Lineage, Revision, lineage
from cutegen_nb.analysis.summary import who
from cutegen_nb.core.session import Session
from cutegen_nb.report.layout_svg import FACE
from cutegen_nb.report.lineage_text import mark, missing
from cutegen_nb.report.markup import safe

_WIDTH, _ROW, _TOP, _LEFT = 900, 26, 40, 16
_LANES_WIDTH = 130
"""Room for all lanes: more of them stand closer together."""
_LANE = 20
_MOST = 200
"""Rows drawn; of a longer session only what was approved or built upon, and its newest."""
_COLUMNS = (("revision", 0, 11), ("strategy", 82, 26), ("verdict", 270, 22), ("against best", 430, 13))
_MORE = (("author", 535, 18), ("stage", 672, 10))
_GOOD, _BAD, _LINE = "#2f86c1", "#d5691e", "#8a929b"
"""Blue and vermillion of a lightness that stands out from white and from near black."""


def lineage_section(session: Session) -> str:
    """The part of the report: heading, drawing, and what it leaves out. Empty before the first revision."""
    graph = lineage(session)
    if not graph.revisions:
        return ""
    kept = _kept(graph)
    fewer = (
        f"Drawn are {len(kept.revisions)} of {len(graph.revisions)} revisions: those approved or built upon, "
        "and the newest."
        if len(kept.revisions) < len(graph.revisions)
        else ""
    )
    said = " ".join(part for part in (fewer, missing(graph)) if part)
    words = f'<p class="muted">{safe(said)}</p>' if said else ""
    return f'<h2>Lineage</h2><div class="wide">{_svg(session.name, kept)}</div>{words}'


def lineage_svg(session: Session) -> str:
    """The drawing alone, as an ``<svg>`` of an HTML page, whose ink it takes."""
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
    """A lane for each revision: an heir stays in its parent's, others take the first that is free.

    A lane is free where no line of descent runs from the row of its parent to the row of its last heir.
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
    """Whether its line leaves that of its parent at once: where the parent's does not run down beside it."""
    return bool(one.parents) and rows[heirs[one.parents[0]]] < rows[one.label]


def _svg(name: str, graph: Lineage) -> str:
    lane_of = lanes(graph)
    step = min(_LANE, _LANES_WIDTH / max(1, *lane_of.values())) if lane_of else _LANE
    places = {
        one.label: (_LEFT + step * lane_of[one.label], _TOP + _ROW * (row + 0.5))
        for row, one in enumerate(graph.revisions)
    }
    words_at = _LEFT + step * max(lane_of.values(), default=0) + 22
    height = _TOP + _ROW * len(graph.revisions) + 8
    title = f"Lineage of {name}: {len(graph.revisions)} revisions"
    lines = "".join(_lines(graph, places))
    rows = "".join(_row(one, *places[one.label], words_at) for one in graph.revisions)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}" role="img" aria-label="{safe(title)}" font-family="{FACE}" font-size="13" '
        f'fill="currentColor" style="max-width:100%;min-width:760px;height:auto">'
        f"<title>{safe(title)}</title>"
        f"{_heading(words_at)}{lines}{rows}</svg>"
    )


def _heading(words_at: float) -> str:
    cells = "".join(
        f'<text x="{_n(words_at + at)}" y="22" font-weight="600">{name}</text>'
        for name, at, _ in (*_COLUMNS, *_MORE)
    )
    return f'{cells}<path d="M{_LEFT - 8} 32H{_WIDTH - 8}" stroke="{_LINE}" stroke-width="1"/>'


def _lines(graph: Lineage, places: dict[str, tuple[float, float]]) -> Iterator[str]:
    heirs = graph.heirs()
    rows = {one.label: row for row, one in enumerate(graph.revisions)}
    for one in graph.revisions:
        early = _turns_early(one, heirs, rows)
        for index, label in enumerate(one.parents):
            path = _path(places[label], places[one.label], early=early)
            look = f'stroke="{_LINE}" stroke-width="1.8"'
            if index:
                path = _bow(places[label], places[one.label])
                look = f'{look} stroke-dasharray="4 3"'
            yield f'<path d="{path}" fill="none" {look}/>'


def _path(start: tuple[float, float], end: tuple[float, float], *, early: bool) -> str:
    """Down the lane of the parent and then of the child, with a bend of one row between them."""
    (x, y), (end_x, end_y) = start, end
    if x == end_x:
        return f"M{_n(x)} {_n(y)}V{_n(end_y)}"
    top = y if early else end_y - _ROW
    bend = f"C{_n(x)} {_n(top + _ROW)} {_n(end_x)} {_n(top)} {_n(end_x)} {_n(top + _ROW)}"
    return f"M{_n(x)} {_n(y)}V{_n(top)}{bend}V{_n(end_y)}"


def _bow(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Another parent's line: outside the lanes, so that it hides in none."""
    (x, y), (end_x, end_y) = start, end
    return f"M{_n(x)} {_n(y)}Q{_n(max(x, end_x) + _LANE)} {_n((y + end_y) / 2)} {_n(end_x)} {_n(end_y)}"


def _row(one: Revision, x: float, y: float, words_at: float) -> str:
    strategy = one.strategy or ("" if one.parents else "first kernel")
    texts = (one.label, strategy, one.verdict, one.relation, who(one.author), one.stage)
    cells = "".join(
        f'<text x="{_n(words_at + at)}" y="{_n(y + 4.5)}"{_weight(one, name)}>{safe(_cut(text, most))}</text>'
        for text, (name, at, most) in zip(texts, (*_COLUMNS, *_MORE), strict=True)
        if text
    )
    made = f" from {' and '.join(one.parents)}" if one.parents else ""
    told = ", ".join(part for part in (one.verdict, one.relation, one.decision) if part)
    title = f"<title>{safe(f'{one.label}{made}, by {who(one.author)}: {told}')}</title>"
    return f"<g>{title}{_mark(one, x, y)}{cells}</g>"


def _weight(one: Revision, column: str) -> str:
    strong = (column == "revision" and one.best) or (column == "author" and one.by_person)
    return ' font-weight="700"' if strong else ""


def _mark(one: Revision, x: float, y: float) -> str:
    """Told apart by form as well as by colour: a star, a disc, a ring, a cross."""
    sign = mark(one)
    if sign == "★":
        return (
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="8.5" fill="{_GOOD}"/>'
            f'<text x="{_n(x)}" y="{_n(y + 4.3)}" font-size="12" text-anchor="middle" fill="#ffffff">★</text>'
        )
    if sign == "●":
        return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="5.5" fill="{_GOOD}"/>'
    if sign == "○":
        return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="5" fill="none" stroke="{_GOOD}" stroke-width="2.2"/>'
    cross = f"M{_n(x - 4.5)} {_n(y - 4.5)}l9 9m0 -9l-9 9"
    return f'<path d="{cross}" fill="none" stroke="{_BAD}" stroke-width="2.4"/>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

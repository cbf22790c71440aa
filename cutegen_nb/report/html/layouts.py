"""HTML view of a round's layouts: changed ones before and after, the rest in words."""

from __future__ import annotations

import functools

from markupsafe import Markup

from cutegen_nb.analysis.layout.changes import LayoutChange, layout_changes
from cutegen_nb.analysis.layout.describe import layout_words
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.report.layout.drawing import Drawing, Room
from cutegen_nb.report.layout.pictures import checked
from cutegen_nb.report.layout.placing import beside, titled
from cutegen_nb.report.layout.svg import svg
from cutegen_nb.report.markup import Style, fill

_MOST = 6
"""Most drawings of a round; further layouts are described in words."""
_WHOLE = Room(rows=16)
"""Room for a drawing on its own."""
_HALF = Room(width=386.0, rows=16, columns=32)
"""Room for each of two drawings side by side."""


def render(
    evaluation: Evaluation,
    *,
    parent: Evaluation | None = None,
    names: tuple[str, str] = ("parent", "candidate"),
    style: Style = Style.RECORD,
    drawn: bool = False,
) -> Markup:
    """Return the layouts of an evaluation as HTML; empty where none is known.

    `drawn` includes SVG; without it there is only text, which every sanitiser keeps. `names` are those of the
    parent and the candidate.
    """
    before = parent.layouts if parent else ()
    return layouts(evaluation.layouts, before=before, names=names, style=style, drawn=drawn)


@functools.lru_cache(maxsize=32)
def layouts(
    records: tuple[LayoutRecord, ...],
    *,
    before: tuple[LayoutRecord, ...] = (),
    names: tuple[str, str],
    style: Style = Style.RECORD,
    drawn: bool = False,
) -> Markup:
    """Return layouts as HTML, as :func:`render` does for an evaluation; `before` are the parent's.

    Results are cached: drawings take a third of a second, and a panel requests them at every change.
    """
    if not records:
        return Markup()
    changes = layout_changes(before, records)
    shown = [item for item in changes if item.changed] if before else list(changes)
    same = [item.record for item in changes if item not in shown]
    left = [item for item in shown if item.after is None]
    figures: list[tuple[LayoutChange, str]] = []
    for item in shown:
        if item.after is None:
            continue
        figure = _figure(item, names) if drawn and len(figures) < _MOST else None
        if len(figures) < _MOST and (figure or not drawn):
            figures.append((item, svg(figure) if figure else ""))
        else:
            left.append(item)
    return fill(
        "layouts",
        style,
        names=names,
        has_parent=bool(before),
        shown=shown,
        kept=list(dict.fromkeys(record.name or record.kind.value for record in same)),
        figures=figures,
        left=left,
        words=layout_words,
        text=_text,
    )


def _figure(item: LayoutChange, names: tuple[str, str]) -> Drawing | None:
    """Draw the layout, beside its former version if there is one; None if it cannot be drawn."""
    assert item.after is not None
    if item.before is None:
        return checked(item.after, _WHOLE)
    old, new = checked(item.before, _HALF), checked(item.after, _HALF)
    if old is None or new is None:
        return new
    columns = [titled(name, [one], one.description) for name, one in zip(names, (old, new), strict=True)]
    said = " ".join(f"{name}: {one.description}" for name, one in zip(names, (old, new), strict=True))
    return beside(columns, title=f"{item.record.name} in {names[0]} and {names[1]}", description=said)


def _text(record: LayoutRecord) -> str:
    parts = [record.element, record.pointer_swizzle, record.text, record.atom]
    views = "; ".join(f"{view.role} {view.text} over {view.tiler}" for view in record.views)
    return " ".join(part for part in (*parts, views) if part)

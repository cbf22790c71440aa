"""The layouts of a round: what changed, before and after side by side, and the rest in words."""

from __future__ import annotations

import functools

from cutegen_nb.analysis.layout_changes import LayoutChange, layout_changes
from cutegen_nb.analysis.layout_words import layout_words
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.layout import LayoutRecord
from cutegen_nb.report.layout_drawing import Drawing, Room
from cutegen_nb.report.layout_pictures import checked
from cutegen_nb.report.layout_placing import beside, titled
from cutegen_nb.report.layout_svg import svg
from cutegen_nb.report.markup import Style, folded, look, safe

_MOST = 6
"""Drawings of a round at most: the rest is named."""
_WHOLE = Room(rows=16)
_HALF = Room(width=386.0, rows=16, columns=32)


def render(
    evaluation: Evaluation,
    *,
    parent: Evaluation | None = None,
    names: tuple[str, str] = ("parent", "candidate"),
    style: Style = Style.RECORD,
    drawn: bool = False,
) -> str:
    """The layouts of an evaluation as HTML; empty where none is known.

    `drawn` puts SVG in; without it there are only words, which every sanitiser leaves. `names` are those of
    the parent and of the candidate.
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
) -> str:
    """Layouts as HTML, as :func:`render` gives those of an evaluation; `before` are those of its parent.

    Remembered: drawings take a third of a second, and a panel asks for them whenever anything changes.
    """
    if not records:
        return ""
    changes = layout_changes(before, records)
    shown = [item for item in changes if item.changed] if before else list(changes)
    same = [item for item in changes if item not in shown]
    parts = [_lead(shown, same, names, has_parent=bool(before))]
    left = [item for item in shown if item.after is None]
    for item in shown:
        if item.after is None:
            continue
        part = _presented(item, names, style, drawn=drawn) if len(parts) <= _MOST else ""
        if part:
            parts.append(part)
        else:
            left.append(item)
    if left:
        lines = "".join(f"<li>{_in_words(item, names)}</li>" for item in left)
        parts.append(folded(style, f"{_count(len(left))} more in words", f"<ul>{lines}</ul>"))
    return "".join(parts)


def _lead(
    shown: list[LayoutChange], same: list[LayoutChange], names: tuple[str, str], *, has_parent: bool
) -> str:
    if not has_parent:
        return f"<p>As {safe(names[1])} was compiled, {_count(len(shown))}.</p>"
    if not shown:
        return f"<p>No layout changed from {safe(names[0])} to {safe(names[1])}.</p>"
    kept = ", ".join(dict.fromkeys(item.record.name or item.record.kind.value for item in same))
    rest = f" As before: {safe(kept)}." if kept else ""
    return f"<p>{_count(len(shown))} changed from {safe(names[0])} to {safe(names[1])}.{rest}</p>"


def _count(number: int) -> str:
    return "1 layout" if number == 1 else f"{number} layouts"


def _figure(item: LayoutChange, names: tuple[str, str]) -> Drawing | None:
    """Now, beside what it was; None where it cannot be drawn."""
    assert item.after is not None
    if item.before is None:
        return checked(item.after, _WHOLE)
    old, new = checked(item.before, _HALF), checked(item.after, _HALF)
    if old is None or new is None:
        return new
    columns = [titled(name, [one], one.description) for name, one in zip(names, (old, new), strict=True)]
    said = " ".join(f"{name}: {one.description}" for name, one in zip(names, (old, new), strict=True))
    return beside(columns, title=f"{item.record.name} in {names[0]} and {names[1]}", description=said)


def _presented(item: LayoutChange, names: tuple[str, str], style: Style, *, drawn: bool) -> str:
    """One layout, drawn or in words; empty where it should be drawn and cannot be."""
    if not drawn:
        return f"<p>{_in_words(item, names)}</p>"
    figure = _figure(item, names)
    if figure is None:
        return ""
    record = item.record
    where = f", line {record.line}" if record.line else ""
    what = f"{record.kind.value} {record.name}".strip()
    caption = f"<b>{safe(what)}</b>{where}"
    return (
        f'<figure style="margin:1rem 0;overflow-x:auto">{svg(figure)}'
        f"<figcaption{look(style, 'muted')}>{caption}</figcaption></figure>"
    )


def _in_words(item: LayoutChange, names: tuple[str, str]) -> str:
    record = item.record
    where = f" (line {record.line})" if record.line else ""
    head = f"<b>{safe(record.kind.value)} {safe(record.name)}</b>{where}: "
    if item.after is None:
        return f"{head}gone; <code>{_text(record)}</code> in {safe(names[0])}."
    if item.before is None or not item.changed:
        return f"{head}<code>{_text(record)}</code>. {_said(record)}"
    old, new = (f"<code>{_text(one)}</code>. {_said(one)}" for one in (item.before, record))
    return f"{head}{safe(names[0])}: {old} {safe(names[1])}: {new}"


def _said(record: LayoutRecord) -> str:
    return safe(" ".join(layout_words(record)))


def _text(record: LayoutRecord) -> str:
    parts = [record.element, record.pointer_swizzle, record.text, record.atom]
    views = "; ".join(f"{view.role} {view.text} over {view.tiler}" for view in record.views)
    return safe(" ".join(part for part in (*parts, views) if part))

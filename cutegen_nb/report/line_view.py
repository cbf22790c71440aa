"""A kernel's source with what each line costs beside it: figures, shaded by one ramp of blue."""

from __future__ import annotations

from itertools import groupby

from cutegen_nb.analysis.diagnose import Diagnosis
from cutegen_nb.analysis.line_heat import HeatLine, KernelHeat, LineCell, LineColumn, heat
from cutegen_nb.analysis.quantity import count
from cutegen_nb.core.profile import Counters, Profile
from cutegen_nb.report.code import highlight, line_html
from cutegen_nb.report.markup import Style, folded, gap, look, safe

_AROUND = 2
"""Lines shown before and after one that has figures."""
_LEAST_GAP = 4
"""Fewer lines without figures are not folded away: a reader would open them."""
_CODE = 80
"""Characters of a line that are quoted beside its figures."""
_HEAT = {Style.PAGE: "var(--heat)", Style.RECORD: "40,140,200"}
"""Blue, one hue whose depth tells, seen alike by every kind of colour vision. The page has one for light and
one for dark (blue and sky blue of the Okabe–Ito palette); a notebook takes the one between, on either."""
_PALE, _DEEP = 0.05, 0.5
"""Opacity of the ramp's ends: ink stays readable on the deep one in light and dark."""
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)


def render(
    profile: Profile, source: str, *, diagnosis: Diagnosis | None = None, style: Style = Style.RECORD
) -> str:
    """The source with a column for each figure that its lines have; a kernel after the first is folded.

    Args:
        profile: counts of one call.
        source: text of the file whose lines are counted.
        diagnosis: whose first line is marked as the hottest; the costliest is where there is none.
        style: how the HTML is dressed.
    """
    kernels = heat(profile, diagnosis)
    if not kernels:
        return f"<p{look(style, 'muted')}>The counts carry no lines of this source.</p>"
    first, *others = kernels
    parts = [_said(first, profile, style, alone=not others), _listing(first, source, style)]
    for one in others:
        body = _said(one, profile, style, alone=True) + _listing(one, source, style)
        parts.append(folded(style, f"{one.kernel or 'another kernel'}, lines and counts", body))
    return "".join(parts)


def _said(found: KernelHeat, profile: Profile, style: Style, *, alone: bool) -> str:
    """Which line is the hottest and why, and how the shades are to be read."""
    name = "" if alone else f" of <code>{safe(found.kernel)}</code>"
    line = found.lines[found.hottest]
    edge = "outline:1px solid rgba(128,128,128,0.35);padding:0 0.6em"
    ramp = "".join(f'<span style="{_shade(step, style)};{edge}">&nbsp;</span>' for step in _STEPS)
    return (
        f"<p>Hottest line{name}: <b>{found.hottest}</b>, {safe(found.because)}: {safe(line.full)}.</p>"
        f"<p{look(style, 'muted')}>{safe(_source(profile))}, all launches of a kernel together. Shade: share "
        f"of its column’s largest, none <span{look(style, 'name')}>{ramp}</span> largest. Point at a figure "
        "for all of its line, or open the list below.</p>"
    )


def _source(profile: Profile) -> str:
    return profile.source.value[:1].upper() + profile.source.value[1:]


def _listing(found: KernelHeat, source: str, style: Style) -> str:
    total = len(highlight(source))
    own = {number for number in found.lines if number <= total}
    near = _near(own, total)
    parts: list[str] = []
    headed = False
    for is_near, group in groupby(range(1, total + 1), key=near.__contains__):
        numbers = list(group)
        body = _table(found, source, numbers, style, headed=is_near and not headed)
        headed = headed or is_near
        title = f"{len(numbers)} {'line' if len(numbers) == 1 else 'lines'} without counts"
        parts.append(body if is_near else gap(style, title, body))
    rest = _elsewhere(found.elsewhere, style)
    return f"<div{look(style, 'card')}>{''.join(parts)}</div>{_in_words(found, source, style)}{rest}"


def _in_words(found: KernelHeat, source: str, style: Style) -> str:
    """Every line with its figures, costliest first, for who cannot point: keyboards and screen readers."""
    code = source.split("\n")
    ranked = sorted(found.lines.items(), key=lambda item: (item[0] != found.hottest, -item[1].cost, item[0]))
    items = "".join(
        f"<li><b>Line {number}</b> <code>{safe(code[number - 1].strip()[:_CODE])}</code>: "
        f"{safe(line.full)}.</li>"
        for number, line in ranked
        if 0 < number <= len(code)
    )
    return folded(style, "Every line’s figures in words, the costliest first", f"<ul>{items}</ul>")


def _near(own: set[int], total: int) -> set[int]:
    """Lines that are shown: those with figures, those around them, and short stretches between."""
    shown = {line for number in own for line in range(number - _AROUND, number + _AROUND + 1)}
    hidden = [
        list(group) for is_in, group in groupby(range(1, total + 1), key=shown.__contains__) if not is_in
    ]
    return shown.union(*(group for group in hidden if len(group) < _LEAST_GAP))


def _table(found: KernelHeat, source: str, numbers: list[int], style: Style, *, headed: bool) -> str:
    head = ""
    if headed:
        titles = "".join(_heading(one, style) for one in found.columns)
        caption = f"What each line costs, {found.kernel}" if found.kernel else "What each line costs"
        head = (
            f"<caption{look(style, 'caption')}>{safe(caption)}</caption>"
            f'<thead><tr>{titles}<th scope="col"{look(style, "number")}>Line</th>'
            f'<th scope="col"{look(style, "code")}>Source</th></tr></thead>'
        )
    rows = "".join(_row(found, source, number, style) for number in numbers)
    return f"<table{_listing_css(style)}>{head}<tbody>{rows}</tbody></table>"


def _listing_css(style: Style) -> str:
    return ' class="listing lines"' if style is Style.PAGE else look(style, "lines")


def _heading(column: LineColumn, style: Style) -> str:
    return (
        f'<th scope="col"{look(style, "heat")} title="{safe(column.what)}">{safe(column.title)}'
        f"<span{look(style, 'unit')}>{safe(column.unit)}</span></th>"
    )


def _row(found: KernelHeat, source: str, number: int, style: Style) -> str:
    line = found.lines.get(number)
    is_hottest = number == found.hottest
    cells = _cells(found, line, number, style)
    mark = "▸ " if is_hottest else ""
    code = line_html(highlight(source)[number - 1], style)
    css = look(style, "row-hot" if is_hottest else "row")
    said = ' title="the hottest line"' if is_hottest else ""
    return (
        f"<tr{css}>{cells}<td{look(style, 'number')}{said}>{mark}{number}</td>"
        f"<td{look(style, 'code')}>{code}</td></tr>"
    )


def _cells(found: KernelHeat, line: HeatLine | None, number: int, style: Style) -> str:
    if line is None:
        return f"<td{look(style, 'heat')}></td>" * len(found.columns)
    words = f"Line {number}: {line.full}"
    return "".join(_cell(one, words, style) for one in line.cells)


def _cell(cell: LineCell, words: str, style: Style) -> str:
    if not cell.text:
        return f"<td{look(style, 'heat')}></td>"
    shade = _shade(cell.heat, style)
    css = f'class="heat" style="{shade}"' if style is Style.PAGE else f'style="{shade};{_CELL}"'
    return f'<td {css} title="{safe(words)}">{safe(cell.text)}</td>'


_CELL = "padding:0 4px;text-align:right;width:80px;border:0;white-space:nowrap"


def _shade(share: float, style: Style) -> str:
    """The ramp at a share of the largest; nothing is shaded that is nothing."""
    depth = _PALE + (_DEEP - _PALE) * min(1.0, share) if share > 0 else 0.0
    return f"background:rgba({_HEAT[style]},{depth:.2f})"


def _elsewhere(item: Counters, style: Style) -> str:
    if not item.warp_instructions and not item.gmem_sectors:
        return ""
    words = (
        f"Besides these: {count(item.warp_instructions)} warp instructions and {count(item.gmem_sectors)} "
        "global sectors in lines of the DSL's library or with no line."
    )
    return f"<p{look(style, 'muted')}>{words}</p>"

"""HTML view of a kernel's source with the cost of each line, shaded by one ramp of blue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby

from markupsafe import Markup

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.tables.line_heat import HeatLine, KernelHeat, heat
from cutegen_nb.core.profile import Profile
from cutegen_nb.report.html.code import Piece, highlight, pieces
from cutegen_nb.report.markup import Style, fill

_AROUND = 2
"""Lines shown before and after a line with figures."""
_LEAST_GAP = 4
"""Least number of lines without figures that are folded away; a shorter gap is not worth a click."""
_LONG_GAP = 20
"""Most lines of a gap that a kernel after the first shows."""
_Group = tuple[bool, bool, list[tuple[int, list[tuple[str, str, bool]], HeatLine | None]]]
"""Stretch of lines: True if shown, True if headed, and each line's number, pieces and figures."""
_CODE = 80
"""Most characters of a line quoted beside its figures."""
_FIGURE_WIDTH, _SOURCE_WIDTH = 88, 480
"""Pixels of a column of figures with its padding, and least ones of line number and source together, in a
notebook: where there is less room, the table scrolls and the source stays readable."""
_HEAT = {Style.PAGE: "var(--heat)", Style.RECORD: "40,140,200"}
"""Base colour of the ramp by style. One blue hue, whose depth carries the value, is seen alike by every kind
of colour vision. The page has one blue for light and one for dark (blue and sky blue of the Okabe–Ito
palette); a notebook uses a blue between them on either background."""
_PALE, _DEEP = 0.05, 0.5
"""Opacity at the ramp's ends: text stays readable on the deep end in light and dark."""
_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the ramp that the legend shows."""


def render(
    profile: Profile, source: str, *, diagnosis: Diagnosis | None = None, style: Style = Style.RECORD
) -> Markup:
    """Return the source with a column for each figure of its lines.

    Kernels after the first are folded, and leave long gaps out: the first shows the whole file.

    Args:
        profile: counts of one call.
        source: text of the file whose lines are counted.
        diagnosis: diagnosis whose first line is marked as the hottest; without one the most costly line is.
        style: style of the HTML.
    """
    kernels = heat(profile, diagnosis, source)
    code = highlight(source)
    text = source.split("\n")
    return fill(
        "lines",
        style,
        kernels=[(one, _groups(one, code), _ranked(one, len(text))) for one in kernels],
        text=[line.strip()[:_CODE] for line in text],
        source=profile.source.value[:1].upper() + profile.source.value[1:],
        steps=_STEPS,
        long_gap=_LONG_GAP,
        shade=partial(_shade, style),
        figure_width=_FIGURE_WIDTH,
        source_width=_SOURCE_WIDTH,
    )


def _groups(found: KernelHeat, code: Sequence[Sequence[Piece]]) -> list[_Group]:
    """Cut the source into stretches, shown or folded away; the first shown one has the headings."""
    near = _near({number for number in found.lines if number <= len(code)}, len(code))
    groups: list[_Group] = []
    is_headed = False
    for is_near, numbers in groupby(range(1, len(code) + 1), key=near.__contains__):
        lines = [(number, pieces(code[number - 1]), found.lines.get(number)) for number in numbers]
        groups.append((is_near, is_near and not is_headed, lines))
        is_headed = is_headed or is_near
    return groups


def _ranked(found: KernelHeat, total: int) -> list[tuple[int, HeatLine]]:
    """Return the lines with figures, the hottest and then the most costly first."""
    ranked = sorted(found.lines.items(), key=lambda item: (item[0] != found.hottest, -item[1].cost, item[0]))
    return [(number, line) for number, line in ranked if 0 < number <= total]


def _near(own: set[int], total: int) -> set[int]:
    """Return the lines to show: those with figures, their surroundings, and short gaps between."""
    shown = {line for number in own for line in range(number - _AROUND, number + _AROUND + 1)}
    hidden = [
        list(group) for is_in, group in groupby(range(1, total + 1), key=shown.__contains__) if not is_in
    ]
    return shown.union(*(group for group in hidden if len(group) < _LEAST_GAP))


def _shade(style: Style, share: float) -> str:
    """Return the background for a share of the column's largest; zero is not shaded."""
    depth = _PALE + (_DEEP - _PALE) * min(1.0, share) if share > 0 else 0.0
    return f"background:rgba({_HEAT[style]},{depth:.2f})"

"""Number formatting: thousands separators, units, ratios, intervals and changes."""

from __future__ import annotations

import math
import re

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
"""SI prefixes by powers of 1000."""
_MILLI = 1e-3
_MICRO = 1e-6
_PLACES = 4
"""Most decimals of an interval; no interval is known more exactly."""


def count(value: float) -> str:
    """Format a whole number with separators: ``1,048,576``."""
    return f"{round(value):,}"


def scaled(value: float, unit: str) -> str:
    """Format three significant figures with an SI prefix: ``1.61 GB``; small whole numbers as they are.

    ``96 B``.
    """
    if not math.isfinite(value):
        return f"{value} {unit}"
    size, step = abs(value), 0
    while size >= 999.5 and step < len(_PREFIXES) - 1:  # 999.5 would round to 1000
        size, step = size / 1000, step + 1
    sign = "−" if value < 0 else ""
    figures = f"{size:.0f}" if step == 0 and float(size).is_integer() else _three(size)
    return f"{sign}{figures} {_PREFIXES[step]}{unit}"


def duration(seconds: float) -> str:
    """Format seconds in the unit that suits them: ``3.02 ms``, ``41.3 µs``, ``12.4 s``."""
    if seconds >= 1:
        return f"{_three(seconds)} s"
    if seconds >= _MILLI:
        return f"{_three(seconds * 1e3)} ms"
    if seconds >= _MICRO:
        return f"{_three(seconds * 1e6)} µs"
    return f"{_three(seconds * 1e9)} ns"


def times(value: float) -> str:
    """Format a ratio: ``1.05×``, ``32×``."""
    return f"{value:,.2f}×" if value < 10 else f"{value:,.3g}×" if value < 1000 else f"{value:,.0f}×"


def interval(ratio: float, low: float, high: float) -> str:
    """Format a ratio with its interval: ``0.989× (0.985–0.993)``."""
    value, span = interval_parts(ratio, low, high)
    return f"{value} ({span})"


def interval_parts(ratio: float, low: float, high: float) -> tuple[str, str]:
    """Format a ratio and its interval apart: ``0.989×`` and ``0.985–0.993``.

    Both have as many decimals as tell the interval's ends apart, at most four.
    """
    places = 2 if ratio < 10 else 1 if ratio < 100 else 0
    if 0 < high - low < math.inf:
        # −log10 of the width is the first decimal in which the two ends differ.
        places = min(max(places, math.ceil(-math.log10(high - low))), _PLACES)
    return f"{ratio:,.{places}f}×", f"{low:,.{places}f}–{high:,.{places}f}"


def figure(value: float) -> str:
    """Format three significant figures without an exponent: ``0.125``, ``13.9``, ``1,365``."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def change(before: float, after: float) -> str:
    """Format a relative change with its sign: ``−33.3 %``, ``+2.0 %``, ``0 %``."""
    if before == after:
        return "0 %"
    if before == 0:
        return "from 0"
    percent = 100 * (after - before) / before
    sign = "−" if percent < 0 else "+"
    size = abs(percent)
    return f"{sign}{size:.1f} %" if size >= 0.05 else "≈ 0 %"  # would print as 0.0


def share(fraction: float) -> str:
    """Format a fraction as per cent: ``97.3 %``; fractions below 0.1 % keep two significant figures.

    Just under one it is ``99.96 %`` and never ``100.0 %``: not all is not all.
    """
    percent = 100 * fraction
    if 99.95 <= percent < 100:  # would print as 100.0
        return f"{min(percent, 99.99):.2f} %"
    if 0 < percent < 0.1:  # would print as 0.0
        return f"{percent:.2g} %"
    return f"{percent:.1f} %"


def moment(stamp: str) -> str:
    """Format an ISO 8601 UTC timestamp: ``2026-11-21 06:10:00 UTC``; other text is returned unchanged."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:Z|\+00:00)", stamp)
    return f"{found[1]} {found[2]} UTC" if found else stamp


def error(value: float) -> str:
    """Format a numerical error with two significant figures: ``1.2e-07``; ``0`` if exact."""
    return "0" if value == 0 else f"{value:.2g}" if math.isfinite(value) else str(value)


def _three(size: float) -> str:
    """Format a size that is not negative with three significant figures."""
    if size == 0:
        return "0"
    if size >= 100:
        return f"{size:.0f}"
    return f"{size:.1f}" if size >= 10 else f"{size:.2f}" if size >= 0.01 else f"{size:.2g}"

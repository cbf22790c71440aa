"""Figures of a round's summary as text, for the tables of rounds."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.analysis.figures.quantity import count, duration, interval, share, times
from cutegen_nb.analysis.history.summary import RoundSummary


def counted_figures(item: RoundSummary) -> tuple[str, str, str, str]:
    """Return estimate, sectors, warp instructions and bytes ÷ least bytes as text; dashes without them."""
    return (
        _or_dash(item.estimated_s, duration),
        _or_dash(item.gmem_sectors, count),
        _or_dash(item.warp_instructions, count),
        _or_dash(item.moved_over_least or None, times),  # 0 where nothing was launched
    )


def timed_figures(item: RoundSummary, over: str = "") -> tuple[str, str, str]:
    """Return latency, speedup and share of the roof as text; dashes without times.

    `over` is appended to the speedup.
    """
    gained = speedup_text(item)
    return (
        _or_dash(item.median_ms, lambda value: duration(value / 1e3)),
        f"{gained} {over}".strip() if gained else "–",
        _or_dash(item.sol_fraction, share),
    )


def _or_dash(value: float | None, write: Callable[[float], str]) -> str:
    return "–" if value is None else write(value)


def speedup_text(item: RoundSummary) -> str:
    """Return the speedup with its interval; empty without one."""
    if item.speedup is None or item.speedup_low is None or item.speedup_high is None:
        return ""
    return interval(item.speedup, item.speedup_low, item.speedup_high)

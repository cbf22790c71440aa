"""HTML view of a diagnosis: one sentence with bars, then the causes; the counts behind it are folded away."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.figures.quantity import duration, share
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.report.markup import Style, fill

_LEAST = 0.02
"""Share of the largest below which a term has no bar: it would be a hair's breadth."""
_MOST = 6
"""Bars shown at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Bar of a unit or of a term of the time."""

    name: str
    """Unit, such as ``DRAM``, or term of the estimate."""
    fraction: float
    """Length as a share of the longest bar, from 0 to 1."""
    figure: str
    """Value as text."""
    note: str = ""
    """Work and rate behind the value; empty where there is none."""


def render(found: Diagnosis, estimated: Estimate | None = None, *, style: Style = Style.RECORD) -> Markup:
    """Return the bound with bars, then each cause with its counters and its refutation.

    With an estimate of the time at full size the bound is the estimate's. Demands of the size that ran are
    folded away then: they may name another bound, and the full size decides.
    """
    counted = demands(found)
    return fill(
        "diagnosis",
        style,
        found=found,
        headline=_headline(estimated) if estimated else "",
        bars=terms(estimated) if estimated else counted,
        counted=counted if estimated else [],
    )


def _headline(estimated: Estimate) -> str:
    """Return target, time and the second term in a sentence, to follow the bound."""
    second = estimated.terms[1] if len(estimated.terms) > 1 else None
    follows = ""
    if second is not None and estimated.terms[0].seconds:
        follows = f"; {second.name} follows at {share(second.seconds / estimated.terms[0].seconds)} of it"
    return f"at the full size: estimated {duration(estimated.seconds)} on {estimated.target}{follows}."


def terms(estimated: Estimate) -> list[Bar]:
    """Return the terms of an estimated time as bars, the longest first. They overlap in part."""
    longest = max((term.seconds for term in estimated.terms), default=0.0)
    bars = [
        Bar(name=term.name, fraction=term.seconds / longest, figure=duration(term.seconds))
        for term in estimated.terms
        if longest
    ]
    return [bar for bar in bars if bar.fraction >= _LEAST][:_MOST]


def demands(found: Diagnosis) -> list[Bar]:
    """Return the demand on each unit as bars, the busiest first."""
    return [
        Bar(
            name=one.unit,
            fraction=min(1.0, one.fraction),
            figure=share(one.fraction if one.peak_fraction is None else one.peak_fraction),
            note="of its peak" if one.peak_fraction is not None else f"{one.work} at {one.rate}",
        )
        for one in found.demands
        if one.counter and one.fraction >= _LEAST
    ][:_MOST]

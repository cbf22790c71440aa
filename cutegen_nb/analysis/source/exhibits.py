"""Text lines for the evidence behind a finding of cheating."""

from __future__ import annotations

from collections.abc import Iterator

from cutegen_nb.core.finding import Exhibit

_LONGEST_TRACE = 12
"""Most lines of a trace that are shown."""


def exhibit_lines(exhibit: Exhibit) -> tuple[str, ...]:
    """Format an exhibit as plain lines, its statement first."""
    return (f"evidence ({exhibit.kind}): {exhibit.statement}", *_parts(exhibit))


def exhibit_parts(exhibit: Exhibit) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return an exhibit's parts with their headings; empty parts are left out."""
    trace = exhibit.trace[:_LONGEST_TRACE]
    more = len(exhibit.trace) - len(trace)
    parts = (
        ("Inputs", exhibit.inputs),
        ("The candidate gave", exhibit.outputs),
        ("The reference gives", exhibit.expected),
        ("What ran", (*trace, *((f"… {more} more",) if more else ()))),
        ("Memory", exhibit.addresses),
    )
    return tuple((heading, lines) for heading, lines in parts if lines)


def _parts(exhibit: Exhibit) -> Iterator[str]:
    for heading, lines in exhibit_parts(exhibit):
        yield f"  {heading[0].lower()}{heading[1:]}:"
        yield from (f"    {line}" for line in lines)
    if exhibit.lines:
        first, last = exhibit.lines
        yield f"  source: line {first}" if first == last else f"  source: lines {first} to {last}"

"""What an accusation rests on, line by line, and what was checked, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Exhibit, Tier

_LONGEST_TRACE = 12


def exhibit_lines(exhibit: Exhibit) -> tuple[str, ...]:
    """An exhibit as plain lines, its statement first."""
    return (f"evidence ({exhibit.kind}): {exhibit.statement}", *_parts(exhibit))


def exhibit_parts(exhibit: Exhibit) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """An exhibit's parts with their headings, empty ones left out."""
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


def checks_line(evaluation: Evaluation) -> str:
    """How many checks ran, what did not and why, in a sentence; empty for records that list none."""
    if not evaluation.checks:
        return ""
    ran = [item for item in evaluation.checks if item.state is not CheckState.NOT_RUN]
    text = f"Tier {evaluation.tier.value}: {len(ran)} checks ran"
    missing = _missing(evaluation.checks)
    if missing:
        text += f"; not run: {missing}"
    left = {Tier.A: "tiers B and C were", Tier.B: "tier C was"}.get(evaluation.tier)
    return f"{text}; {left} not asked for." if left else f"{text}."


def _missing(checks: Sequence[CheckResult]) -> str:
    """Checks that did not run, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for item in checks:
        if item.state is CheckState.NOT_RUN:
            by_reason.setdefault(item.note, []).append(item.name)
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in by_reason.items())

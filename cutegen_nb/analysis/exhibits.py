"""What an accusation rests on, line by line, and what was checked, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Exhibit, Tier

_LONGEST_TRACE = 12
_WIDTH = 100


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


def checks_lines(evaluation: Evaluation) -> tuple[str, ...]:
    """What became of every check, by name; on which seeds and texts; and what confined the candidate.

    Empty for records that list no checks.
    """
    if not evaluation.checks:
        return ()
    by_state = {state: [item for item in evaluation.checks if item.state is state] for state in CheckState}
    missing = by_state[CheckState.NOT_RUN]
    lines = [_heading(evaluation, len(evaluation.checks) - len(missing), len(missing))]
    for words, state in (("found something", CheckState.FOUND), ("found nothing", CheckState.RAN)):
        lines += _wrapped(words, [item.name for item in by_state[state]])
    for reason, names in _by_reason(missing).items():
        lines += _wrapped("not run", names, f" ({reason})" if reason else "")
    if evaluation.correctness and evaluation.correctness.seeds:
        seeds = [str(seed) for seed in evaluation.correctness.seeds]
        lines += _wrapped("seeds of the inputs, drawn after the source was fixed", seeds)
    if evaluation.candidate_digest:
        lines.append(f"  SHA-256 of the candidate: {evaluation.candidate_digest}")
        lines.append(f"  SHA-256 of the problem:   {evaluation.problem_digest}")
    if evaluation.confinement:
        lines += _wrapped("confinement", [evaluation.confinement])
    return tuple(lines)


def _heading(evaluation: Evaluation, ran: int, missing: int) -> str:
    left = {Tier.A: "; tiers B and C were not asked for", Tier.B: "; tier C was not asked for"}
    tail = left.get(evaluation.tier, "")
    return f"Checks of tier {evaluation.tier.value}: {ran} ran, {missing} did not{tail}."


def _by_reason(missing: Sequence[CheckResult]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in missing:
        found.setdefault(item.note, []).append(item.name)
    return found


def _wrapped(heading: str, items: Sequence[str], tail: str = "") -> list[str]:
    """Items after a heading; a name may hold a comma, so that semicolons part them. Nothing for no items."""
    if not items:
        return []
    text = f"{heading}: {'; '.join(items)}{tail}"
    return wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)

"""Records of the knowledge base in words, for prompts, terminal and notebook."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.figures.quantity import duration, times
from cutegen_nb.analysis.knowledge.gains import ExpectedGain, StrategyLine
from cutegen_nb.analysis.strategy.alignment import statement_of
from cutegen_nb.core.search.knowledge import RecordSource, StrategyRecord
from cutegen_nb.core.strategy import Strategy

TOLD = 5
"""Strategies that an author is told of, at most."""


def gain_words(found: ExpectedGain, strategy: Strategy) -> str:
    """Return the heaviest record of a gain in words, and the number of the others.

    A record of another strategy, which brought the same optimisations, is told with its name.
    """
    first, more = found.records[0], len(found.records) - 1
    name = "" if first.strategy.identity == strategy.identity else f"as {first.strategy.identity}, "
    others = f"; {more} more record{'' if more == 1 else 's'}" if more else ""
    return f"{name}{effect_words(first)}{others}"


def effect_words(record: StrategyRecord) -> str:
    """Return effect, times, device and origin: ``1.59× (9.67 ms → 6.09 ms), measured on NVIDIA H200, …``."""
    before, after = duration(record.seconds * record.speedup), duration(record.seconds)
    kind = "estimated for" if record.estimated else "measured on"
    source = {RecordSource.SHIPPED: ", shipped", RecordSource.IMPORTED: ", imported"}.get(record.source, "")
    effect = f"{times(record.speedup)} ({before} → {after})"
    return f"{effect} on {record.problem.words}; {kind} {record.device}{source}"


def told_lines(records: Sequence[StrategyRecord], lines: Sequence[StrategyLine] = ()) -> tuple[str, ...]:
    """Return a line for each strategy that records of like problems tell of, at most `TOLD`.

    `records` come in the order of `recall`, and of each strategy the first record is told. The last place is
    kept for a strategy that lost, where one did. `lines` come before them: strategies that led to the fastest
    kernels together.
    """
    first: dict[str, StrategyRecord] = {}
    for item in records:
        first.setdefault(item.strategy.identity, item)
    every = list(first.values())
    together = [f"the fastest kernel known came from {_stated(one)}" for one in lines]
    left = TOLD - len(together)
    kept = every if len(every) <= left else [*every[: left - 1], every[-1]]
    return (*together, *(f"{_statement(item)} {effect_words(item)}" for item in kept))


def line_words(line: StrategyLine) -> str:
    """Return the names of the strategies of a line in sequence and the speed-up that they had together."""
    return f"{', then '.join(item.name for item in line.applied)}: {_speedup(line)}"


def _stated(line: StrategyLine) -> str:
    """Return a line's strategies as numbered statements, for an author who does not know their names."""
    steps = " ".join(f"({number}) {one.statement}" for number, one in enumerate(line.applied, start=1))
    return f"these steps, {_speedup(line)}: {steps}"


def _speedup(line: StrategyLine) -> str:
    record = line.record
    kind = "estimated for" if record.estimated else "measured on"
    return f"{times(record.total_speedup)} its first kernel on {record.problem.words}; {kind} {record.device}"


def _statement(record: StrategyRecord) -> str:
    text = statement_of(record.strategy, record.aligned).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."

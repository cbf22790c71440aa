"""Strategies with the effects that sessions recorded, for the command line and the notebook."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.knowledge.gains import ExpectedGain, best_lines, expected_gain
from cutegen_nb.analysis.knowledge.likeness import like, timed_architecture
from cutegen_nb.analysis.knowledge.record_summary import StrategySummary, summaries
from cutegen_nb.analysis.knowledge.record_words import effect_words, gain_words, line_words
from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.analysis.strategy.alignment import FEATURES
from cutegen_nb.analysis.strategy.conditions import Circumstances
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.analysis.strategy.obstacle import obstacle
from cutegen_nb.app.output import columns
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.search.knowledge import RecordSource, StrategyRecord
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.report.terminal.fitting import paragraph
from cutegen_nb.store.history import every_record
from cutegen_nb.store.knowledge_base import KnowledgeBase, knowledge_folder
from cutegen_nb.wiring import Settings, library_of

_DASH = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStrategies:
    """Strategies of the library and of all records."""

    summaries: tuple[StrategySummary, ...]
    """Strategies: those with records by their mean effect, then the library's others."""
    records: tuple[StrategyRecord, ...]
    """Every record."""
    path: Path
    """File of the machine's knowledge base, which need not exist."""


def known_strategies(settings: Settings) -> KnownStrategies:
    """Read library, knowledge base and shipped records. Raises StoreError, ConfigurationError."""
    base = KnowledgeBase(knowledge_folder())
    records = every_record(base.records())
    return KnownStrategies(
        summaries=summaries(library_of(settings).strategies(), records), records=records, path=base.path
    )


def named_strategy(name: str, known: KnownStrategies) -> StrategySummary:
    """Return a strategy by its name or identity. Raises UsageError, with the nearest name."""
    found = [item for item in known.summaries if name in {item.strategy.identity, item.strategy.name}]
    if len(found) > 1:
        identities = ", ".join(item.strategy.identity for item in found)
        raise UsageError(f"{name!r} is the name of several strategies: give one of {identities}")
    if found:
        return found[0]
    names = [item.strategy.identity for item in known.summaries]
    near = get_close_matches(name, names, n=1)
    raise UsageError(
        f"no strategy {name!r}{f'; did you mean {near[0]}?' if near else ''}: "
        "`cutegen-nb strategies` lists them"
    )


def listing_text(known: KnownStrategies, workload_class: str | None = None) -> str:
    """List the strategies: a row for each with records, and the names of the others."""
    kind = WorkloadClass(workload_class) if workload_class else None
    shown = [item for item in known.summaries if kind is None or item.fits(kind)]
    tried = [item for item in shown if item.records]
    others = [item.strategy.name for item in shown if not item.records]
    parts: list[str] = []
    if tried:
        header = ("strategy", "effect", "range", "records", "measured", "device", "on")
        parts.append(columns(header, [_row(item) for item in tried]))
        parts.append(
            "\n".join(
                paragraph(
                    "effect: time of the kernel it started from ÷ time with it, geometric mean over its "
                    "records; measured: how many of them a GPU timed, the others are estimates."
                )
            )
        )
    if others:
        parts.append("\n".join(paragraph(f"No record yet: {', '.join(others)}.")))
    parts.append("\n".join(paragraph(_sources(known))))
    return "\n\n".join(parts)


def _row(item: StrategySummary) -> tuple[str, ...]:
    speedups = [one.speedup for one in item.records]
    span = f"{times(min(speedups))} – {times(max(speedups))}" if len(speedups) > 1 else _DASH
    return (
        item.strategy.identity,
        times(item.mean or 1.0),
        span,
        str(len(speedups)),
        str(item.measured),
        ", ".join(item.devices),
        ", ".join(item.classes),
    )


def _sources(known: KnownStrategies) -> str:
    number = Counter(item.source for item in known.records)
    own = f"{number[RecordSource.OWN]} of this machine's sessions, {number[RecordSource.IMPORTED]} imported"
    return (
        f"{len(known.records)} records: {number[RecordSource.SHIPPED]} shipped, {own} ({known.path}). "
        "`cutegen-nb strategies NAME` explains one."
    )


def explanation_text(item: StrategySummary) -> str:
    """Explain a strategy: statement, conditions, and every record with its aligned statement."""
    strategy = item.strategy
    lines = [*paragraph(f"{strategy.identity}: {strategy.statement}"), ""]
    for title, words in _conditions(strategy):
        lines += paragraph(words, "  ", first=f"{title}: ") if words else []
    lines += [
        "",
        f"{len(item.records)} record{'' if len(item.records) == 1 else 's'}"
        + ("" if item.records else " yet"),
    ]
    for record in item.records:
        lines += ["", *paragraph(effect_words(record), "  ", first="- ")]
        aligned = record.aligned
        # Without an author's words and a change of the kernel's traits it tells no more than the strategy.
        if aligned.by != FEATURES or aligned.brought or aligned.lost:
            lines += paragraph(f"carried out as: {aligned.statement}", "  ")
        after = (
            f" after {', '.join(one.name for one in record.line)}" if record.line else " on the first kernel"
        )
        where = f"session {record.session} {record.revision}, {record.recorded_at[:10]}{after}"
        total = f"; together {times(record.total_speedup)} the first kernel"
        lines += paragraph(f"{where}{total if record.line else ''}{_versions(record)}", "  ")
        claims = ", ".join(one.value for one in record.aligned.not_told)
        lines += paragraph(f"claimed, not told by counts: {claims}", "  ") if claims else []
        lines += [
            part
            for claim in record.aligned.unfulfilled
            for part in paragraph(f"not carried out: {claim}", "  ")
        ]
    return "\n".join(lines)


def _versions(record: StrategyRecord) -> str:
    if not record.versions:
        return ""
    return f"; {', '.join(f'{name} {value}' for name, value in sorted(record.versions.items()))}"


def _conditions(strategy: Strategy) -> tuple[tuple[str, str], ...]:
    """Return the conditions of a strategy as titles and words; empty words for none."""
    moves = [f"{item.counter} {item.direction.value}" for item in strategy.effects]
    return (
        ("for", ", ".join(strategy.classes)),
        ("where the limit is", ", ".join(strategy.bounds)),
        ("brings", ", ".join(strategy.absent)),
        ("builds on", ", ".join(strategy.present)),
        ("needs", "; ".join([*strategy.requires, *strategy.preconditions])),
        ("dtypes", ", ".join(strategy.dtypes)),
        ("architectures", ", ".join(strategy.architectures)),
        ("should move", ", ".join(moves)),
        ("written by", strategy.source),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedStrategy:
    """Strategy with what like problems let expect of it."""

    strategy: Strategy
    """The strategy."""
    gain: ExpectedGain
    """Expected gain, with the records behind it."""
    likeness: float
    """Likeness of the problem of its heaviest record, from 0 to 1."""


def ranking(known: KnownStrategies, facts: ProblemFacts, device: Device) -> tuple[RankedStrategy, ...]:
    """Rank the strategies with records of like problems, the largest expected gain first.

    Strategies for other classes or dtypes are left out, and those that this problem makes impossible.
    """
    key, here = problem_key(facts), Circumstances(facts=facts, device=device, traits=KernelTraits())
    found = []
    for item in known.summaries:
        strategy = item.strategy
        of_class = not strategy.classes or {key.workload_class, key.dominant} & set(strategy.classes)
        of_dtype = not strategy.dtypes or facts.dtype in strategy.dtypes
        gain = expected_gain(strategy, known.records, key, timed_architecture(device))
        if gain is not None and of_class and of_dtype and obstacle(strategy, here) is None:
            likeness = like(gain.records[0].problem, key)
            found.append(RankedStrategy(strategy=strategy, gain=gain, likeness=likeness))
    return tuple(sorted(found, key=lambda item: -item.gain.log_speedup))


def ranking_text(
    name: str, known: KnownStrategies, found: Sequence[RankedStrategy], facts: ProblemFacts, device: Device
) -> str:
    """Say which strategies like problems recommend, in order, each with its heaviest record."""
    head = paragraph(f"{name}: {problem_key(facts).words}, for {device.label}")
    if not found:
        return "\n".join(
            [*head, "", *paragraph("No record of a like problem: strategies keep the library's order.")]
        )
    lines = [*head, ""]
    for item in found:
        lines += paragraph(
            f"{item.strategy.identity}: expected {times(math.exp(item.gain.log_speedup))}; "
            f"{gain_words(item.gain, item.strategy)}; {item.likeness:.0%} alike",
            "  ",
            first="- ",
        )
    lines += [""] + [
        part
        for line in best_lines(known.records, facts, device)
        for part in paragraph(f"fastest kernel known: {line_words(line)}", "  ")
    ]
    lines += [
        "",
        *paragraph(
            "Expected: the mean effect, drawn towards 1 where records are few, estimated or of less like "
            "problems. A strategy that a kernel carries out already, or cannot, is left out in its round."
        ),
    ]
    return "\n".join(lines)

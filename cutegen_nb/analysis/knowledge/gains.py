"""Expected gains of strategies, from the records of like problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.knowledge.likeness import timed_architecture, weight
from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.analysis.strategy.alignment import statement_of
from cutegen_nb.core.device import Device
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.search.knowledge import AppliedStrategy, ProblemKey, StrategyRecord
from cutegen_nb.core.strategy import Bound, Optimisation, Strategy

RECALLED = 50
"""Records that `recall` returns, at most."""
_PRIOR = 1.0
"""Weight of the belief that a strategy changes nothing: that of one record of the same problem."""
_TELLS = 0.01
"""Expected gain or loss, as a logarithm, from which an order follows: a kernel differs from itself by
less."""
_BY_ANOTHER_NAME = 0.5
"""Weight of a record of another strategy that brought the same optimisations and no other."""
_NOT_CARRIED_OUT = 0.5
"""Weight of a record whose kernel did not carry out all that the strategy claims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedGain:
    """Gain that records let expect of a strategy."""

    log_speedup: float
    """Natural logarithm of the expected speed-up, shrunk towards 0 where records are few or unlike."""
    records: tuple[StrategyRecord, ...]
    """Records behind it, the heaviest first."""

    @property
    def wins(self) -> bool:
        """True if a gain is expected."""
        return self.log_speedup > _TELLS

    @property
    def loses(self) -> bool:
        """True if a loss is expected."""
        return self.log_speedup < -_TELLS


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyLine:
    """Strategies that led from a first kernel to a fast one on a like problem, in sequence."""

    applied: tuple[AppliedStrategy, ...]
    """The strategies with their aligned statements, oldest first."""
    record: StrategyRecord
    """Record of the last of them, with the speed-up of the whole line."""
    weight: float
    """Weight of the record, from 0 to 1."""


def expected_gain(
    strategy: Strategy,
    records: Iterable[StrategyRecord],
    key: ProblemKey,
    architecture: str,
    bound: Bound | None = None,
) -> ExpectedGain | None:
    """Return the gain that records of like problems let expect of a strategy; None without any.

    Records of another strategy count half where its kernel brought what this one brings (`Strategy.absent`),
    and less where it brought more, to which its gain belongs too. The expected logarithm is
    Σ w·ln(speed-up) ÷ (1 + Σ w) with the weights of `likeness.weight`, so that few records or unlike problems
    let expect little.
    """
    return _gain(records, lambda item: _share(strategy, item) * weight(item, key, architecture, bound))


def _gain(
    records: Iterable[StrategyRecord], weight_of: Callable[[StrategyRecord], float]
) -> ExpectedGain | None:
    weighed = sorted(
        ((found, item) for item in records if (found := weight_of(item))), key=lambda pair: -pair[0]
    )
    if not weighed:
        return None
    total = sum(found for found, _ in weighed)
    logs = sum(found * math.log(item.speedup) for found, item in weighed)
    return ExpectedGain(log_speedup=logs / (_PRIOR + total), records=tuple(item for _, item in weighed))


def _share(strategy: Strategy, record: StrategyRecord) -> float:
    """Return the part of a record that speaks of a strategy, from 0 to 1."""
    if record.strategy.identity == strategy.identity:
        return _NOT_CARRIED_OUT if record.aligned.unfulfilled else 1.0
    brings, new = set(strategy.absent), _new_in(record)
    return _BY_ANOTHER_NAME * len(brings) / len(new) if brings and brings <= new else 0.0


def _new_in(record: StrategyRecord) -> set[Optimisation]:
    """Return the optimisations that the kernel carries out and its parent does not show.

    Nothing may tell whether a parent carries one out. Where much else is known of it, that counts as no.
    """
    known = set(record.aligned.in_force) - set(record.parent_in_force) if record.parent_in_force else set()
    return known | set(record.aligned.brought)


def recall(
    records: Iterable[StrategyRecord], facts: ProblemFacts, device: Device, limit: int = RECALLED
) -> tuple[StrategyRecord, ...]:
    """Return the records of like problems: strategies expected to win first, those expected to lose last.

    Strategies come in the order of their expected gain. Of one strategy the heaviest record comes first, and
    so a measured effect before an estimated one. With more than `limit` records, those of the least telling
    strategies are left out.
    """
    key = problem_key(facts)
    architecture = timed_architecture(device)
    weights = {item.digest: heavy for item in records if (heavy := weight(item, key, architecture))}
    by_strategy: dict[str, list[StrategyRecord]] = {}
    for item in records:
        if item.digest in weights:
            by_strategy.setdefault(item.strategy.identity, []).append(item)
    gains = [_gain(some, lambda item: weights[item.digest]) for some in by_strategy.values()]
    known = [found for found in gains if found is not None]
    telling = sorted(known, key=lambda found: -abs(found.log_speedup))
    kept: list[ExpectedGain] = []
    for found in telling:
        if sum(len(item.records) for item in kept) >= limit:
            break
        kept.append(found)
    kept.sort(key=lambda found: -found.log_speedup)
    return tuple(item for found in kept for item in found.records)[:limit]


def best_lines(
    records: Sequence[StrategyRecord], facts: ProblemFacts, device: Device, limit: int = 3
) -> tuple[StrategyLine, ...]:
    """Return the lines of strategies that led to the fastest kernels on like problems, at most `limit`.

    Of each problem and device the line with the largest speed-up over its first kernel counts, and of equal
    lines of several problems one. Lines are ordered by the logarithm of that speed-up times their weight. A
    strategy that lost ends no line.
    """
    key = problem_key(facts)
    best: dict[tuple[str, str], StrategyRecord] = {}
    for item in records:
        place = (item.problem_digest, item.device)
        if item.speedup <= 1 or item.total_speedup <= 1:
            continue
        if place not in best or item.total_speedup > best[place].total_speedup:
            best[place] = item
    architecture = timed_architecture(device)
    found = [(weight(item, key, architecture), item) for item in best.values()]
    ordered = sorted(found, key=lambda pair: -pair[0] * math.log(pair[1].total_speedup))
    lines: dict[tuple[str, ...], StrategyLine] = {}
    for heavy, item in ordered:
        if heavy and item.names not in lines:
            lines[item.names] = StrategyLine(applied=_applied(item), record=item, weight=heavy)
    return tuple(lines.values())[:limit]


def _applied(record: StrategyRecord) -> tuple[AppliedStrategy, ...]:
    last = AppliedStrategy(name=record.strategy.name, statement=statement_of(record.strategy, record.aligned))
    return (*record.line, last)

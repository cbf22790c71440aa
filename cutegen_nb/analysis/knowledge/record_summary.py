"""Summary of the records of each strategy: number, mean effect with its range, devices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySummary:
    """Strategy with its records."""

    strategy: Strategy
    """The strategy: the library's, or that of the newest record."""
    in_library: bool
    """True if ``strategies.toml`` holds it."""
    records: tuple[StrategyRecord, ...]
    """Its records, the largest speed-up first."""

    @property
    def mean(self) -> float | None:
        """Geometric mean of the speed-ups; None without a record."""
        if not self.records:
            return None
        return math.exp(sum(math.log(item.speedup) for item in self.records) / len(self.records))

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices of its records, each once."""
        return tuple(sorted({item.device for item in self.records}))

    @property
    def measured(self) -> int:
        """Number of records with measured times; the others are estimates."""
        return sum(1 for item in self.records if not item.estimated)

    @property
    def classes(self) -> tuple[WorkloadClass, ...]:
        """Workload classes of its records, each once; the library's without a record."""
        found = {item.problem.workload_class for item in self.records}
        return tuple(item for item in WorkloadClass if item in found) or self.strategy.classes

    def fits(self, workload_class: WorkloadClass) -> bool:
        """Return whether the strategy is for a class, by the library or by a record."""
        seen = {
            kind for item in self.records for kind in (item.problem.workload_class, item.problem.dominant)
        }
        is_offered = self.in_library and (
            not self.strategy.classes or workload_class in self.strategy.classes
        )
        return workload_class in seen or is_offered


def summaries(library: Sequence[Strategy], records: Iterable[StrategyRecord]) -> tuple[StrategySummary, ...]:
    """Summarise each strategy: those with records by their mean effect, then the library's others."""
    by_identity: dict[str, list[StrategyRecord]] = {item.identity: [] for item in library}
    for item in records:
        by_identity.setdefault(item.strategy.identity, []).append(item)
    known = {item.identity: item for item in library}
    found = [
        StrategySummary(
            strategy=known.get(identity) or max(some, key=lambda item: item.recorded_at).strategy,
            in_library=identity in known,
            records=tuple(sorted(some, key=lambda item: -item.speedup)),
        )
        for identity, some in by_identity.items()
    ]
    return tuple(sorted(found, key=lambda item: -(item.mean or 0.0)))

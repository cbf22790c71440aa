"""Knowledge base: aligned strategies with the effect that each had on a kernel, across sessions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cutegen_nb.core.device import Device
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.strategy import Alignment, Bound, Optimisation, Strategy


class Regime(StrEnum):
    """Regime of a problem's shapes, which decides on the mapping of its work."""

    SMALL = "small (launch bound)"
    """A call moves and computes so little that starting it takes most of the time."""
    FEW_LONG_ROWS = "few long rows"
    """Fewer rows are reduced than a GPU has room for CTAs, each of them long."""
    MANY_LONG_ROWS = "many long rows"
    """Many rows are reduced, each too long for a warp."""
    MANY_SHORT_ROWS = "many short rows"
    """Many rows are reduced, each short enough for a warp."""
    STRIDED_ROWS = "strided rows"
    """Many rows are reduced whose elements are not side by side in memory."""
    SQUARE_PRODUCT = "square product"
    """A product of matrices whose extents are alike."""
    TALL_PRODUCT = "tall product"
    """A product whose result is much longer in one dimension than in the other."""
    LONG_K_PRODUCT = "long-k product"
    """A product that sums many more terms than its result is wide."""
    WINDOWS = "windows over a grid"
    """A pooling, or a convolution of each channel by itself."""
    CHANNELS_PRODUCT = "convolution over channels"
    """A convolution that sums over channels, and so is a matrix product with gathered factors."""
    LARGE_STREAM = "large stream"
    """Elements pass through one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKey:
    """Structured facts by which like problems are found."""

    workload_class: WorkloadClass
    """Class of the graph."""
    parts: tuple[WorkloadClass, ...]
    """Classes of its parts, the dominant one first; empty where the graph is of one class."""
    operators: tuple[str, ...]
    """Names of the graph's operators, sorted, each once; operators that only move values are left out."""
    dtype: str
    """Computation dtype."""
    regime: Regime
    """Regime of the shapes."""

    @property
    def dominant(self) -> WorkloadClass:
        """Class of the part with the most arithmetic."""
        return self.parts[0] if self.parts else self.workload_class

    @property
    def words(self) -> str:
        """Class, dtype and regime in words: ``softmax, float32, many long rows``."""
        parts = f" ({', '.join(self.parts)})" if self.parts else ""
        return f"{self.workload_class.value}{parts}, {self.dtype}, {self.regime.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedStrategy:
    """Strategy of an ancestor, as its code carries it out."""

    name: str
    """Name of the strategy."""
    statement: str
    """Its aligned statement."""


class RecordSource(StrEnum):
    """Origin of a record."""

    OWN = "own"
    """A session on this machine."""
    SHIPPED = "shipped"
    """The records that come with the package."""
    IMPORTED = "imported"
    """A file that a person imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyRecord:
    """Effect of one strategy on one kernel: the parent's time ÷ the candidate's."""

    strategy: Strategy
    """The strategy as it was asked for."""
    aligned: Alignment
    """The strategy as the code carries it out."""
    line: tuple[AppliedStrategy, ...]
    """Strategies carried out before it, from the first kernel on, oldest first."""
    problem: ProblemKey
    """Facts of the problem."""
    problem_digest: str
    """SHA-256 of the problem's source."""
    parent_digest: str
    """SHA-256 of the parent's source."""
    candidate_digest: str
    """SHA-256 of the candidate's source."""
    architecture: str
    """Architecture: ``sm_90a``."""
    device: str
    """Device that was timed; with an estimate, the GPU that times are estimated for."""
    bound: Bound | None
    """Limit of the parent by its diagnosis; None where nothing tells."""
    parent_in_force: tuple[Optimisation, ...]
    """Optimisations that the parent carries out."""
    seconds: float
    """Time of the candidate's call in seconds."""
    speedup: float
    """Parent's time ÷ candidate's time."""
    total_speedup: float
    """First kernel's time ÷ candidate's time."""
    estimated: bool
    """True if the times are estimates; False if a GPU measured them."""
    session: str
    """Name of the session."""
    session_at: str
    """Creation time of the session: UTC, ISO 8601."""
    revision: str
    """Name of the revision: ``r3``."""
    recorded_at: str
    """Start of the round: UTC, ISO 8601."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of packages and driver, where known."""
    source: RecordSource = RecordSource.OWN
    """Origin of the record."""

    def __post_init__(self) -> None:
        """Raise ValueError for a time or a ratio that is not finite and above 0."""
        for name in ("seconds", "speedup", "total_speedup"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is {value!r}: it must be finite and above 0")

    @property
    def digest(self) -> str:
        """SHA-256 over problem, device, strategy, both kernels and the kind of the times.

        The same kernels timed again are the same record.
        """
        words = [
            self.problem_digest,
            self.device,
            self.strategy.identity,
            self.parent_digest,
            self.candidate_digest,
            str(self.estimated),
        ]
        return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the strategies from the first kernel to this one, oldest first."""
        return (*(item.name for item in self.line), self.strategy.name)


Recall = Callable[[ProblemFacts, Device], tuple[StrategyRecord, ...]]
"""Function that returns the records of like problems: first those of strategies that won there, the most
useful first, last those of strategies that lost."""

Learn = Callable[[Sequence[StrategyRecord]], None]
"""Function that keeps records for later sessions; it raises nothing."""


def no_knowledge(facts: ProblemFacts, device: Device) -> tuple[StrategyRecord, ...]:  # noqa: ARG001 - the port's
    """Knowledge base without a record."""
    return ()


def learn_nothing(records: Sequence[StrategyRecord]) -> None:
    """Keep nothing."""

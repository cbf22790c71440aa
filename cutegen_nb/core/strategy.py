"""A strategy: an optimisation stated in words, apart from code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.stage import Stage


class Bound(StrEnum):
    """What limits a kernel."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"


class Direction(StrEnum):
    """Which way a counter is expected to move."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEffect:
    """A counter a strategy should move, so that a claim can be checked afterwards."""

    counter: str
    """Field of :class:`~cutegen_nb.core.profile.Counters`, or ``latency_ms``."""
    direction: Direction
    """Which way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEffect:
    """What a strategy did, once it was tried."""

    problem_digest: str
    """Where it was tried."""
    device: str
    """On what."""
    counter: str
    """What was measured."""
    before: float
    """Value for the parent."""
    after: float
    """Value for the candidate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One optimisation, in words."""

    name: str
    """Short and unique in its library: ``vectorise-128``."""
    statement: str
    """What to do, in one to three sentences."""
    classes: tuple[WorkloadClass, ...] = ()
    """Workload classes it fits; empty for any."""
    bounds: tuple[Bound, ...] = ()
    """What must limit the kernel for it to help; empty for any."""
    preconditions: tuple[str, ...] = ()
    """What must hold, in words: an architecture, a dtype, an alignment."""
    effects: tuple[ExpectedEffect, ...] = ()
    """Counters expected to move."""
    stage: Stage = Stage.STRUCTURE
    """The first stage that offers it: STRUCTURE, PROFILE (an answer to what counters show) or TUNE."""
    dtypes: tuple[str, ...] = ()
    """Computation dtypes it fits, as the problem's facts spell them; empty for any."""
    architectures: tuple[str, ...] = ()
    """Architectures it fits, without the suffix: ``sm_80``; empty for any."""
    source: str = "library"
    """``library``, ``model``, ``person`` or ``crossover``."""
    parents: tuple[str, ...] = ()
    """Names of the strategies a crossover came from."""
    aligned_statement: str = ""
    """The statement rewritten to say what the code really does; empty until coded."""
    measured: tuple[MeasuredEffect, ...] = ()
    """Effects seen so far."""

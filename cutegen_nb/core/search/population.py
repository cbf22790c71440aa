"""Population: the slots of an epoch, and the kernels that selection keeps. A chain is a population of one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MoveKind(StrEnum):
    """Kind of change that a slot of an epoch tries."""

    EXTEND = "extend"
    """The next strategy of the menu, on one member."""
    CROSS = "cross"
    """A child strategy of two members' strategies, on the faster one."""
    INVENT = "invent"
    """A strategy that the author states itself, from the evidence on one member."""
    RECALL = "recall"
    """Strategies that won on a like problem before, together, on one member."""
    REQUEST = "request"
    """A strategy that a person wrote at the gate of the epoch before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Place of a round in its epoch."""

    epoch: int
    """Number of the epoch, from 1."""
    number: int
    """Number of the slot in its epoch, from 1."""
    move: MoveKind
    """Kind of change that the round tries."""
    parents: tuple[str, ...]
    """Digests of the members that it starts from; the one whose code is changed comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """Comparison of two kernels of one epoch, both timed in the same turns of one run."""

    challenger: str
    """Digest of the kernel that was evaluated."""
    holder: str
    """Digest of the kernel that it was compared with."""
    speedup: float | None
    """Time of `holder` ÷ time of `challenger`; None where the run told nothing."""
    reason: str
    """Figures of the comparison, in a sentence."""
    gpu_s: float = 0.0
    """Seconds that the run held a GPU; 0 on the simulator."""

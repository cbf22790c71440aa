"""Comparison of a candidate with the best one before it: faster, slower, or no clear difference."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_CLEAR_DIFFERENCE = "no clear difference"
"""Words for `Relation.CANNOT_TELL`: the figures cannot show which of two kernels is faster."""


def same_kernel(name: str) -> str:
    """Return the words for a candidate with the source of an earlier one: ``same kernel as r2``."""
    return f"same kernel as {name}"


class Relation(StrEnum):
    """Relation of a candidate to the best before it."""

    FASTER = "faster"
    """Times: the interval of the speed-up lies above 1."""
    SLOWER = "slower"
    """Times: the interval of the speed-up lies below 1."""
    CANNOT_TELL = "cannot tell"
    """The difference is within the noise or the interval, or the two were not measured alike."""
    ESTIMATED_FASTER = "estimated faster"
    """Estimates of time without a GPU: the interval of the speed-up lies above 1."""
    ESTIMATED_SLOWER = "estimated slower"
    """Estimates of time without a GPU: the interval of the speed-up lies below 1."""
    LESS_WORK = "less work"
    """Counts: fewer on the simulator, where no time could be estimated."""
    SAME_WORK = "same work"
    """Counts: equal within a small fraction."""
    MORE_WORK = "more work"
    """Counts: more on the simulator, where no time could be estimated."""
    FIRST = "first"
    """No earlier candidate to compare with."""

    @property
    def words(self) -> str:
        """Relation as a person reads it; the value is what is stored."""
        return NO_CLEAR_DIFFERENCE if self is Relation.CANNOT_TELL else self.value

    @property
    def is_better(self) -> bool:
        """True if a candidate with this relation becomes the best once approved."""
        return self in {Relation.FIRST, Relation.FASTER, Relation.ESTIMATED_FASTER, Relation.LESS_WORK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison with the best candidate before: by times on a GPU, else by estimates or counts."""

    relation: Relation
    """The relation."""
    reason: str
    """Figures behind the relation, in a sentence."""
    against: str = ""
    """Digest of the best candidate before; empty for FIRST."""
    estimated_s: float | None = None
    """Estimated seconds of one call of the candidate at full size; None where it was timed or not sampled."""
    speedup: float | None = None
    """Time of the best before it ÷ the candidate's, measured or estimated; None where only counts decide."""
    same_as: str = ""
    """Earlier revision with the same source: ``r2``; empty for a new kernel."""

    @property
    def words(self) -> str:
        """Relation as a person reads it; of a kernel that was there already: ``same kernel as r2``."""
        return same_kernel(self.same_as) if self.same_as else self.relation.words

"""Where the refinement of one kernel stands."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """In the order they are passed through: structure first, counters later, numbers last."""

    CORRECT = "correct"
    """A kernel that passes is sought, the simplest first."""
    STRUCTURE = "structure"
    """One structural strategy a round, chosen by class and roofline; no counters are shown."""
    PROFILE = "profile"
    """The structure has settled: counters, costly lines and the diagnosis enter the prompt."""
    TUNE = "tune"
    """Only numbers change: CTA size, tile, vectors, stages."""
    DONE = "done"
    """Nothing is left to try."""

"""Stages of refining one kernel."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Stages in order: structure first, counters later, numbers last."""

    CORRECT = "correct"
    """Search for a first kernel that passes, the simplest first."""
    STRUCTURE = "structure"
    """One structural strategy a round, chosen by class and roofline; no counters are shown."""
    PROFILE = "profile"
    """Refinement of a settled structure: counters, costly lines and the diagnosis enter the prompt."""
    TUNE = "tune"
    """Changes of numbers only: CTA size, tile, vectors, pipeline stages."""
    DONE = "done"
    """End: nothing is left to try."""

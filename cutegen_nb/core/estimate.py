"""Counts of a launch at full size, taken from a sample of its CTAs, and the estimate of time made from them.

An estimate is computed and never measured. Views call it an estimate and show its interval.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.profile import LaunchProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Reuse:
    """Sectors of one launch that a CTA touched again, by the bytes it touched in between."""

    distance_bytes: int
    """Distinct bytes that the CTA touched since it last touched these sectors (stack distance)."""
    sectors: int
    """32-byte sectors loaded at this distance, over the whole launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Share of the sectors that a CTA loads first which a neighbouring CTA loads too, between 0 and 1."""

    x: float = 0.0
    """Shared with the next CTA in x only."""
    y: float = 0.0
    """Shared with the next CTA in y only."""
    z: float = 0.0
    """Shared with the next CTA in z only."""
    all: float = 0.0
    """Shared with more than one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSample:
    """Counts of one launch at its real size, extrapolated from a sample of its CTAs."""

    profile: LaunchProfile
    """Configuration, resources and counters of the launch; the counters are those of the whole grid."""
    ctas: int
    """CTAs that ran."""
    error_fraction: float = 0.0
    """Standard error of the extrapolated warp instructions, as a share of them."""
    skipped_fraction: float = 0.0
    """Share of the warp instructions that stand for loop iterations which were counted but not run."""
    longest_warp_instructions: int = 0
    """PTX instructions of the longest warp, from its first to its last."""
    load_rounds: int = 0
    """Times that a warp waits for global memory, summed over warps: loads that need no other load's value
    and stand in one basic block count once together."""
    first_touch_sectors: int = 0
    """Sectors that a CTA loads from global memory for the first time, summed over CTAs."""
    scattered_load_sectors: int | None = None
    """Sectors loaded from global memory by instructions whose threads each touch a sector of their own,
    counted once a warp request; None in samples made before this was counted."""
    scattered_store_sectors: int | None = None
    """The same of stores and atomics."""
    reuses: tuple[Reuse, ...] = ()
    """Loads of sectors that the same CTA touched before, by ascending distance."""
    sharing: Sharing = Sharing()
    """Overlap of what neighbouring CTAs load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullSizeSample:
    """Sampled launches of one call of a candidate at the problem's full size."""

    launches: tuple[LaunchSample, ...] = ()
    """Launches, in order."""
    missing: str = ""
    """Reason for which there is no sample, in one sentence; empty where there is one."""
    duration_s: float = 0.0
    """Wall time of taking the sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One thing that takes a launch's time: a bandwidth, a pipe, latency, the tail of the grid."""

    name: str
    """Name in words: ``DRAM``, ``L2``, ``shared memory``, ``tensor pipe``, ``latency of loads``."""
    seconds: float
    """Least time of this term alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimated time of one call on a named GPU, with its interval."""

    target: str
    """GPU that the estimate is for: ``NVIDIA H200``."""
    seconds: float
    """Estimated time of the call."""
    seconds_low: float
    """Lower end of the interval, which holds the measured time in about nine of ten cases."""
    seconds_high: float
    """Upper end of the interval."""
    bound: str
    """Name of the largest term."""
    terms: tuple[Term, ...] = ()
    """Terms of all launches together, the largest first."""
    note: str = ""
    """Restriction of the estimate, in one sentence; empty if there is none."""

    def __post_init__(self) -> None:
        """Raise ValueError unless 0 < `seconds_low` ≤ `seconds` ≤ `seconds_high`."""
        if not 0 < self.seconds_low <= self.seconds <= self.seconds_high:
            raise ValueError(
                f"an interval must hold its estimate: {self.seconds_low}, {self.seconds}, {self.seconds_high}"
            )

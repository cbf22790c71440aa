"""Tables of hardware measurements by Nsight Compute: launch times, traffic, busy units, warp stalls."""

from __future__ import annotations

from cutegen_nb.analysis.bottleneck.unit_utilisation import is_measured, loads, stalls
from cutegen_nb.analysis.figures.quantity import duration, scaled, share
from cutegen_nb.analysis.tables.counts import CountTable, kernel_name
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import LaunchProfile, Profile, ProfileSource

_DASH = "–"
_SHOWN = 0.02
"""Smallest share of a warp's time for which a stall reason is listed."""


def measured_tables(profile: Profile) -> tuple[CountTable, ...]:
    """Return the tables of a measured profile; none for simulated counts."""
    if profile.source is not ProfileSource.NSIGHT:
        return ()
    return (launches(profile), *reasons(profile))


def reasons(profile: Profile) -> tuple[CountTable, ...]:
    """Return the tables that a diagnosis refers to, busy units and warp stalls; those with rows only."""
    return tuple(table for table in (units(profile), waits(profile)) if table.rows)


def launches(profile: Profile) -> CountTable:
    """Return time, traffic and cache hit rates of each launch."""
    return CountTable(
        title="Kernels as Nsight Compute ran them",
        columns=(
            ("Kernel", False), ("Time", True), ("DRAM read", True), ("DRAM written", True), ("L1 hits", True),
            ("L2 hits", True), ("Warps, of most", True), ("Multiprocessors at work", True),
        ),
        rows=tuple(_launch(one) for one in profile.launches),
        note="Times are those under the profiler, caches emptied before each run; they are no benchmark.",
    )  # fmt: skip


def _launch(launch: LaunchProfile) -> tuple[str, ...]:
    took = launch.duration_s
    busy, elapsed = launch.metric(names.BUSY_CYCLES), launch.metric(names.ELAPSED_CYCLES)
    return (
        kernel_name(launch),
        duration(took) if took is not None else _DASH,
        _bytes(launch.metric(names.DRAM_READ)),
        _bytes(launch.metric(names.DRAM_WRITE)),
        _percent(launch.metric(names.L1_HITS)),
        _percent(launch.metric(names.L2_HITS)),
        _percent(launch.metric(names.ACHIEVED_OCCUPANCY)),
        share(busy / elapsed) if busy is not None and elapsed else _DASH,
    )


def units(profile: Profile) -> CountTable:
    """Return the utilisation of each unit, the busiest first."""
    found = loads(profile) if is_measured(profile) else ()
    return CountTable(
        title="How busy each unit was (Nsight Compute)",
        columns=(("Unit", False), ("Of its peak", True), ("Metric", False)),
        rows=tuple((one.unit, share(one.fraction), one.metric) for one in found),
        note="Over all launches, each by its time. Below 60 % no unit is the limit: warps wait.",
    )


def waits(profile: Profile) -> CountTable:
    """Return the stall reasons of the longest launch's warps."""
    found = stalls(profile)
    whole = sum(found.values())
    return CountTable(
        title="What a warp's time goes to (Nsight Compute)",
        columns=(("Reason", False), ("Warps an issue", True), ("Share", True)),
        rows=tuple(
            (name.replace("_", " "), f"{value:.2f}", share(value / whole))
            for name, value in found.items()
            if value / whole >= _SHOWN
        ),
        note="Of the longest launch. “long scoreboard” waits for global or local memory, “short” for shared "
        "memory, “lg throttle” for a place in the queue of loads and stores; “selected” issues.",
    )


def _percent(value: float | None) -> str:
    return _DASH if value is None else share(value / 100)


def _bytes(value: float | None) -> str:
    return _DASH if value is None else scaled(value, "B")

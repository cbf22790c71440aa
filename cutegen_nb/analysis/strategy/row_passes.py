"""Times that the rows of a reduction are asked of global memory, between a least and a most.

Counters do not name tensors. A launch cannot load more distinct bytes of the parameters than they have, so
that the rest are distinct bytes of the rows. Loads of parameters that every row needs are known only where
they are asked for anew in each row; a kernel that keeps them for several rows leaves a range.
"""

from __future__ import annotations

from cutegen_nb.analysis.bottleneck.full_grid import values_passed_bytes
from cutegen_nb.analysis.problem.extents import bytes_asked_once, largest_given, product_of, rows_of
from cutegen_nb.core.graph import TensorSpec
from cutegen_nb.core.problem import Workload
from cutegen_nb.core.profile import SECTOR_BYTES, Access, Counters, LaunchProfile, Profile

_LOADED = frozenset({"load", "async-copy", "bulk-load"})
"""Kinds of global accesses that read, as counters name them."""
_WHOLE = 0.95
"""Share of the largest tensor's bytes from which a launch goes through all of it: counts may be sampled."""
_MOSTLY = 0.5
"""Share of those bytes that are left, without one load of all else that is given, if the rows are what it
loads."""


def row_passes(profile: Profile, run: Workload) -> tuple[float, float] | None:
    """Return the least and the most times that a call asks for its largest tensor, the one with the rows.

    `run` is the workload at the profile's size. None where no rows are reduced, for products, and without
    loads by kind.
    """
    largest = largest_given(run)
    asked = _asked(profile.counters)
    if largest is None or not asked or rows_of(run) is None or product_of(run):
        return None
    streamed = max(1.0, sum(_streamed(launch, run, largest) for launch in profile.launches))
    beyond = asked - bytes_asked_once(run)
    if beyond >= -(1 - _WHOLE) * largest.size_bytes:
        # Every row asks for its parameters anew, so that all further loads are of rows.
        found = max(streamed, 1 + max(0, beyond) / largest.size_bytes)
        # Values that an earlier launch passes on are loaded too, over and over at a small size.
        return streamed if values_passed_bytes(profile, run) else found, found
    return streamed, max(streamed, (asked - _others_bytes(run, largest)) / largest.size_bytes)


def _asked(counters: Counters) -> int:
    """Bytes loaded, by ideal sectors: a broadcast in a warp counts once, and coalescing is left out."""
    accesses = [counters.gmem_accesses.get(kind, Access()) for kind in _LOADED]
    return sum(access.ideal for access in accesses) * SECTOR_BYTES


def _others_bytes(run: Workload, largest: TensorSpec) -> int:
    given = (*run.graph.inputs, *run.graph.parameters)
    return sum(value.spec.size_bytes for value in given) - largest.size_bytes


def _streamed(launch: LaunchProfile, run: Workload, largest: TensorSpec) -> float:
    """Return the least share of the largest tensor that a launch loads; 1 where it goes through all of it."""
    accesses = launch.counters.gmem_accesses
    stores = sum(accesses.get(kind, Access()).ideal for kind in ("store", "bulk-store"))
    loaded = max(0, launch.gmem_distinct_sectors - stores) * SECTOR_BYTES
    rest = max(0, loaded - _others_bytes(run, largest))
    whole = loaded >= _WHOLE * largest.size_bytes and rest >= _MOSTLY * largest.size_bytes
    return 1.0 if whole else min(1.0, rest / largest.size_bytes)

"""CTAs of a launch at the problem's full size, from a launch at a smaller one."""

from __future__ import annotations

import math

from cutegen_nb.analysis.problem.extents import Rows, product_of, rows_of
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.profile import LaunchProfile, Profile, ProfileSource

_WORK_A_THREAD_BYTES = 1024
"""Least bytes per thread from which a single CTA is not expected to be split at full size: 64 accesses of 128
bits. A tile of a product that one CTA computes whole has fewer."""
_SMALL_FRACTION = 0.1
"""Share of the heaviest launch's loads below which a later launch completes its partial results."""
_FEW_STORED = 0.05
"""Bytes stored ÷ bytes loaded by a launch up to which it stores partial sums or statistics, and no tensor."""
_VALUE_BYTES = 4
"""Bytes of a partial sum: a float32, whatever the type of the data."""


def is_scaled(profile: Profile, facts: ProblemFacts) -> bool:
    """Return whether a profile was taken at a smaller size than the problem's own."""
    return profile.source is ProfileSource.SIMULATED and facts.scaled.least_bytes != facts.full.least_bytes


def completes_partials(profile: Profile, run: Workload) -> bool | None:
    """Return whether atomics, or a launch after a heavy one, complete sums that CTAs share.

    A later launch may do that alone, and then is small, or before it goes through the rows again. `run` is
    the workload at the profile's size. Where it reduces the results of its rows further, a small launch does
    that, and is no sign of shared rows. None where launches pass values on and nothing tells what they are.
    """
    loads = [launch.counters.gmem_load_bytes for launch in profile.launches]
    atomics = any(
        access.requests
        for launch in profile.launches
        for kind, access in launch.counters.gmem_accesses.items()
        if kind in {"atomic", "reduction"}
    )
    rows, results = rows_of(run), sum(spec.elements for spec in run.graph.output_specs)
    small = any(
        0 < load <= _SMALL_FRACTION * max(loads[:index])
        for index, load in enumerate(loads)
        if index and max(loads[:index])
    )
    if atomics or (small and not (rows and results < rows.count)):
        return True
    answers = {_stores_parts_of_rows(launch, rows) for launch in _passing_values(profile, run)}
    # A launch of a product passes on a tensor of finished or of partial results: bytes do not tell which.
    if rows is None and product_of(run) and len(profile.launches) > 1:
        answers.add(None)
    return True if True in answers else None if None in answers else False


def values_passed_bytes(profile: Profile, run: Workload) -> int:
    """Return the bytes of the partial sums and statistics that launches store for later ones.

    Tensors are not counted: a launch that stores one stores more than a twentieth of what it loads.
    """
    return sum(launch.counters.gmem_store_bytes for launch in _passing_values(profile, run))


def _passing_values(profile: Profile, run: Workload) -> list[LaunchProfile]:
    """Launches that store few values, which are no output, before others."""
    outputs = {spec.size_bytes for spec in run.graph.output_specs}
    return [
        launch
        for launch in profile.launches[:-1]
        if 0 < launch.counters.gmem_store_bytes <= _FEW_STORED * launch.counters.gmem_load_bytes
        and launch.counters.gmem_store_bytes not in outputs
    ]


def _stores_parts_of_rows(launch: LaunchProfile, rows: Rows | None) -> bool | None:
    """Return whether the few values that a launch stores belong to parts of rows; None if nothing tells.

    There are then more CTAs than rows, each with a value at least, and more values than statistics of rows.
    """
    if rows is None:
        return None
    ctas, values = math.prod(launch.grid), launch.counters.gmem_store_bytes / _VALUE_BYTES
    if ctas > rows.count and values >= ctas and values > rows.count * rows.statistics:
        return True
    # One CTA a row at most, and no more values than each row has statistics.
    return False if ctas <= rows.count and values <= rows.count * max(2, rows.statistics) else None


def ctas_at_full_size(launch: LaunchProfile, profile: Profile, facts: ProblemFacts) -> float:
    """Return the CTAs that a launch would have at the problem's full size.

    CTAs that take whole rows, or whole outputs of a product, grow with their number; a longer row gives no
    more. Other grids grow with the bytes. A single CTA with much work for each thread is taken as it is: a
    kernel that spreads its work would have done so already.
    """
    ctas = math.prod(launch.grid)
    least, full = facts.scaled.least_bytes, facts.full.least_bytes
    if not is_scaled(profile, facts) or not least:
        return ctas
    rows, full_rows = rows_of(facts.scaled), rows_of(facts.full)
    # With as many CTAs as rows, or fewer, each takes whole rows, unless a later step joins parts of them.
    if (
        rows
        and full_rows
        and rows.count > 1
        and ctas <= rows.count
        and not completes_partials(profile, facts.scaled)
    ):
        return max(1.0, ctas * full_rows.count / rows.count)
    product, full_product = product_of(facts.scaled), product_of(facts.full)
    if product and full_product and not rows:
        return ctas * max(1.0, full_product.outputs / product.outputs)
    if ctas == 1 and least / math.prod(launch.block) >= _WORK_A_THREAD_BYTES:
        return ctas
    return ctas * max(1.0, full / least)

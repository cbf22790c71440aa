"""Physical floor of a latency: findings for times that the device's measured ceilings do not allow."""

from __future__ import annotations

from cutegen_nb.core.finding import Finding, Severity

ROOF_SLACK = 0.85
"""Share of the floor that a time must reach: a kernel that only reads can be faster than a copy."""
READ_SLACK = 0.5
"""The same for reading inputs: reading is faster than a copy, and an overwritten cache may hold a little."""
_LEAST_READ_BYTES = 16 << 20
"""Fewest bytes of inputs for the floor of reading: below, a launch takes as long as the reading."""


def above_roof(median_ms: float, least_bytes: int, bandwidth: float, cache_bytes: int) -> Finding | None:
    """Finding for a time shorter than the memory traffic takes; None for a possible time.

    `bandwidth` is in bytes/s. Problems of less than four times the L2 are left out: their outputs may stay in
    the cache.
    """
    if least_bytes < 4 * cache_bytes:
        return None
    # Bytes ÷ bandwidth: every kernel moves the least traffic at least once.
    floor_ms = least_bytes / bandwidth * 1e3
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than memory allows: {least_bytes / 1e9:.3g} GB at the measured "
        f"{bandwidth / 1e12:.3g} TB/s take {floor_ms:.4g} ms. Some of the work is not done."
    )
    return Finding(kind="above-roof", message=message)


def faster_than_reading_inputs(median_ms: float, read_bytes: int, bandwidth: float) -> Finding | None:
    """Finding for a time shorter than reading the inputs from memory takes; None for a possible time.

    `bandwidth` is in bytes/s. The cache was overwritten before each timed call, so inputs come from memory
    whatever the problem's size. Outputs may stay in the cache and are not counted.
    """
    floor_ms = read_bytes / bandwidth * 1e3
    if read_bytes < _LEAST_READ_BYTES or median_ms >= floor_ms * READ_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than memory allows: the {read_bytes / 1e6:.3g} MB that have to be read, "
        f"and that no cache holds, take {floor_ms:.4g} ms at the measured {bandwidth / 1e12:.3g} TB/s. Some "
        "of the work is not done."
    )
    return Finding(kind="above-roof", message=message)


def fewer_operations(median_ms: float, flops: int, peak_flops: float) -> Finding | None:
    """Flag for a time shorter than the reference's arithmetic takes at `peak_flops` FLOP/s; None otherwise.

    A flag refuses nothing, because algebra may need fewer operations. The sum over a product's columns is a
    product with summed weights. A product with a diagonal matrix scales rows. Half of a symmetric result is
    enough.
    """
    # A peak of 0 is unknown and gives no floor.
    floor_ms = flops / peak_flops * 1e3 if peak_flops else 0.0
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than the reference's {flops / 1e9:.4g} GFLOP take at the highest "
        f"measured {peak_flops / 1e12:.4g} TFLOP/s ({floor_ms:.4g} ms). An identity may explain it: a sum "
        "taken before a product, a diagonal, triangular or symmetric factor, a constant folded."
    )
    return Finding(kind="fewer-operations", message=message, severity=Severity.FLAG)

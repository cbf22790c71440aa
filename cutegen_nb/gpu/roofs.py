"""What no kernel can beat on this device: findings for times that its measured ceilings do not allow."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Finding

ROOF_SLACK = 0.85
"""A kernel that only reads can be a little faster than the copy that the bandwidth was measured with."""
READ_SLACK = 0.5
"""A copy is slower than reading alone, and an overwritten cache may hold a little all the same."""
_LEAST_READ_BYTES = 16 << 20
"""Below this a launch takes as long as the reading."""


def above_roof(median_ms: float, least_bytes: int, bandwidth: float, cache_bytes: int) -> Finding | None:
    """The finding for a time that memory does not allow; None for a possible one.

    Problems of less than four times the L2 are left out: their outputs may stay in the cache.
    """
    if least_bytes < 4 * cache_bytes:
        return None
    floor_ms = least_bytes / bandwidth * 1e3
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than memory allows: {least_bytes / 1e9:.3g} GB at the measured "
        f"{bandwidth / 1e12:.3g} TB/s take {floor_ms:.4g} ms. Some of the work is not done."
    )
    return Finding(kind="above-roof", message=message)


def above_reading_roof(median_ms: float, read_bytes: int, bandwidth: float) -> Finding | None:
    """The finding for a time in which inputs that no cache holds cannot be read; None for a possible one.

    The cache was overwritten before each timed call, so that what is read comes from memory whatever the
    problem's size; what is written may stay in the cache.
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


def above_arithmetic_roof(median_ms: float, flops: int, peak_flops: float) -> Finding | None:
    """The finding for a time in which this GPU's fastest units cannot do the problem's arithmetic."""
    floor_ms = flops / peak_flops * 1e3 if peak_flops else 0.0
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than arithmetic allows: {flops / 1e9:.4g} GFLOP at the highest measured "
        f"{peak_flops / 1e12:.4g} TFLOP/s take {floor_ms:.4g} ms. Some of the work is not done, or the "
        "problem can be had with less of it."
    )
    return Finding(kind="above-roof", message=message)

"""Numbers of a graph that depend on the problem's size: the divisor of a mean, 1 / √width, 9.21 / width."""

from __future__ import annotations

import math

from cutegen_nb.authors.offline.graph.ir import Count, Extent, Name, Operand
from cutegen_nb.authors.offline.graph.reductions import Building
from cutegen_nb.core.errors import Declined

_POWERS = (1.0, -1.0, 0.5, -0.5)
"""Powers of an extent that a number may be a multiple of."""
_ROUNDING = 1e-12
"""Relative difference below which two Python floats are the same number."""


def sized_number(building: Building, full: float, scaled: float) -> Operand:
    """Number with one value at each size: a count, or a scalar computed from an extent. Raises Declined.

    The scalar is a factor, the same at both sizes, times a power of a given tensor's extent.
    """
    if isinstance(full, int) and isinstance(scaled, int):
        return Count(Extent(full, scaled))
    extents = dict.fromkeys(extent for buffer in building.buffers.values() for extent in buffer.shape)
    for extent in extents:
        for power in _POWERS:
            factor = full / extent.full**power
            if extent.full != extent.scaled and math.isclose(
                factor, scaled / extent.scaled**power, rel_tol=_ROUNDING
            ):
                return Name(_power(building, extent, power, factor))
    if full == int(full) and scaled == int(scaled):
        return Count(Extent(int(full), int(scaled)))
    raise Declined(f"the number {full:g} depends on the problem's size in a way that is not recognised")


def _power(building: Building, extent: Extent, power: float, factor: float) -> str:
    name = building.add("fill", (Count(extent),), (), "float32")
    if abs(power) != 1:
        name = building.add("sqrt", (Name(name),), (), "float32")
    if power < 0:
        return building.add("div", (factor, Name(name)), (), "float32")
    return building.add("mul", (Name(name), factor), (), "float32")

"""Elapsed times on the simulator: the number that a program gets where a GPU would report milliseconds."""

from __future__ import annotations

from typing import Self

NO_TIME = 999_999.0
"""Value that stands for a time that was not measured, whatever its unit."""


class UnknownTime(float):
    """Elapsed time that was not measured: always 999999, and so is everything computed from it.

    A bandwidth, a rate or a speedup made from it prints as 999999 too, so that none passes for a figure. The
    value is finite, so that statistics of it can be taken, and larger than any time a program waits for, so
    that a loop of measurements ends. As an integer it is 0, so a repeat count that a program derives from an
    estimate is the smallest one. A search for the fastest configuration settles on its first.
    """

    __slots__ = ()

    def __new__(cls, *_: object) -> Self:
        """Ignore the arguments: every instance has the same value."""
        return super().__new__(cls, NO_TIME)

    def _unknown(self, *_: object) -> UnknownTime:
        return UnknownTime()

    def _nothing(self, *_: object) -> int:
        return 0

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _unknown
    __int__ = __trunc__ = __floor__ = __ceil__ = _nothing

    def __round__(self, digits: int | None = None) -> int | UnknownTime:  # type: ignore[override]
        return 0 if digits is None else UnknownTime()

    def __reduce__(self) -> tuple[type[UnknownTime], tuple[()]]:
        return UnknownTime, ()

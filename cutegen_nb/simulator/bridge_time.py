"""What programs get where a GPU would give them a time."""

from __future__ import annotations

import math
from typing import Self


class UnknownTime(float):
    """A span that nobody measured.

    It prints as ``nan``, and so does everything computed from it: a bandwidth, a rate, a speedup.  In two
    things it is no ordinary NaN, so that programs that time themselves run on: it is finite, hence less than
    infinity (a search for the fastest configuration settles on its first), and as a whole number it is 0
    (what works out how often to repeat from an estimate repeats as little as it may).
    """

    __slots__ = ()

    def __new__(cls, *_: object) -> Self:
        """Always the same value."""
        return super().__new__(cls, math.nan)

    def _unknown(self, *_: object) -> UnknownTime:
        return UnknownTime()

    def _nothing(self, *_: object) -> int:
        return 0

    def _below(self, other: object) -> bool:
        return other == math.inf

    def _above(self, other: object) -> bool:
        return other == -math.inf

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown
    __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _unknown
    __int__ = __trunc__ = __floor__ = __ceil__ = _nothing
    __lt__ = __le__ = _below
    __gt__ = __ge__ = _above

    def __round__(self, digits: int | None = None) -> int | UnknownTime:  # type: ignore[override]
        return 0 if digits is None else UnknownTime()

    def __reduce__(self) -> tuple[type[UnknownTime], tuple[()]]:
        return UnknownTime, ()

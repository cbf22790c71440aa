"""Change of a register from one period of a loop to the next, and its value after skipped periods."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers import values
from cutegen_nb.simulator.numbers.values import Array, Separable, Value

_RANK = 2
"""Dimensions of a value that differs between lanes."""


class Unchanged:
    """Type of :data:`UNCHANGED`."""


UNCHANGED = Unchanged()
"""Step of a register that has the same value after every period."""


def step_of(first: Value, middle: Value, last: Value, active: Array | None) -> Value | Unchanged | None:
    """Change of a register over one period, if it was the same in two periods.

    Args:
        first: value before the first period.
        middle: value between the two.
        last: value after the second.
        active: lanes that count, bool of shape (1 or ctas, threads); None for all.

    Returns:
        The change modulo 2**bits, unsigned, of the narrowest shape; None if the two changes differ.
    """
    if first is middle and middle is last:
        return UNCHANGED
    a, b, c = plain(first), plain(middle), plain(last)
    if c.dtype == np.bool_:
        return UNCHANGED if _all((a == b) & (b == c), active) else None
    with np.errstate(all="ignore"):
        early, late = np.subtract(b, a), np.subtract(c, b)
    if not _all(early == late, active):
        return None
    if active is not None:
        late = np.where(active, late, late.dtype.type(0))
    narrow = _narrowed(late)
    return UNCHANGED if not narrow.ndim and not narrow else narrow


def same_steps(early: tuple[Value, Value], late: tuple[Value, Value], active: Array | None) -> bool:
    """Return whether a register changed in the same way between two pairs of values."""
    if early[0] is early[1] and late[0] is late[1]:
        return True
    a, b, c, d = plain(early[0]), plain(early[1]), plain(late[0]), plain(late[1])
    if d.dtype == np.bool_:
        return _all((a == c) & (b == d), active)
    with np.errstate(all="ignore"):
        return _all(np.subtract(b, a) == np.subtract(d, c), active)


def advanced(value: Value, step: Value, periods: int) -> Value:
    """Value after ``periods`` more periods; a :class:`Separable` one stays so where the step allows it."""
    bits = 8 * step.dtype.itemsize
    with np.errstate(all="ignore"):
        amount = np.multiply(step, step.dtype.type(periods % (1 << bits)))
        kept = value if value.__class__ is Separable else plain(value)
        return values.add(kept, amount)


def plain(value: Value) -> Value:
    """View a value as unsigned bits, lane by lane; a predicate stays one."""
    if value.__class__ is Separable:
        return value.view(value.unsigned)
    if value.dtype.kind in "ub":
        return value
    return value.view(np.dtype(f"u{value.dtype.itemsize}"))


def _all(truth: Value, active: Array | None) -> bool:
    if active is None or not truth.ndim:
        return bool(truth.all())
    return bool((truth | ~active).all())


def _narrowed(step: Value) -> Value:
    """Step as a scalar, a row or a column where all lanes, CTAs or threads agree."""
    if step.ndim < _RANK:
        return step
    if (step == step[:1, :1]).all():
        return step[0, 0]
    if (step == step[:1]).all():
        return step[:1]
    return step[:, :1] if (step == step[:, :1]).all() else step

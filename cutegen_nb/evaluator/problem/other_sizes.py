"""Choice of other sizes to try a candidate at: off alignment, one row, past thresholds in its source.

A size that is judged may be smaller than the problem's own. A size "decides" if wrong values there count
against the candidate, because it stands for the problem's own size; at other sizes they only raise a flag.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.evaluator.problem.scaling import literals_of, shrunk
from cutegen_nb.evaluator.problem.thresholds import Threshold

_MOST_ALIGNMENT = 256
"""Largest power of two that a new extent keeps as a divisor."""
_MOST_SAME_SIDE = 2
"""Sizes at most that cross a threshold and do not decide."""
_MOST_TIMES = 4
"""Elements of a larger size ÷ elements of the size judged, at most."""
_MOST_STRETCHED = 2
"""Extents at most that are stretched to the problem's own length."""
_LEAST_EXTENT = 4
"""Smallest value to which another extent is shrunk to make room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSize:
    """Another size of a problem."""

    words: str
    """Description of the change, to follow "With"."""
    values: dict[int, int]
    """New value by the literal's value in the file."""
    decides: bool = False
    """True if wrong values decide, because the size stands for the problem's own size."""
    nearer: bool = False
    """True if the size only lies nearer to the problem's own than the size judged. One such size is tried."""
    guessed: bool = False
    """True if one extent crosses a product that stands nowhere in the source; it counts CTAs at best."""
    control: dict[int, int] | None = None
    """`values` without the stretched extent. Wrong values decide only if the candidate is right here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeLiteral:
    """Integer literal of the problem's file that is an extent of an input."""

    full: int
    """Value in the file."""
    now: int
    """Value at the size being judged."""
    power: int = 1
    """Number of the first input's dimensions of this extent, at least 1: elements grow with this power."""


def extents(
    problem: Problem, rewrites: Sequence[Rewrite], shapes: Sequence[Sequence[int]]
) -> list[SizeLiteral]:
    """Find the literals whose present value is an extent of an input, in the order of `shapes`."""
    scaled = {item.full: item.scaled for item in rewrites}
    values = {value: scaled.get(value, value) for _, _, value in literals_of(problem.source)}
    found: list[SizeLiteral] = []
    for extent in (extent for shape in shapes for extent in shape):
        for full, now in values.items():
            item = SizeLiteral(full=full, now=now, power=max(1, list(shapes[0]).count(now)))
            if now == extent and item not in found:
                found.append(item)
    return found


def rewrites_for(problem: Problem, now: Sequence[Rewrite], values: dict[int, int]) -> tuple[Rewrite, ...]:
    """Return the rewrites `now` with the literals of `values` (new value by value in the file) replaced."""
    scaled = {item.full: item.scaled for item in now} | values
    return tuple(
        Rewrite(line=line, column=column, full=value, scaled=scaled[value])
        for line, column, value in literals_of(problem.source)
        if scaled.get(value, value) != value
    )


def sizes(
    found: Sequence[SizeLiteral],
    elements: tuple[int, int],
    limits: Sequence[Threshold],
    stretch: float = math.inf,
    room: float = math.inf,
) -> Iterator[ProblemSize]:
    """Yield sizes to try, those that decide first.

    Args:
        found: Literals that set extents.
        elements: Elements of the first input at the problem's own size, and at the size judged.
        limits: Thresholds in the candidate's source.
        stretch: Factor by which one extent may grow at most.
        room: Elements of the first input above which a size off alignment has its other extents made smaller.
    """
    if not found:
        return
    yield from _nearer(found)
    yield from _stretched(found, elements[1], stretch)
    same_side: list[ProblemSize] = []
    for limit in limits:
        for item in found:
            size = _across(item, limit)
            if size is not None:
                yield from _sorted_out(size, same_side)
        size = _elements_across(found[0], elements, limit)
        if size is not None:
            yield from _sorted_out(size, same_side)
    largest = max(found, key=lambda item: item.now)
    # Off alignment on both sides: a tail of almost a whole vector or tile, and a short one.
    for new in (largest.now - 1, largest.now + 3):
        if new > 0:
            others = _made_small(largest, found, elements[1], room) or {}
            smaller = [one for one in found if others.get(one.full, one.now) != one.now]
            words = "".join(f" and {one.now} made {others[one.full]}" for one in smaller)
            yield ProblemSize(
                words=f"{largest.now} made {new}{words}",
                values={largest.full: new} | {one.full: others[one.full] for one in smaller},
            )
    if found[0].now > 1:
        yield ProblemSize(words=f"{found[0].now} made 1", values={found[0].full: 1})
    yield from same_side[:_MOST_SAME_SIDE]


def _nearer(found: Sequence[SizeLiteral]) -> Iterator[ProblemSize]:
    """Yield larger sizes of the extent that was shrunk most, of the same alignment; the largest first."""
    item = max(found, key=lambda one: one.full / one.now)
    chain = [item.full]
    while chain[-1] > item.now and shrunk(chain[-1], 2) < chain[-1]:
        chain.append(shrunk(chain[-1], 2))
    for value in chain:
        # An extent of p dimensions multiplies the elements by the p-th power of its growth.
        if value > item.now and (value / item.now) ** item.power <= _MOST_TIMES:
            words = f"{item.now} made {value}, nearer to the problem's own {item.full}"
            yield ProblemSize(words=words, values={item.full: value}, decides=True, nearer=True)


def _stretched(found: Sequence[SizeLiteral], elements: int, stretch: float) -> Iterator[ProblemSize]:
    """Yield sizes with one extent of the problem's own length, or the longest that fits, the others shrunk.

    Only such a length shows limits on what is kept in registers or shared memory, and loops of a fixed number
    of iterations.
    """
    for item in sorted(found, key=lambda one: one.now / one.full)[:_MOST_STRETCHED]:
        chain = [item.full]
        while chain[-1] > item.now and shrunk(chain[-1], 2) < chain[-1]:
            chain.append(shrunk(chain[-1], 2))
        for new in chain:
            longer = item.now < new <= stretch * item.now
            # Elements that the rest may have, once this extent has grown in all of its dimensions.
            room = _MOST_TIMES * elements / (new / item.now) ** item.power
            others = _made_small(item, found, elements, room) if longer else None
            if others is None:
                continue
            small = [one for one in found if others.get(one.full, one.now) != one.now]
            if small:
                own = "the problem's own" if new == item.full else f"nearer to the problem's own {item.full}"
                rest = "".join(f" and {one.now} made {others[one.full]}" for one in small)
                yield ProblemSize(
                    words=f"{item.now} made {new}, {own},{rest}",
                    values={item.full: new, **others},
                    decides=True,
                    control=others,
                )
            break


def _made_small(
    item: SizeLiteral, found: Sequence[SizeLiteral], elements: int, room: float
) -> dict[int, int] | None:
    """Shrink the extents other than `item` until at most `room` elements are left; None if they cannot be."""
    size = float(elements)
    powers = {one.full: one.power for one in found}
    values = {one.full: one.now for one in found if one.full != item.full}
    while size > room:
        largest = max(values, key=lambda full: values[full], default=None)
        if largest is None or values[largest] < 2 * _LEAST_EXTENT:
            return None
        smaller = shrunk(values[largest], _LEAST_EXTENT)
        if smaller >= values[largest]:
            return None
        size *= (smaller / values[largest]) ** powers[largest]
        values[largest] = smaller
    return values


def _sorted_out(size: ProblemSize, same_side: list[ProblemSize]) -> Iterator[ProblemSize]:
    if size.decides:
        yield size
    else:
        same_side.append(size)


def _across(item: SizeLiteral, limit: Threshold) -> ProblemSize | None:
    """Move an extent to the other side of a threshold, with the same alignment; None if that is below 1."""
    step = _alignment(item.now)
    below = item.now < limit.value
    # The smallest multiple of `step` from the threshold on, or the largest below it.
    new = -(-limit.value // step) * step if below else (limit.value - 1) // step * step
    if new <= 0:
        return None
    side = "from" if below else "below"
    return ProblemSize(
        words=f"{item.now} made {new}, {side} the source's {limit.words}",
        values={item.full: new},
        decides=_lies_beyond(item.full, limit, below=below),
        guessed=limit.is_product,
    )


def _elements_across(item: SizeLiteral, elements: tuple[int, int], limit: Threshold) -> ProblemSize | None:
    """Move the first extent so that the first input's elements come to the other side of a threshold."""
    full, now = elements
    # elements = each · extent**power, solved for the extent.
    each = now / item.now**item.power
    below = now < limit.value
    root = (limit.value / each) ** (1 / item.power)
    new = math.ceil(root) if below else math.ceil(root) - 1
    if new <= 0 or new == item.now:
        return None
    count = round(each * new**item.power)
    side = "from" if below else "below"
    return ProblemSize(
        words=f"{item.now} made {new}: {count} elements, {side} the source's {limit.words}",
        values={item.full: new},
        decides=_lies_beyond(full, limit, below=below),
    )


def _lies_beyond(full: int, limit: Threshold, *, below: bool) -> bool:
    """Return whether the problem's own size lies on the other side of a threshold than the one judged."""
    if limit.is_equality:
        return below and full == limit.value
    return below == (full >= limit.value)


def _alignment(value: int) -> int:
    return min(value & -value, _MOST_ALIGNMENT)

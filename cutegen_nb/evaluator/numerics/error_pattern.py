"""Patterns of wrong elements: zeros, a factor, a shift, a tail, whole tiles, memory never written.

A pattern names the likely bug faster than single wrong values do.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from cutegen_nb.core.wrong_values import WrongKind, WrongValues
from cutegen_nb.evaluator.numerics.error_tiles import Tiles, by_tiles
from cutegen_nb.evaluator.numerics.poison import poisoned

_LARGEST_EXAMINED = 1 << 22
"""Elements of an output that is more than twice as large that are looked at: its front, or its back where the
front is right."""
_NEARLY_ALL = 0.999
"""Share of elements that have to match another tensor for the error to count as explained by that tensor."""
_SMALL = 0.02
"""Largest |error| ÷ (|expected| + rms) that counts as lost precision; of larger errors the place is named."""
_HINTS = {
    WrongKind.UNWRITTEN: "the grid is rounded down, or a guard or an early end skips threads that have work",
    WrongKind.ZEROS: "the result of the computation is not what is stored, or every predicate is false",
    WrongKind.ONE_VALUE: "all threads read or write one element: an index that does not depend on the thread",
    WrongKind.FACTOR: "a mean divided twice or never, a sum over threads that hold copies, a scale left out",
    WrongKind.OFFSET: "a bias added once a partial sum or not at all, an accumulator that starts elsewhere",
    WrongKind.AN_INPUT: "the computation is skipped and its operand stored",
    WrongKind.TRANSPOSED: "a shape or stride given (N, K) for (K, N), or row and column swapped in an index",
    WrongKind.SHIFTED: "an index off by one: from 1, an inclusive bound, an exclusive scan",
    WrongKind.NAN: "inf − inf in an online maximum, 0 ÷ 0 over no elements, memory read before it is written",
    WrongKind.ZERO_ELEMENTS: "a predicate that is false there, or a result overwritten by another CTA",
    WrongKind.TAIL: "the guard of the last tile: it cuts off, or computes with what lies beyond the end",
    WrongKind.RUN: "one CTA's or one row's work: its coordinate, or a race for it",
    WrongKind.STRIDE: "one lane of a vector or fragment: its index within the vector, or the layout's order",
    WrongKind.TILES: "a CTA's coordinate: two CTAs for a tile, its rows and columns swapped, a tile left out",
    WrongKind.DIMENSION: "the bound or the stride of that dimension",
    WrongKind.SMALL: "precision: sums in a narrow type, an approximation, or another formula for the same",
    WrongKind.SCATTERED: "a race: a barrier is missing between writing and reading shared memory",
}
"""Usual cause of each kind of pattern, as shown to the author of the kernel."""
_EVERYWHERE = (
    "another computation: an operation left out, a wrong constant or operand, or one order for another"
)
"""Usual cause when no element is right, or few by chance; a race would leave more of them right."""
_ALMOST_EVERYWHERE = 0.9
"""Share of wrong elements from which on it is that cause: within a tolerance some are right by chance."""


def describe(
    candidate: torch.Tensor,
    expected: torch.Tensor,
    element: float,
    rms: float,
    inputs: tuple[torch.Tensor, ...],
) -> WrongValues | None:
    """Name the pattern of the wrong elements of `candidate`.

    `candidate` and `expected` have one shape; `element` and `rms` make the element tolerance (see
    `Tolerance`). `inputs` are compared with the output as well. Of a large output without unwritten
    elements only the front is looked at, or the back where the front is right.

    None if no element looked at is outside the tolerance, and for empty and complex outputs.
    """
    if candidate.numel() == 0 or candidate.is_complex():
        return None
    unwritten = poisoned(candidate)
    if bool(unwritten.any()):
        return _with_figures(_unwritten(unwritten), candidate, unwritten, int(unwritten.sum()))
    if candidate.numel() > 2 * _LARGEST_EXAMINED:
        candidate, expected, inputs = *_wrong_end(candidate, expected, element, rms), ()
    found, want = candidate.double(), expected.double()
    bad = ~_close(found, want, element, rms)
    if not bool(bad.any()):
        return None  # only the relative L2 error is too large: a little everywhere
    tiles = by_tiles(bad)
    # The most specific patterns first: an output of zeros is also "every element wrong".
    named = (
        _whole(found, want, bad, element, rms)
        or _an_input(found, inputs)
        or _transposed(found, want, bad, element, rms)
        or _shifted(found, want, bad, element, rms)
        or _all_nan_or_zero(found, bad)
        or _small(found, want, bad, rms)
        or _placed(bad)
        or _in_tiles(tiles)
        or _within_quarter_of_dimension(bad)
        or _scattered(bad)
    )
    if named is None:
        return None
    placed = named if tiles is None else _with_tiles(named, tiles)
    return _with_figures(placed, found, bad, 0)


def _wrong_end(
    candidate: torch.Tensor, expected: torch.Tensor, element: float, rms: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut both tensors to the front of a large output, or to its back where the front is right."""
    found, want = candidate.reshape(-1), expected.reshape(-1)
    front = _close(found[:_LARGEST_EXAMINED].double(), want[:_LARGEST_EXAMINED].double(), element, rms)
    return (
        (found[-_LARGEST_EXAMINED:], want[-_LARGEST_EXAMINED:])
        if bool(front.all())
        else (found[:_LARGEST_EXAMINED], want[:_LARGEST_EXAMINED])
    )


def _named(kind: WrongKind, sentence: str) -> WrongValues:
    return WrongValues(kind=kind, sentence=sentence, hint=_HINTS.get(kind, ""))


def _with_figures(wrong: WrongValues, found: torch.Tensor, bad: torch.Tensor, unwritten: int) -> WrongValues:
    nan_count = 0 if unwritten or not found.is_floating_point() else int((found.isnan() & bad).sum())
    return replace(
        wrong,
        bad_count=int(bad.sum()),
        element_count=bad.numel(),
        nan_count=nan_count,
        unwritten_count=unwritten,
    )


def _with_tiles(wrong: WrongValues, tiles: Tiles) -> WrongValues:
    return replace(
        wrong, tile_shape=tiles.shape, tiles=tiles.shares, bad_tiles=tiles.bad, tile_count=tiles.count
    )


def _close(found: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> torch.Tensor:
    # inf − inf is NaN and never near: the second test accepts equal infinities, the third NaN for NaN. An
    # infinite expectation has an infinite tolerance, which would accept any finite number.
    near = ((found - want).abs() <= element * (want.abs() + rms)) & want.isfinite()
    return near | (found == want) | (found.isnan() & want.isnan())


def _unwritten(mask: torch.Tensor) -> WrongValues:
    """Describe the elements that still hold the poison: their number and the first of them."""
    named = _named(WrongKind.UNWRITTEN, _unwritten_text(mask))
    tiles = by_tiles(mask)
    return named if tiles is None else _with_tiles(named, tiles)


def _unwritten_text(mask: torch.Tensor) -> str:
    flat = mask.reshape(-1)
    count, size = int(flat.sum()), flat.numel()
    if count == size:
        return "no element was ever written: all still hold the nan that was put there before the run"
    first = int(flat.to(torch.uint8).argmax())
    what = "1 element was" if count == 1 else f"{count} elements were"
    where = f"from flat index {first} of {size}"
    if count == size - first:
        return f"{what} never written, at the end, {where}: the grid or the last block's bound stops short"
    return f"{what} never written, {where} on"


def _whole(
    found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> WrongValues | None:
    """Name a pattern of the output as a whole: zeros, one value, a constant factor or offset."""
    found, want = found.double(), want.double()
    if found.numel() == 1:
        return _one_number(float(found), float(want))
    if bool((found == 0).all()):
        return _named(WrongKind.ZEROS, "the output is all zeros")
    if bool((found == found.reshape(-1)[0]).all()):
        return _named(WrongKind.ONE_VALUE, f"every element is {float(found.reshape(-1)[0]):.6g}")
    # A quotient of an expected value near zero is noise. The median ignores a few elements wrong otherwise.
    usable = torch.isfinite(found) & torch.isfinite(want) & (want.abs() > 0.1 * rms)
    if int(usable.sum()) < 2:  # noqa: PLR2004 - two elements make a ratio
        return None
    factor = float((found[usable] / want[usable]).median())
    # A factor nearer to 1 than 8 tolerances is rounding. The product is held to 4: the median rounds too.
    if (
        factor != 0.0
        and abs(factor - 1.0) > 8 * element
        and bool(_close(found, want * factor, 4 * element, rms).all())
        and _explained(found, want * factor, bad, 4 * element, rms)
    ):
        return replace(
            _named(WrongKind.FACTOR, f"every element is {factor:.6g} times the expected one"), factor=factor
        )
    offset = float((found[usable] - want[usable]).median())
    if abs(offset) > 8 * element * rms and bool(_close(found, want + offset, 4 * element, rms).all()):
        return replace(_named(WrongKind.OFFSET, f"every element is off by {offset:+.6g}"), offset=offset)
    return None


def _one_number(value: float, expected: float) -> WrongValues | None:
    if value == 0.0:
        return _named(WrongKind.ZEROS, "the output is zero")
    if expected == 0.0 or value != value:  # noqa: PLR0124 - NaN
        return None
    factor = value / expected
    return replace(
        _named(WrongKind.FACTOR, f"the value is {factor:.6g} times the expected one"), factor=factor
    )


def _an_input(found: torch.Tensor, inputs: tuple[torch.Tensor, ...]) -> WrongValues | None:
    for position, tensor in enumerate(inputs):
        if tuple(tensor.shape) == tuple(found.shape) and bool((tensor.double() == found).all()):
            return _named(WrongKind.AN_INPUT, f"the output equals input {position}")
    return None


def _transposed(
    found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> WrongValues | None:
    if found.dim() < 2 or found.shape[-1] == 1 or found.shape[-2] == 1:  # noqa: PLR2004 - no matrix
        return None
    # The transposed values in memory order, in the shape of the output: also for a matrix that is not square.
    turned = want.transpose(-1, -2).contiguous().view(found.shape)
    if not _explained(found, turned, bad, element, rms):
        return None
    return _named(WrongKind.TRANSPOSED, "the last two dimensions are transposed")


def _explained(
    found: torch.Tensor, other: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> bool:
    """Return whether `found` equals `other`, over all elements and over the wrong ones alone.

    The wrong elements are judged by their own root mean square: beside a few far larger elements the
    tolerance from all elements would let any value pass.
    """
    if float(_close(found, other, element, rms).double().mean()) < _NEARLY_ALL:
        return False
    got, want = found[bad], other[bad]
    if not got.numel():
        return True
    finite = want[want.isfinite()]
    own = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    return float(_close(got, want, element, own).double().mean()) >= _NEARLY_ALL


def _shifted(
    found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> WrongValues | None:
    got, expected, wrong = found.reshape(-1), want.reshape(-1), bad.reshape(-1)
    for shift in (1, -1):
        if got.numel() < 8:  # noqa: PLR2004 - too few to tell
            return None
        # +1: element i + 1 holds the value of element i; -1: element i holds that of element i + 1.
        left, right = (got[1:], expected[:-1]) if shift == 1 else (got[:-1], expected[1:])
        if _explained(left, right, wrong[1:] if shift == 1 else wrong[:-1], element, rms):
            sentence = f"every element is its neighbour's: shifted by {shift:+d} in memory"
            return replace(_named(WrongKind.SHIFTED, sentence), step=shift)
    return None


def _all_nan_or_zero(found: torch.Tensor, bad: torch.Tensor) -> WrongValues | None:
    wrong = found[bad]
    if wrong.numel() == 0:
        sentence = "each element is within its gate, but the relative L2 error over all of them is not"
        return _named(WrongKind.SMALL, sentence)
    placed = _placed(bad) or _within_quarter_of_dimension(bad)
    where = placed.sentence if placed else ""
    if bool(wrong.isnan().all()):
        return _named(WrongKind.NAN, f"the wrong elements are all NaN; {where}".rstrip("; "))
    if bool((wrong == 0).all()):
        return _named(WrongKind.ZERO_ELEMENTS, f"the wrong elements are all zero; {where}".rstrip("; "))
    return None


def _small(found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, rms: float) -> WrongValues | None:
    """Name lost precision, if every wrong element is within `_SMALL` of its expected value."""
    share = ((found - want).abs() / (want.abs() + rms))[bad]
    if share.numel() == 0 or not bool((share <= _SMALL).all()):
        return None
    sentence = (
        f"every wrong element is nearly right: at most {100 * float(share.max()):.2g}% of its size away"
    )
    return _named(WrongKind.SMALL, sentence)


def _in_tiles(tiles: Tiles | None) -> WrongValues | None:
    """Name tiles of a matrix that are wrong throughout. For a vector a run or a stride says more."""
    if tiles is None or not tiles.whole or len(tiles.shape) == 1:
        return None
    shape = "×".join(map(str, tiles.shape))
    first = min(one.tile for one in tiles.shares)
    return _named(
        WrongKind.TILES,
        f"{tiles.bad} of {tiles.count} tiles of {shape} are wrong throughout, the first at {first}, and the "
        "others right",
    )


def _scattered(bad: torch.Tensor) -> WrongValues | None:
    count = int(bad.sum())
    if not count:
        return None
    if count >= _ALMOST_EVERYWHERE * bad.numel():
        sentence = f"almost every element is wrong: {count} of {bad.numel()}"
        return replace(_named(WrongKind.SCATTERED, sentence), hint=_EVERYWHERE)
    return _named(WrongKind.SCATTERED, f"{count} of {bad.numel()} elements are wrong, in no pattern")


def _placed(bad: torch.Tensor) -> WrongValues | None:
    """Name the place of the wrong elements: a tail, a run, a constant stride, slices of one dimension."""
    flat = bad.reshape(-1)
    indices = flat.nonzero().reshape(-1)
    count, size = indices.numel(), flat.numel()
    if count in {0, size}:
        everywhere = replace(_named(WrongKind.SCATTERED, "every element is wrong"), hint=_EVERYWHERE)
        return everywhere if count else None
    first, last = int(indices[0]), int(indices[-1])
    if count == last - first + 1:  # no right element between the first and the last wrong one
        at_end = last == size - 1
        place = "the end of the output" if at_end else f"flat indices {first} to {last}"
        kind = WrongKind.TAIL if at_end else WrongKind.RUN
        if count == 1:
            return _named(kind, f"one element is wrong, at flat index {first} of {size}")
        return _named(kind, f"{count} wrong elements in one run at {place}")
    steps = indices.diff()
    if bool((steps == steps[0]).all()):
        step = int(steps[0])
        sentence = f"every {step}th element from flat index {first} on is wrong"
        return replace(_named(WrongKind.STRIDE, sentence), step=step)
    for dimension in range(bad.dim()):
        some, every = _along(bad, dimension)
        touched, extent = int(some.sum()), bad.shape[dimension]
        # Each index of this dimension is wrong throughout or right throughout.
        if touched < extent and bool((some == every).all()):
            begin = int(some.to(torch.uint8).argmax())
            which = f"{touched} of {extent} indices of dimension {dimension}"
            return _named(WrongKind.DIMENSION, f"{which} are wrong throughout, from {begin} on")
    return None


def _within_quarter_of_dimension(bad: torch.Tensor) -> WrongValues | None:
    """Name a dimension of which at most a quarter of the indices hold every wrong element."""
    for dimension in range(bad.dim()):
        some, _ = _along(bad, dimension)
        touched, extent = int(some.sum()), bad.shape[dimension]
        if 0 < touched * 4 <= extent:
            begin = int(some.to(torch.uint8).argmax())
            which = f"{touched} of {extent} indices of dimension {dimension}"
            return _named(WrongKind.DIMENSION, f"the wrong ones lie in {which}, from {begin} on")
    return None


def _along(bad: torch.Tensor, dimension: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two masks over the indices of a dimension: some element is wrong, every element is wrong."""
    others = [d for d in range(bad.dim()) if d != dimension]
    return (bad.any(dim=others), bad.all(dim=others)) if others else (bad, bad)

"""What wrong elements have in common: the shortest way from a wrong result to its bug."""

from __future__ import annotations

from dataclasses import replace

import torch

from cutegen_nb.core.wrong_values import WrongKind, WrongValues
from cutegen_nb.gpu.wrong_tiles import Tiles, by_tiles

POISON_BYTE = 0x5A
"""Integer outputs are filled with this byte before a candidate writes them."""
OTHER_BYTE = 0x7B
"""Fills memory in a call that is to differ where the first one depended on what was there."""
_POISON_BITS = {
    torch.float64: (torch.int64, 0x7FF8_5A5A_5A5A_5A5A),
    torch.float32: (torch.int32, 0x7FDA_5A5A),
    torch.float16: (torch.int16, 0x7E5A),
    torch.bfloat16: (torch.int16, 0x7FDA),
}
"""A quiet NaN that no arithmetic makes, by dtype: memory that still holds it was never written."""
_MOST = 1 << 22
"""Larger outputs are described by this many elements from the front and as many from the back."""
_NEARLY_ALL = 0.999
_SMALL = 0.02
"""Errors below this share of an element and the root mean square are of precision, not of place."""
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
"""Where each kind usually comes from."""
_EVERYWHERE = (
    "another computation: an operation left out, a wrong constant or operand, or one order for another"
)
"""Where it comes from when no element is right: a race would have spared some."""


def poison_bits(dtype: torch.dtype) -> int | None:
    """Bits of an element that holds the poison, where no result has them; None for integers."""
    known = _POISON_BITS.get(dtype)
    return None if known is None else known[1]


def poison(tensor: torch.Tensor, *, other: bool = False) -> None:
    """Fill freshly allocated memory with a value that cannot pass for a result.

    ``other`` takes large numbers in place of NaNs: what depends on fresh memory differs between the two.
    """
    if tensor.numel() == 0 or not _dense(tensor):
        return
    flat = tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())
    if other:
        flat.view(torch.uint8).fill_(OTHER_BYTE if tensor.dtype is not torch.bool else 0)
    elif tensor.dtype in _POISON_BITS:
        kind, bits = _POISON_BITS[tensor.dtype]
        flat.view(kind).fill_(bits)
    elif tensor.dtype is torch.bool:
        flat.fill_(True)
    else:
        flat.view(torch.uint8).fill_(POISON_BYTE)


def _dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill one stretch of memory, in whatever order of dimensions."""
    wanted = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if extent != 1 and stride != wanted:
            return False
        wanted *= extent
    return True


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """Mask of the elements that still hold the poison; all False for dtypes without one of their own."""
    if tensor.dtype not in _POISON_BITS:
        return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    kind, bits = _POISON_BITS[tensor.dtype]
    return tensor.contiguous().view(kind) == bits


def describe(
    candidate: torch.Tensor,
    expected: torch.Tensor,
    element: float,
    rms: float,
    inputs: tuple[torch.Tensor, ...],
) -> WrongValues | None:
    """Name what the wrong elements of `candidate` have in common; None when nothing is wrong by the gate.

    Same shapes; `element` and `rms` make the element gate (see ``correctness``). Of a large output with
    nothing unwritten, only the front is looked at, or the back where the front is right.
    """
    if candidate.numel() == 0 or candidate.is_complex():
        return None
    unwritten = poisoned(candidate)
    if bool(unwritten.any()):
        return _with_figures(_unwritten(unwritten), candidate, unwritten, int(unwritten.sum()))
    if candidate.numel() > 2 * _MOST:
        candidate, expected, inputs = *_wrong_end(candidate, expected, element, rms), ()
    found, want = candidate.double(), expected.double()
    bad = ~_close(found, want, element, rms)
    if not bool(bad.any()):
        return None  # wrong as a whole only, by a little everywhere
    tiles = by_tiles(bad)
    named = (
        _whole(found, want, bad, element, rms)
        or _an_input(found, inputs)
        or _transposed(found, want, bad, element, rms)
        or _shifted(found, want, bad, element, rms)
        or _kinds(found, bad)
        or _small(found, want, bad, rms)
        or _placed(bad)
        or _in_tiles(tiles)
        or _near_one_edge(bad)
        or _scattered(bad)
    )
    if named is None:
        return None
    placed = named if tiles is None else _with_tiles(named, tiles)
    return _with_figures(placed, found, bad, 0)


def _wrong_end(
    candidate: torch.Tensor, expected: torch.Tensor, element: float, rms: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The front of a large output, or its back where nothing in the front is wrong."""
    found, want = candidate.reshape(-1), expected.reshape(-1)
    front = _close(found[:_MOST].double(), want[:_MOST].double(), element, rms)
    return (found[-_MOST:], want[-_MOST:]) if bool(front.all()) else (found[:_MOST], want[:_MOST])


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
    near = (found - want).abs() <= element * (want.abs() + rms)
    return near | (found == want) | (found.isnan() & want.isnan())


def _unwritten(mask: torch.Tensor) -> WrongValues:
    """Poison that is left: how much of it, and from where on."""
    named = _named(WrongKind.UNWRITTEN, _unwritten_text(mask))
    tiles = by_tiles(mask)
    return named if tiles is None else _with_tiles(named, tiles)


def _unwritten_text(mask: torch.Tensor) -> str:
    flat = mask.reshape(-1)
    count, size = int(flat.sum()), flat.numel()
    if count == size:
        return "no element was ever written: all still hold the poison put there before the run"
    first = int(flat.to(torch.uint8).argmax())
    what = "1 element was" if count == 1 else f"{count} elements were"
    where = f"from flat index {first} of {size}"
    if count == size - first:
        return f"{what} never written, at the end, {where}: the grid or the last block's bound stops short"
    return f"{what} never written, {where} on"


def _whole(
    found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> WrongValues | None:
    """Patterns of the output as a whole: zeros, one value, a constant factor or offset."""
    found, want = found.double(), want.double()
    if found.numel() == 1:
        return _one_number(float(found), float(want))
    if bool((found == 0).all()):
        return _named(WrongKind.ZEROS, "the output is all zeros")
    if bool((found == found.reshape(-1)[0]).all()):
        return _named(WrongKind.ONE_VALUE, f"every element is {float(found.reshape(-1)[0]):.6g}")
    usable = torch.isfinite(found) & torch.isfinite(want) & (want.abs() > 0.1 * rms)
    if int(usable.sum()) < 2:  # noqa: PLR2004 - two elements make a ratio
        return None
    factor = float((found[usable] / want[usable]).median())
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
    turned = want.transpose(-1, -2).contiguous().view(found.shape)
    if not _explained(found, turned, bad, element, rms):
        return None
    return _named(WrongKind.TRANSPOSED, "the last two dimensions are transposed")


def _explained(
    found: torch.Tensor, other: torch.Tensor, bad: torch.Tensor, element: float, rms: float
) -> bool:
    """Whether `found` is `other`, also by the measure of the wrong elements alone.

    Beside a few that are far larger, everything else is close to anything.
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
        left, right = (got[1:], expected[:-1]) if shift == 1 else (got[:-1], expected[1:])
        if _explained(left, right, wrong[1:] if shift == 1 else wrong[:-1], element, rms):
            sentence = f"every element is its neighbour's: shifted by {shift:+d} in memory"
            return replace(_named(WrongKind.SHIFTED, sentence), step=shift)
    return None


def _kinds(found: torch.Tensor, bad: torch.Tensor) -> WrongValues | None:
    wrong = found[bad]
    if wrong.numel() == 0:
        sentence = "each element is within its gate, but the relative L2 error over all of them is not"
        return _named(WrongKind.SMALL, sentence)
    placed = _placed(bad) or _near_one_edge(bad)
    where = placed.sentence if placed else ""
    if bool(wrong.isnan().all()):
        return _named(WrongKind.NAN, f"the wrong elements are all NaN; {where}".rstrip("; "))
    if bool((wrong == 0).all()):
        return _named(WrongKind.ZERO_ELEMENTS, f"the wrong elements are all zero; {where}".rstrip("; "))
    return None


def _small(found: torch.Tensor, want: torch.Tensor, bad: torch.Tensor, rms: float) -> WrongValues | None:
    """Every wrong element nearly right."""
    share = ((found - want).abs() / (want.abs() + rms))[bad]
    if share.numel() == 0 or not bool((share <= _SMALL).all()):
        return None
    sentence = (
        f"every wrong element is nearly right: at most {100 * float(share.max()):.2g}% of its size away"
    )
    return _named(WrongKind.SMALL, sentence)


def _in_tiles(tiles: Tiles | None) -> WrongValues | None:
    """Whole tiles of a matrix; a vector's are a run or a step, which say more."""
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
    return _named(
        WrongKind.SCATTERED, f"{count} of {bad.numel()} elements are wrong, without an order in place"
    )


def _placed(bad: torch.Tensor) -> WrongValues | None:
    """Where the wrong elements sit: a tail, a step, whole rows, the edge of one dimension."""
    flat = bad.reshape(-1)
    indices = flat.nonzero().reshape(-1)
    count, size = indices.numel(), flat.numel()
    if count in {0, size}:
        everywhere = replace(_named(WrongKind.SCATTERED, "every element is wrong"), hint=_EVERYWHERE)
        return everywhere if count else None
    first, last = int(indices[0]), int(indices[-1])
    if count == last - first + 1:
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
        if touched < extent and bool((some == every).all()):
            begin = int(some.to(torch.uint8).argmax())
            which = f"{touched} of {extent} indices of dimension {dimension}"
            return _named(WrongKind.DIMENSION, f"{which} are wrong throughout, from {begin} on")
    return None


def _near_one_edge(bad: torch.Tensor) -> WrongValues | None:
    """Wrong elements that keep to a quarter of one dimension."""
    for dimension in range(bad.dim()):
        some, _ = _along(bad, dimension)
        touched, extent = int(some.sum()), bad.shape[dimension]
        if 0 < touched * 4 <= extent:
            begin = int(some.to(torch.uint8).argmax())
            which = f"{touched} of {extent} indices of dimension {dimension}"
            return _named(WrongKind.DIMENSION, f"the wrong ones lie in {which}, from {begin} on")
    return None


def _along(bad: torch.Tensor, dimension: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Whether some, and whether every, element at each index of a dimension is wrong."""
    others = [d for d in range(bad.dim()) if d != dimension]
    return (bad.any(dim=others), bad.all(dim=others)) if others else (bad, bad)

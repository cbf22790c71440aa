"""What wrong elements have in common, in a sentence: the shortest way from a wrong result to its bug."""

from __future__ import annotations

import torch

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


def poison_bits(dtype: torch.dtype) -> int | None:
    """Bits of an element that holds the poison, where no result has them; None for integers."""
    known = _POISON_BITS.get(dtype)
    return None if known is None else known[1]


def poison(tensor: torch.Tensor, *, other: bool = False) -> None:
    """Fill freshly allocated memory with a value that cannot pass for a result.

    ``other`` takes large numbers in place of NaNs: what depends on fresh memory differs between the two.
    """
    if tensor.numel() == 0 or not tensor.is_contiguous():
        return
    flat = tensor.view(-1)
    if other:
        flat.view(torch.uint8).fill_(OTHER_BYTE if tensor.dtype is not torch.bool else 0)
    elif tensor.dtype in _POISON_BITS:
        kind, bits = _POISON_BITS[tensor.dtype]
        flat.view(kind).fill_(bits)
    elif tensor.dtype is torch.bool:
        flat.fill_(True)
    else:
        flat.view(torch.uint8).fill_(POISON_BYTE)


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
) -> str:
    """Name what the wrong elements of `candidate` have in common; "" when nothing stands out.

    Same shapes; `element` and `rms` make the element gate (see ``correctness``).
    """
    if candidate.numel() == 0 or candidate.is_complex():
        return ""
    unwritten = poisoned(candidate)
    if bool(unwritten.any()):
        return _unwritten(unwritten)
    if candidate.numel() > 2 * _MOST:
        return _whole(candidate.reshape(-1)[:_MOST], expected.reshape(-1)[:_MOST], element, rms)
    found, want = candidate.double(), expected.double()
    bad = ~_close(found, want, element, rms)
    for sentence in (
        _whole(found, want, element, rms),
        _an_input(found, inputs),
        _transposed(found, want, element, rms),
        _shifted(found, want, element, rms),
        _kinds(found, bad),
        _placed(bad),
    ):
        if sentence:
            return sentence
    return ""


def _close(found: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> torch.Tensor:
    near = (found - want).abs() <= element * (want.abs() + rms)
    return near | (found == want) | (found.isnan() & want.isnan())


def _unwritten(mask: torch.Tensor) -> str:
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


def _whole(found: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> str:
    """Patterns of the output as a whole: zeros, one value, a constant factor or offset."""
    found, want = found.double(), want.double()
    if found.numel() == 1:
        return "the output is zero" if float(found) == 0.0 else _scalar_factor(found, want)
    if bool((found == 0).all()):
        return "the output is all zeros"
    if bool((found == found.reshape(-1)[0]).all()):
        return f"every element is {float(found.reshape(-1)[0]):.6g}"
    usable = torch.isfinite(found) & torch.isfinite(want) & (want.abs() > 0.1 * rms)
    if int(usable.sum()) < 2:  # noqa: PLR2004 - two elements make a ratio
        return ""
    factor = float((found[usable] / want[usable]).median())
    if (
        factor != 0.0
        and abs(factor - 1.0) > 8 * element
        and bool(_close(found, want * factor, 4 * element, rms).all())
    ):
        return f"every element is {factor:.6g} times the expected one"
    offset = float((found[usable] - want[usable]).median())
    if abs(offset) > 8 * element * rms and bool(_close(found, want + offset, 4 * element, rms).all()):
        return f"every element is off by {offset:+.6g}"
    return ""


def _scalar_factor(found: torch.Tensor, want: torch.Tensor) -> str:
    value, expected = float(found), float(want)
    if expected == 0.0 or value != value:  # noqa: PLR0124 - NaN
        return ""
    return f"the value is {value / expected:.6g} times the expected one"


def _an_input(found: torch.Tensor, inputs: tuple[torch.Tensor, ...]) -> str:
    for position, tensor in enumerate(inputs):
        if tuple(tensor.shape) == tuple(found.shape) and bool((tensor.double() == found).all()):
            return f"the output equals input {position}"
    return ""


def _transposed(found: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> str:
    if found.dim() < 2 or found.shape[-1] == 1 or found.shape[-2] == 1:  # noqa: PLR2004
        return ""
    turned = want.transpose(-1, -2).contiguous().view(found.shape)
    share = float(_close(found, turned, element, rms).double().mean())
    return "the last two dimensions are transposed" if share >= _NEARLY_ALL else ""


def _shifted(found: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> str:
    got, expected = found.reshape(-1), want.reshape(-1)
    for shift in (1, -1):
        if got.numel() < 8:  # noqa: PLR2004 - too few to tell
            return ""
        left, right = (got[1:], expected[:-1]) if shift == 1 else (got[:-1], expected[1:])
        if float(_close(left, right, element, rms).double().mean()) >= _NEARLY_ALL:
            return f"every element is its neighbour's: shifted by {shift:+d} in memory"
    return ""


def _kinds(found: torch.Tensor, bad: torch.Tensor) -> str:
    wrong = found[bad]
    if wrong.numel() == 0:
        return "each element is within its gate, but the relative L2 error over all of them is not"
    if bool(wrong.isnan().all()):
        return "the wrong elements are all NaN; " + _placed(bad)
    if bool((wrong == 0).all()):
        return "the wrong elements are all zero; " + _placed(bad)
    return ""


def _placed(bad: torch.Tensor) -> str:
    """Where the wrong elements sit: a tail, a step, whole rows, the edge of one dimension."""
    flat = bad.reshape(-1)
    indices = flat.nonzero().reshape(-1)
    count, size = indices.numel(), flat.numel()
    if count in {0, size}:
        return "every element is wrong" if count else ""
    first, last = int(indices[0]), int(indices[-1])
    if count == last - first + 1:
        place = "the end of the output" if last == size - 1 else f"flat indices {first} to {last}"
        return f"{count} wrong elements in one run at {place}"
    steps = indices.diff()
    if bool((steps == steps[0]).all()):
        return f"every {int(steps[0])}th element from flat index {first} on is wrong"
    for dimension in range(bad.dim()):
        sentence = _in_dimension(bad, dimension)
        if sentence:
            return sentence
    return ""


def _in_dimension(bad: torch.Tensor, dimension: int) -> str:
    others = [d for d in range(bad.dim()) if d != dimension]
    some = bad.any(dim=others) if others else bad
    every = bad.all(dim=others) if others else bad
    touched, extent = int(some.sum()), bad.shape[dimension]
    begin = int(some.to(torch.uint8).argmax())
    if touched < extent and bool((some == every).all()):
        return f"{touched} of {extent} indices of dimension {dimension} are wrong throughout, from {begin} on"
    if touched * 4 <= extent:
        return (
            f"the wrong ones lie in {touched} of {extent} indices of dimension {dimension}, from {begin} on"
        )
    return ""

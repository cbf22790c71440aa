"""Error norms of one tensor against another, computed in float64 chunk by chunk.

At full size an output does not fit into memory twice. At 1.6e9 elements on an H200 a verdict spends most
of its time here: each chunk is read once, and only chunks with infinities or NaN take the slow path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

_CHUNK_ELEMENTS = 1 << 24
"""Elements of a chunk: 128 MiB in float64."""
_TINY = torch.finfo(torch.float64).tiny
"""Smallest normal float64, the least denominator: 0 ÷ 0 gives 0, not NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """Error norms of a tensor, over the elements whose expected value is finite."""

    largest: float
    """Largest absolute error; infinite for NaN or infinity where a finite value is expected."""
    largest_scaled: float
    """Largest |error| ÷ (|expected| + root mean square of all expected)."""
    relative_l2: float
    """‖error‖₂ ÷ ‖expected‖₂."""
    bad_count: int
    """Elements outside the element tolerance, or without the NaN or infinity that is expected there."""
    first_bad: int | None
    """Flat index of the first bad element, None without any. A complex element counts as two."""


def measure(  # noqa: PLR0913 - what a comparison is made of
    found: torch.Tensor,
    expected: torch.Tensor,
    plain: torch.Tensor | None = None,
    *,
    element: float = math.inf,
    rms: float | None = None,
    to_first_bad: bool = False,
) -> Distance:
    """Compare `found` with `expected`, of equal shape.

    Args:
        found: The tensor under test.
        expected: The right values: the oracle or the reference.
        plain: The reference's output in its own precision, if `expected` is the oracle. Where `plain` is not
            finite, its NaN or infinity is right as well, and no error is counted. Pass `found` itself to
            leave out all elements where `found` overflows.
        element: Element tolerance: |found − expected| ≤ element · (|expected| + rms) is right.
        rms: Root mean square of `expected`; computed if None.
        to_first_bad: Stop after the chunk with the first bad element; the norms then cover what was read.
    """
    rms = root_mean_square(expected) if rms is None else rms
    largest, scaled, squares, norm = 0.0, 0.0, 0.0, 0.0
    count, first, start = 0, None, 0
    first_two = real(found), real(expected)
    # The same object as `found`, so that _parts converts it to float64 only once.
    third = () if plain is None else (first_two[0] if plain is found else real(plain),)
    for got, want, *ordinary in _parts(*first_two, *third):
        part = _measure_finite(got, want, ordinary, element, rms) or _measure_with_nonfinite(
            got, want, ordinary, element, rms
        )
        largest, scaled = max(largest, part.largest), max(scaled, part.scaled)
        squares, norm = squares + part.squares, norm + part.norm
        if part.bad is not None:
            here = int(part.bad.sum())
            if here and first is None:
                first = start + int(part.bad.to(torch.uint8).argmax())  # argmax takes no bool
            count += here
        if count and to_first_bad:
            break
        start += got.numel()
    relative = 0.0
    if squares > 0.0:
        # ‖error‖₂ ÷ ‖expected‖₂; an error beside an expected tensor of zeros has no finite ratio.
        relative = math.sqrt(squares / norm) if norm > 0.0 else math.inf
    return Distance(
        largest=largest, largest_scaled=scaled, relative_l2=relative, bad_count=count, first_bad=first
    )


def root_mean_square(tensor: torch.Tensor) -> float:
    """Root mean square of the finite elements, 0 without any.

    Real and imaginary parts count as two elements.
    """
    total, count = 0.0, 0
    for (part,) in _parts(real(tensor)):
        squares, finite = float(part.dot(part)), part
        if not math.isfinite(squares):
            # A dot product is the cheaper test: the mask is only made for chunks with infinities or NaN.
            finite = part[torch.isfinite(part)]
            squares = float(finite.dot(finite))
        total += squares
        count += finite.numel()
    return math.sqrt(total / count) if count else 0.0


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor, or the pairs of real numbers of a complex one: shape (…, 2)."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Partial results of one chunk."""

    largest: float
    """Largest absolute error."""
    scaled: float
    """Largest |error| ÷ (|expected| + rms)."""
    squares: float
    """Sum of the squared errors."""
    norm: float
    """Sum of the squared expected values."""
    bad: torch.Tensor | None
    """Mask of the bad elements; None if the chunk has none."""


def _parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield flat chunks in float64; a tensor that is given twice is converted once."""
    flat = {id(tensor): tensor.reshape(-1) for tensor in tensors}
    for start in range(0, tensors[0].numel(), _CHUNK_ELEMENTS):
        parts = {key: item[start : start + _CHUNK_ELEMENTS].double() for key, item in flat.items()}
        yield tuple(parts[id(tensor)] for tensor in tensors)


def _measure_finite(
    got: torch.Tensor, want: torch.Tensor, ordinary: list[torch.Tensor], element: float, rms: float
) -> _Part | None:
    """Measure a chunk of finite numbers; None if it holds infinities or NaN."""
    error = (got - want).abs_()
    # A sum is finite only if all its terms are. One sum instead of masks: a single read of the memory.
    sums = [error.sum(), *(item.sum() for item in ordinary)]
    if not math.isfinite(float(torch.stack(sums).sum())):
        return None
    scale = want.abs().add_(rms)
    if rms == 0.0:
        scale.clamp_min_(_TINY)
    ratio = error / scale
    # One transfer to the host for all four figures: each would synchronise with the GPU.
    figures = torch.stack((error.max(), ratio.max(), error.dot(error), want.dot(want))).tolist()
    # A quotient may round to the other side of the tolerance, so that near it the mask decides, which
    # multiplies. Far below it no mask is needed.
    bad = _bad_elements(got, want, element, rms) if figures[1] >= element * (1 - 1e-9) else None
    return _Part(largest=figures[0], scaled=figures[1], squares=figures[2], norm=figures[3], bad=bad)


def _measure_with_nonfinite(
    got: torch.Tensor, want: torch.Tensor, ordinary: list[torch.Tensor], element: float, rms: float
) -> _Part:
    """Measure a chunk with infinities or NaN; NaN for NaN and infinity for the same infinity are right."""
    bad = _bad_elements(got, want, element, rms)
    finite = torch.isfinite(want)
    for item in ordinary:
        odd = ~torch.isfinite(item)
        # Where the reference itself overflows, its own NaN or infinity is right as well.
        bad &= ~(odd & ((got == item) | (got.isnan() & item.isnan())))
        finite &= ~odd
    error = torch.where(finite, (got - want).abs(), 0.0)
    # NaN or infinity where a finite value is expected: an infinite error.
    error = torch.nan_to_num(error, nan=math.inf, posinf=math.inf)
    ratio = torch.where(finite, error / (want.abs() + rms).clamp_min(_TINY), 0.0)
    kept = torch.where(finite, want, 0.0)
    return _Part(
        largest=float(error.max()),
        scaled=float(ratio.max()),
        squares=float(error.dot(error)),
        norm=float(kept.dot(kept)),
        bad=bad,
    )


def _bad_elements(got: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> torch.Tensor:
    """Mask the elements outside the element tolerance; NaN matches NaN, an infinity matches itself."""
    alike = (got == want) | (got.isnan() & want.isnan())
    close = (got - want).abs() <= element * (want.abs() + rms)
    # Without isfinite anything finite would match an expected infinity: inf ≤ inf holds.
    return ~(alike | (close & torch.isfinite(want)))

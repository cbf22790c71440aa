"""How far one tensor is from another, part by part in float64: at full size an output does not fit twice.

At 1.6e9 elements on an H200 a verdict spends most of its time here, so that a part is read once, and what
only infinities and NaN need is done only for parts that hold some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

_PART = 1 << 24
"""Elements at a time."""
_TINY = torch.finfo(torch.float64).tiny


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """Of one tensor from what is expected, over the elements where that is finite."""

    largest: float
    """Largest absolute error; infinite where a finite value was expected and none came."""
    largest_scaled: float
    """Largest |error| ÷ (|expected| + root mean square of all expected)."""
    relative_l2: float
    """‖error‖₂ ÷ ‖expected‖₂."""
    bad_count: int
    """Elements outside the element gate; also those that are not the NaN or infinity that was expected."""
    first_bad: int | None
    """Flat position of the first of them; a complex element counts as two."""


def measure(  # noqa: PLR0913 - what a comparison is made of
    found: torch.Tensor,
    expected: torch.Tensor,
    plain: torch.Tensor | None = None,
    *,
    element: float = math.inf,
    rms: float | None = None,
    to_first_bad: bool = False,
) -> Distance:
    """The distance of `found` from `expected`, of one shape.

    Args:
        found: What came.
        expected: What should have come.
        plain: What the reference gave in its own precision, where `expected` is the oracle: where either is
            not finite, either's kind of value is right, and no error is counted. `found` itself, where what
            matters is how much is lost where nothing overflows.
        element: |found − expected| ≤ element · (|expected| + rms) is right.
        rms: Root mean square of `expected`, where it is known.
        to_first_bad: End with the part that holds the first element outside the gate.
    """
    rms = root_mean_square(expected) if rms is None else rms
    largest, scaled, squares, norm = 0.0, 0.0, 0.0, 0.0
    count, first, start = 0, None, 0
    first_two = real(found), real(expected)
    third = () if plain is None else (first_two[0] if plain is found else real(plain),)
    for got, want, *ordinary in _parts(*first_two, *third):
        part = _finite(got, want, ordinary, element, rms) or _odd(got, want, ordinary, element, rms)
        largest, scaled = max(largest, part.largest), max(scaled, part.scaled)
        squares, norm = squares + part.squares, norm + part.norm
        if part.bad is not None:
            here = int(part.bad.sum())
            if here and first is None:
                first = start + int(part.bad.to(torch.uint8).argmax())
            count += here
        if count and to_first_bad:
            break
        start += got.numel()
    relative = 0.0
    if squares > 0.0:
        relative = math.sqrt(squares / norm) if norm > 0.0 else math.inf
    return Distance(
        largest=largest, largest_scaled=scaled, relative_l2=relative, bad_count=count, first_bad=first
    )


def root_mean_square(tensor: torch.Tensor) -> float:
    """Over the finite elements; real and imaginary parts count as two. 0 where there is none."""
    total, count = 0.0, 0
    for (part,) in _parts(real(tensor)):
        squares, finite = float(part.dot(part)), part
        if not math.isfinite(squares):
            finite = part[torch.isfinite(part)]
            squares = float(finite.dot(finite))
        total += squares
        count += finite.numel()
    return math.sqrt(total / count) if count else 0.0


def real(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, a complex one as pairs of real numbers."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The same of one part."""

    largest: float
    scaled: float
    squares: float
    norm: float
    bad: torch.Tensor | None
    """Mask; None where no element is bad."""


def _parts(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Flat parts in float64; a tensor that is given twice is converted once."""
    flat = {id(tensor): tensor.reshape(-1) for tensor in tensors}
    for start in range(0, tensors[0].numel(), _PART):
        parts = {key: item[start : start + _PART].double() for key, item in flat.items()}
        yield tuple(parts[id(tensor)] for tensor in tensors)


def _finite(
    got: torch.Tensor, want: torch.Tensor, ordinary: list[torch.Tensor], element: float, rms: float
) -> _Part | None:
    """Of a part with finite numbers only, None otherwise."""
    error = (got - want).abs_()
    sums = [error.sum(), *(item.sum() for item in ordinary)]
    if not math.isfinite(float(torch.stack(sums).sum())):
        return None
    scale = want.abs().add_(rms)
    if rms == 0.0:
        scale.clamp_min_(_TINY)
    ratio = error / scale
    figures = torch.stack((error.max(), ratio.max(), error.dot(error), want.dot(want))).tolist()
    # The same sum once more where it is near: a quotient may round to the gate's other side.
    bad = _bad_elements(got, want, element, rms) if figures[1] >= element * (1 - 1e-9) else None
    return _Part(largest=figures[0], scaled=figures[1], squares=figures[2], norm=figures[3], bad=bad)


def _odd(
    got: torch.Tensor, want: torch.Tensor, ordinary: list[torch.Tensor], element: float, rms: float
) -> _Part:
    """Of a part with infinities or NaN: NaN for NaN and the same infinity for an infinity are right."""
    bad = _bad_elements(got, want, element, rms)
    finite = torch.isfinite(want)
    for item in ordinary:
        odd = ~torch.isfinite(item)
        bad &= ~(odd & ((got == item) | (got.isnan() & item.isnan())))
        finite &= ~odd
    error = torch.where(finite, (got - want).abs(), 0.0)
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
    """Mask of the elements outside the element gate; NaN matches NaN and an infinity itself."""
    alike = (got == want) | (got.isnan() & want.isnan())
    close = (got - want).abs() <= element * (want.abs() + rms)
    return ~(alike | (close & torch.isfinite(want)))

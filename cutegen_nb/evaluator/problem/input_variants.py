"""Variants of a problem's inputs: scaled, with signs mixed, mostly zeros, with a few large values.

Each change is a function of the element's value alone that keeps zeros, or sets whole slices to zero. So the
structure of the inputs (a triangle of zeros, a symmetry, a mask) stays, and a kernel that relies on it does
not get inputs that the problem excludes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]
"""Function from a real floating-point tensor to another of the same shape and dtype."""

_SAMPLE = 4096
"""Elements (rows in `_order`) that are looked at to tell the kind of an input."""
_CHUNK = 1 << 24
"""Elements read or changed at a time, to bound the memory of intermediate tensors."""
_MOST_SORTED = 1 << 24
"""Elements among which the largest are looked for; a larger input is sampled evenly."""
_FEW_VALUES = 8
"""Distinct values up to which an input counts as labels, signs or a mask; also the shortest sorted row."""
_OFFSET = 100.0
"""Offset ÷ typical magnitude."""
_FAR = 300.0
"""Factor on the sum of an element's magnitude and the typical one. The results are beyond exp's range, with
few enough digits before the point for a softmax to be right within its tolerance."""
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer type by bytes of a floating-point element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputVariant:
    """Kind of inputs made from a problem's own."""

    name: str
    """Description to follow "inputs": ``scaled by 1000``."""
    change: Change
    """Function applied to each free input."""
    decides: bool = True
    """True if wrong values fail a candidate; False for a flag only, on inputs that no problem draws."""
    shrinks: bool = False
    """True if answers become so small that float32's rounding in values of the usual size shows."""
    flag: str = "wrong-under-stress"
    """Kind of the flag, if `decides` is False."""
    hint: str = ""
    """Usual mistake on such inputs, appended to "With inputs …"."""


def varied(drawn: Sequence[Any], change: Change) -> list[Any] | None:
    """Apply `change` to each free input; None if no input is free or nothing changes."""
    result = [_as_sorted(change(item), item) if may_vary(item) else item for item in drawn]
    same = all(
        before is after or torch.equal(before, after) for before, after in zip(drawn, result, strict=True)
    )
    return None if same else result


def may_vary(item: Any) -> bool:
    """Return whether an input may take other values: a real tensor of many values, rows not summing to 1.

    Labels, signs and masks have few values; rows that sum to 1 are probabilities.
    """
    if not isinstance(item, torch.Tensor) or not item.is_floating_point() or item.numel() < 2:  # noqa: PLR2004 - nothing to vary
        return False
    few = item.numel() > _FEW_VALUES and item.reshape(-1)[:_SAMPLE].unique().numel() <= _FEW_VALUES
    return not few and not _sums_to_one(item)


def is_sorted(item: torch.Tensor) -> bool:
    """Return whether each row is in ascending or each in descending order: the edges of buckets, say."""
    return _order(item) != 0


def _order(item: torch.Tensor) -> int:
    """Return 1 for ascending rows, -1 for descending rows, else 0."""
    if item.dim() == 0 or item.shape[-1] < _FEW_VALUES:
        return 0
    rows = min(_SAMPLE, max(1, _CHUNK // item.shape[-1]))
    steps = item.reshape(-1, item.shape[-1])[:rows].diff(dim=-1)
    return next((sign for sign in (1, -1) if bool((sign * steps >= 0).all())), 0)


def _as_sorted(changed: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Sort the rows of `changed` if those of `before` are sorted, in the same direction."""
    order = _order(before)
    return changed.sort(dim=-1, descending=order < 0).values if order else changed


def _sums_to_one(item: torch.Tensor) -> bool:
    if item.dim() < 2 or item.shape[-1] < 2 or bool((item < 0).any()):  # noqa: PLR2004 - rows of two
        return False
    # One row mostly tells, and the others need no float64, in which a tensor of 7 GiB takes 14.
    rows = item.reshape(-1, item.shape[-1])
    return all(
        bool(((part.sum(dim=-1, dtype=torch.float32) - 1).abs() < 1e-2).all())  # noqa: PLR2004 - half precision
        for part in (rows[:1], rows)
    )


def pseudo_random(item: torch.Tensor) -> torch.Tensor:
    """Hash the magnitude of each element to a number from 0 to 65535."""
    bits = item.abs().contiguous().view(_BITS[item.element_size()]).to(torch.int64)
    # Knuth's multiplicative hash: 2654435761 is a prime near 2³² ÷ the golden ratio.
    bits = (bits ^ (bits >> 15)) * 2_654_435_761
    return (bits >> 16) & 0xFFFF  # the low bits of a product are mixed least


def _by_parts(change: Change) -> Change:
    """Apply an element-wise `change` in chunks: intermediate tensors take several times the memory."""

    def changed(item: torch.Tensor) -> torch.Tensor:
        if item.numel() <= _CHUNK:
            return change(item)
        flat = item.reshape(-1)
        result = torch.empty_like(flat)
        for start in range(0, flat.numel(), _CHUNK):
            result[start : start + _CHUNK] = change(flat[start : start + _CHUNK])
        return result.reshape(item.shape)

    return changed


def _scaled(factor: float) -> Change:
    # In float64, so that the product is rounded once, to the input's dtype.
    return _by_parts(lambda item: (item.double() * factor).to(item.dtype))


def _mixed_signs(item: torch.Tensor) -> torch.Tensor:
    return torch.where(pseudo_random(item) % 2 == 0, item, -item)


def _mostly_zeros(item: torch.Tensor) -> torch.Tensor:
    return torch.where(pseudo_random(item) % 10 == 0, item, torch.zeros_like(item))


def _one_value(item: torch.Tensor) -> torch.Tensor:
    return torch.where(item == 0, item, _typical(item))


def _few_large(item: torch.Tensor) -> torch.Tensor:
    limit = _limit_of_the_largest(item)
    return _by_parts(lambda part: torch.where(part.abs() >= limit, part * 100, part))(item)


def _limit_of_the_largest(item: torch.Tensor) -> float:
    """Return the magnitude that `_few` elements reach, estimated from a sample of a large input."""
    magnitudes = item.reshape(-1)
    if magnitudes.numel() > _MOST_SORTED:
        magnitudes = magnitudes[:: magnitudes.numel() // _MOST_SORTED + 1]
    return float(torch.topk(magnitudes.abs(), _few(magnitudes.numel())).values[-1])


def _few(elements: int) -> int:
    """Return one in 256 of `elements`, eight at least: almost certainly of both signs."""
    return min(elements, max(8, elements // 256))


def _typical(item: torch.Tensor) -> float:
    """Return the mean magnitude."""
    return mean(item, magnitudes=True)


def mean(item: torch.Tensor, *, magnitudes: bool = False) -> float:
    """Return the mean of the elements, or of their magnitudes, in float64; NaN without elements.

    In chunks: PyTorch's own sum in float64 converts the whole tensor first.
    """
    chunks = (part.double() for part in item.reshape(-1).split(_CHUNK))
    sums = [(part.abs() if magnitudes else part).sum() for part in chunks]
    return float(torch.stack(sums).sum()) / item.numel() if item.numel() else math.nan


def _of_one_sign(factor: float) -> Change:
    """Make values of one sign, far from zero: a maximum that does not start at −∞ keeps its start value."""

    def changed(item: torch.Tensor) -> torch.Tensor:
        away = _typical(item)
        return _by_parts(
            lambda part: torch.where(part == 0, part.double(), (part.double().abs() + away) * factor).to(
                part.dtype
            )
        )(item)

    return changed


def _rounded(item: torch.Tensor) -> torch.Tensor:
    """Round to multiples of half the typical magnitude, so that a maximum is reached in several places."""
    step = _typical(item) / 2
    if step == 0.0 or not math.isfinite(step):
        return item
    return _by_parts(lambda part: ((part.double() / step).round() * step).to(part.dtype))(item)


def _beside_an_offset(item: torch.Tensor) -> torch.Tensor:
    """Add an offset of 100 typical magnitudes.

    A variance as E[x²] − E[x]² loses four of float32's seven digits: x² is about 10⁴ times the variance.
    """
    offset = _OFFSET * _typical(item)
    return _by_parts(
        lambda part: torch.where(part == 0, part.double(), part.double() + offset).to(part.dtype)
    )(item)


def _some_slices_zero(item: torch.Tensor) -> torch.Tensor:
    """Set every fourth slice along the first dimension to zero; of a square matrix the columns as well."""
    if item.dim() < 2 or item.shape[0] < 2:  # noqa: PLR2004 - slices of more than one number, and not all
        return item
    changed = item.clone()
    changed[1::4] = 0
    if item.dim() == 2 and item.shape[0] == item.shape[1]:  # noqa: PLR2004 - a square
        changed[:, 1::4] = 0
    return changed


def _masked(item: torch.Tensor) -> torch.Tensor:
    # Zeros stay: they may be a mask of the problem's own.
    hidden = (pseudo_random(item) % 4 == 0) & (item != 0)
    return item.masked_fill(hidden, -torch.inf)


def wide_integers(item: torch.Tensor) -> torch.Tensor:
    """Scale and round to integers of up to 12 bits (8 for bfloat16, 11 for float16).

    TF32 holds 11 significant bits (10 and the implicit one), one less than 12.
    """
    limit = {torch.float16: 2047.0, torch.bfloat16: 255.0}.get(item.dtype, 4095.0)
    least, most = (float(one) for one in item.aminmax())
    largest = max(-least, most, 1e-30)  # an input of zeros stays zeros
    return _by_parts(lambda part: (part.double() / largest * limit).round().to(part.dtype))(item)


def small_integers(item: torch.Tensor) -> torch.Tensor:
    """Map each element to -1, 0 or 1: its sign, or 0 for about a third of them."""
    return torch.where(pseudo_random(item) % 3 == 0, torch.zeros_like(item), item.sign())


ROUNDED = InputVariant(name="rounded, so that many are equal", change=_rounded, decides=False)
SIGNED = InputVariant(name="with signs mixed", change=_by_parts(_mixed_signs))
FEW_LARGE = InputVariant(name="with a few values a hundred times as large", change=_few_large)

VARIANTS: tuple[InputVariant, ...] = (
    FEW_LARGE,
    SIGNED,
    InputVariant(name="made negative, far from zero", change=_of_one_sign(-_FAR)),
    InputVariant(name="scaled by 8", change=_scaled(8.0)),
    InputVariant(name="scaled by 1000", change=_scaled(1e3)),
    InputVariant(name="scaled by 1/1000", change=_scaled(1e-3), shrinks=True),
    InputVariant(name="with nine tenths zeros", change=_by_parts(_mostly_zeros)),
    InputVariant(name="of one value", change=_one_value),
    InputVariant(name="with every fourth slice along the first dimension zeros", change=_some_slices_zero),
    InputVariant(name="made positive, far from zero", change=_of_one_sign(_FAR)),
    InputVariant(name="with signs flipped", change=torch.neg),
    ROUNDED,
    InputVariant(
        name="beside an offset a hundred times as large",
        change=_beside_an_offset,
        decides=False,
        flag="wrong-beside-an-offset",
        hint=", where a variance as the difference of two squares loses its digits",
    ),
    InputVariant(name="with a quarter masked to minus infinity", change=_by_parts(_masked), decides=False),
    InputVariant(name="scaled by 1e18", change=_scaled(1e18), decides=False),
    InputVariant(name="made negative and scaled by 1e9", change=_of_one_sign(-1e9), decides=False),
    InputVariant(name="scaled to denormal numbers", change=_scaled(1e-40), decides=False),
)
"""Kinds of stress inputs, those that show most first."""


def named(name: str) -> InputVariant:
    """Return the variant of that name. Raises KeyError."""
    return {item.name: item for item in VARIANTS}[name]

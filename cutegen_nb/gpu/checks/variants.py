"""Other inputs made from a problem's own, element by element.

Each change is a function of the element's value alone that leaves zero where it is, or makes whole slices
zero.  So whatever structure the problem gives its inputs (a triangle of zeros, a symmetry, a mask) stays, and
a kernel that relies on that structure is not held to inputs that the problem excludes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Change = Callable[[torch.Tensor], torch.Tensor]
"""A real floating-point tensor to another of the same shape and dtype."""

_SAMPLE = 4096
_CHUNK = 1 << 24
"""Elements changed at a time."""
_FEW_VALUES = 8
_OFFSET = 100.0
"""Times the typical value."""
_FAR = 300.0
"""Times the value and the typical one: beyond exp's range, with few enough digits before the point for a
softmax to be right within its gate."""
_BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kind of inputs."""

    name: str
    """In words, after "inputs": ``scaled by 1000``."""
    change: Change
    """What is done to each free input."""
    decides: bool = True
    """Whether wrong values with it fail a candidate; a flag otherwise, for what no problem draws."""
    shrinks: bool = False
    """Whether it makes answers so small that what float32 loses on the way to the usual ones shows."""
    repeats: bool = False
    """Whether it gives sums many equal terms, whose rounding errors add up instead of averaging out."""
    alike: bool = False
    """Whether all terms of a sum are one number, so that its mean is off by as much as the sum."""
    room: float = 1.0
    """Times the usual gates: what is lost there differs from one honest order of sums to another."""
    flag: str = "wrong-under-stress"
    """Kind of the flag, where it does not decide."""
    hint: str = ""
    """What usually goes wrong there, as the rest of "With inputs …"."""


def varied(drawn: Sequence[Any], change: Change) -> list[Any] | None:
    """The inputs with `change` applied to each free one; None where there is none, or nothing changes."""
    result = [_as_sorted(change(item), item) if is_free(item) else item for item in drawn]
    same = all(
        before is after or torch.equal(before, after) for before, after in zip(drawn, result, strict=True)
    )
    return None if same else result


def is_free(item: Any) -> bool:
    """Whether an input may take other values: real, of many values, and no rows that sum to one number.

    Labels, signs and masks have few values; rows that sum to one are probabilities.
    """
    if not isinstance(item, torch.Tensor) or not item.is_floating_point() or item.numel() < 2:  # noqa: PLR2004 - nothing to vary
        return False
    few = item.numel() > _FEW_VALUES and item.reshape(-1)[:_SAMPLE].unique().numel() <= _FEW_VALUES
    return not few and not _sums_to_one(item)


def is_sorted(item: torch.Tensor) -> bool:
    """Whether each row is in order, rising or falling: the edges of buckets, say."""
    return _order(item) != 0


def _order(item: torch.Tensor) -> int:
    """1 where rows rise, -1 where they fall, 0 where neither."""
    if item.dim() == 0 or item.shape[-1] < _FEW_VALUES:
        return 0
    steps = item.reshape(-1, item.shape[-1])[:_SAMPLE].diff(dim=-1)
    return next((sign for sign in (1, -1) if bool((sign * steps >= 0).all())), 0)


def _as_sorted(changed: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """The changed values in the order that those before them were in."""
    order = _order(before)
    return changed.sort(dim=-1, descending=order < 0).values if order else changed


def _sums_to_one(item: torch.Tensor) -> bool:
    if item.dim() < 2 or item.shape[-1] < 2 or bool((item < 0).any()):  # noqa: PLR2004 - rows of two
        return False
    sums = item.double().sum(dim=-1)
    return bool(((sums - 1).abs() < 1e-2).all())  # noqa: PLR2004 - half precision


def pseudo_random(item: torch.Tensor) -> torch.Tensor:
    """A number from 0 to 65535 for each element, decided by the magnitude of its value alone."""
    bits = item.abs().contiguous().view(_BITS[item.element_size()]).to(torch.int64)
    bits = (bits ^ (bits >> 15)) * 2_654_435_761
    return (bits >> 16) & 0xFFFF


def _by_parts(change: Change) -> Change:
    """`change` of each element by itself, done part by part: its steps take several times the memory."""

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
    return _by_parts(lambda item: (item.double() * factor).to(item.dtype))


def _mixed_signs(item: torch.Tensor) -> torch.Tensor:
    return torch.where(pseudo_random(item) % 2 == 0, item, -item)


def _mostly_zeros(item: torch.Tensor) -> torch.Tensor:
    return torch.where(pseudo_random(item) % 10 == 0, item, torch.zeros_like(item))


def _one_value(item: torch.Tensor) -> torch.Tensor:
    value = item.double().abs().mean().to(item.dtype)
    return torch.where(item == 0, item, value)


def _few_large(item: torch.Tensor) -> torch.Tensor:
    magnitudes = item.abs().reshape(-1)
    limit = torch.topk(magnitudes, _few(magnitudes.numel())).values[-1]
    return torch.where(item.abs() >= limit, item * 100, item)


def _few(elements: int) -> int:
    """One in 256, and eight at least: of both signs, as good as certainly."""
    return min(elements, max(8, elements // 256))


def _typical(item: torch.Tensor) -> float:
    return float(item.abs().mean(dtype=torch.float64))


def _of_one_sign(factor: float) -> Change:
    """All of one sign, far from zero: a maximum that does not start at minus infinity stays at its start."""

    def changed(item: torch.Tensor) -> torch.Tensor:
        away = _typical(item)
        return _by_parts(
            lambda part: torch.where(part == 0, part.double(), (part.double().abs() + away) * factor).to(
                part.dtype
            )
        )(item)

    return changed


def _rounded(item: torch.Tensor) -> torch.Tensor:
    """Multiples of half the typical value: many are equal, so that a maximum is reached in several places."""
    step = _typical(item) / 2
    if step == 0.0 or not math.isfinite(step):
        return item
    return _by_parts(lambda part: ((part.double() / step).round() * step).to(part.dtype))(item)


def _beside_an_offset(item: torch.Tensor) -> torch.Tensor:
    """Far from zero: a variance as the difference of two squares loses four of seven digits there."""
    offset = _OFFSET * _typical(item)
    return _by_parts(
        lambda part: torch.where(part == 0, part.double(), part.double() + offset).to(part.dtype)
    )(item)


def _some_slices_zero(item: torch.Tensor) -> torch.Tensor:
    """Every fourth slice along the first dimension; of a square matrix the columns as well."""
    if item.dim() < 2 or item.shape[0] < 2:  # noqa: PLR2004 - slices of more than one number, and not all
        return item
    changed = item.clone()
    changed[1::4] = 0
    if item.dim() == 2 and item.shape[0] == item.shape[1]:  # noqa: PLR2004 - a square
        changed[:, 1::4] = 0
    return changed


def _masked(item: torch.Tensor) -> torch.Tensor:
    hidden = (pseudo_random(item) % 4 == 0) & (item != 0)
    return item.masked_fill(hidden, -torch.inf)


def wide_integers(item: torch.Tensor) -> torch.Tensor:
    """Integers of up to twelve bits (eight of bfloat16, eleven of float16): one more than TF32 holds."""
    limit = {torch.float16: 2047.0, torch.bfloat16: 255.0}.get(item.dtype, 4095.0)
    largest = item.double().abs().max().clamp_min(1e-30)
    return (item.double() / largest * limit).round().to(item.dtype)


def small_integers(item: torch.Tensor) -> torch.Tensor:
    """Minus one, zero and one."""
    return torch.where(pseudo_random(item) % 3 == 0, torch.zeros_like(item), item.sign())


ROUNDED = Variant(name="rounded, so that many are equal", change=_rounded, decides=False)
SIGNED = Variant(name="with signs mixed", change=_by_parts(_mixed_signs))
FEW_LARGE = Variant(name="with a few values a hundred times as large", change=_few_large)

VARIANTS: tuple[Variant, ...] = (
    FEW_LARGE,
    SIGNED,
    Variant(name="scaled by 8", change=_scaled(8.0)),
    Variant(name="scaled by 1000", change=_scaled(1e3)),
    Variant(name="scaled by 1/1000", change=_scaled(1e-3), shrinks=True),
    Variant(name="with nine tenths zeros", change=_by_parts(_mostly_zeros), repeats=True),
    Variant(name="of one value", change=_one_value, repeats=True, alike=True),
    Variant(name="made negative, far from zero", change=_of_one_sign(-_FAR)),
    Variant(
        name="with every fourth slice along the first dimension zeros", change=_some_slices_zero, repeats=True
    ),
    Variant(name="made positive, far from zero", change=_of_one_sign(_FAR)),
    Variant(name="with signs flipped", change=torch.neg),
    ROUNDED,
    Variant(
        name="beside an offset a hundred times as large",
        change=_beside_an_offset,
        decides=False,
        room=4.0,
        flag="wrong-beside-an-offset",
        hint=", where a variance as the difference of two squares loses its digits",
    ),
    Variant(name="with a quarter masked to minus infinity", change=_by_parts(_masked), decides=False),
    Variant(name="scaled by 1e18", change=_scaled(1e18), decides=False),
    Variant(name="made negative and scaled by 1e9", change=_of_one_sign(-1e9), decides=False),
    Variant(name="scaled to denormal numbers", change=_scaled(1e-40), decides=False),
)
"""Stress inputs, those that show most first."""


def named(name: str) -> Variant:
    """The variant of that name. Raises KeyError."""
    return {item.name: item for item in VARIANTS}[name]

"""Is the output right: gates from the error of the reference itself, then the comparison.

The reference runs once in its own precision and once in float64 (the oracle).  What separates the two is
what a faithful implementation in that precision costs; the gates are a small multiple of it, with a
floor of a few units in the last place and a cap.  Both gates must hold: one for every element, scaled
by the element and by the root mean square of the output, and one on the relative L2 error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from cutegen_nb.core.evaluation import OutputComparison
from cutegen_nb.gpu.patterns import describe

MULTIPLE = 8.0
"""Gates are this many times the reference's own error. A kernel sums in another order than the library,
and a plain loop is a few times worse than the pairwise sum that libraries use."""
_CHUNK = 1 << 24
"""Elements compared at a time: at full size an output in float64 does not fit twice."""

_CAPS = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}
"""Widest element gate by dtype, relative to the element plus the output's root mean square."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What one output must keep to. Found once a problem, then kept for every candidate."""

    element: float
    """|candidate − oracle| ≤ element · (|oracle| + rms(oracle)), for every element."""
    l2: float
    """‖candidate − oracle‖₂ ≤ l2 · ‖oracle‖₂."""
    reference_l2: float
    """The reference's own relative L2 error."""
    against_oracle: bool = True
    """False where the reference itself lies outside the cap: then only the reference can be compared with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Errors:
    """Distance of one tensor from the oracle."""

    largest: float
    largest_scaled: float
    relative_l2: float


def floor(dtype: torch.dtype, reduction_length: float) -> float:
    """Narrowest element gate: a few units in the last place.

    64 of float32, because the hardware's approximate exponential, sine and reciprocal cost that; 4 of the
    half types, whose own rounding is larger. Sums over L terms in one thread lose about √(L/3) half
    units, hence the growth with √L from L = 4096 on.
    """
    growth = max(1.0, math.sqrt(reduction_length) / 64)
    if dtype is torch.float64:
        return 64 * torch.finfo(dtype).eps * growth
    # The half types' own rounding happens once, at the end: sums are kept in float32.
    rounding = 0.0 if dtype is torch.float32 else 4 * torch.finfo(dtype).eps
    return max(rounding, 64 * torch.finfo(torch.float32).eps * growth)


def if_terms_repeat(reduction_length: float) -> float:
    """The length to reckon with where a sum's terms are all alike, for `floor`'s growth.

    Each addition of the same term rounds the same way as long as the sum stays within one power of two, so
    that a plain loop over L terms loses in proportion to L, by up to L half units: L/4 are allowed. A row of
    4096 equal exponentials, summed one after another in float32, is off by 2.7e-5 on an H200.
    """
    return max(reduction_length, (reduction_length / 4) ** 2)


def cap(dtype: torch.dtype) -> float:
    """Widest element gate for outputs of `dtype`."""
    return _CAPS.get(dtype, 6e-2)


def caps() -> dict[torch.dtype, float]:
    """The widest element gates, by dtype."""
    return dict(_CAPS)


def find_gate(reference: torch.Tensor, oracle: torch.Tensor | None, reduction_length: float) -> Gate:
    """The gate for one output.

    `reference` and `oracle` have the same shape, `oracle` in float64 or None where the reference cannot
    run in float64; `reduction_length` is about how many terms the longest sum behind it has. Integer and
    boolean outputs must be equal, which is a gate of zero.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        return Gate(element=0.0, l2=0.0, reference_l2=0.0, against_oracle=False)
    dtype = torch.view_as_real(reference).dtype if reference.is_complex() else reference.dtype
    narrow, wide = floor(dtype, reduction_length), cap(dtype)
    if oracle is None:
        element = min(MULTIPLE * narrow, wide)
        return Gate(element=element, l2=element / 2, reference_l2=math.nan, against_oracle=False)
    errors = _errors(_real(reference), _real(oracle))
    beyond = errors.largest_scaled > wide or errors.relative_l2 > wide / 2
    if not math.isfinite(errors.largest_scaled) or beyond:
        element = min(MULTIPLE * narrow, wide)
        return Gate(element=element, l2=element / 2, reference_l2=errors.relative_l2, against_oracle=False)
    element = min(max(narrow, MULTIPLE * errors.largest_scaled), wide)
    # Rounding of single elements averages out in the norm; that of a sum is shared by all computed from it,
    # a whole row of a softmax, and does not.
    own = floor(dtype, 1.0)
    l2 = min(max(own / 2 + (narrow - own), MULTIPLE * errors.relative_l2), wide / 2)
    return Gate(element=element, l2=l2, reference_l2=errors.relative_l2)


def compare(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    index: int,
    candidate: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    gate: Gate,
    inputs: tuple[torch.Tensor, ...],
) -> OutputComparison:
    """Compare one output. Shapes and dtypes are equal already; `inputs` only serve to name a pattern."""
    true = compared_with(reference, oracle, gate)
    found, expected, plain = _real(candidate), _real(true), _real(reference)
    rms = _rms(expected)
    bad_count, first_bad = _bad_elements(found, expected, plain, gate.element, rms)
    errors = _errors(found, expected, plain)
    matches = bad_count == 0 and _within(errors, gate)
    place = None if first_bad is None else _unravel(first_bad, tuple(found.shape))
    wrong = None if matches else describe(candidate, true, gate.element, rms, inputs)
    return OutputComparison(
        index=index,
        shape=tuple(candidate.shape),
        dtype=str(candidate.dtype).removeprefix("torch."),
        matches=matches,
        max_abs_error=errors.largest,
        relative_l2_error=errors.relative_l2,
        reference_relative_l2_error=gate.reference_l2,
        tolerance_abs=gate.element * rms,
        tolerance_rel=gate.element,
        tolerance_l2=gate.l2,
        bad_fraction=bad_count / max(1, found.numel()),
        first_bad=None if place is None else place[: candidate.dim()],
        first_bad_values=None if place is None else (float(found[place]), float(expected[place])),
        pattern=wrong.sentence if wrong else "",
        wrong=wrong,
    )


def matches(
    candidate: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, gate: Gate, rms: float
) -> bool:
    """What `compare` says of a match and nothing more, up to the first part with an element outside the gate.

    `rms` is `root_mean_square` of what `compared_with` gives. Wrong answers that are tried against the
    comparison are mostly wrong from their first element on; a whole comparison of 1.6e9 elements takes 0.4 s
    on an H200.
    """
    found, expected, plain = _real(candidate), _real(compared_with(reference, oracle, gate)), _real(reference)
    for got, want, ordinary in _chunks(found, expected, plain):
        if bool(_is_bad(got, want, ordinary, gate.element, rms).any()):
            return False
    return _within(_errors(found, expected, plain), gate)


def compared_with(reference: torch.Tensor, oracle: torch.Tensor | None, gate: Gate) -> torch.Tensor:
    """What an output is compared with: the oracle, or the reference where its gate asks for that."""
    return oracle if gate.against_oracle and oracle is not None else reference


def root_mean_square(tensor: torch.Tensor) -> float:
    """Over the finite elements; real and imaginary parts count as two. 0 where there is none."""
    return _rms(_real(tensor))


def _within(errors: _Errors, gate: Gate) -> bool:
    return errors.relative_l2 <= gate.l2 or errors.largest == 0.0


def same(first: torch.Tensor, second: torch.Tensor, gate: Gate) -> bool:
    """Whether two runs of a candidate agree: bit for bit, or within the gate (atomics add in any order)."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    bad, _ = _bad_elements(_real(second), _real(first), _real(first), gate.element, _rms(_real(first)))
    return bad == 0


def distance(found: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Largest error relative to the element plus the root mean square, and the relative L2 error."""
    errors = _errors(_real(found), _real(expected))
    return errors.largest_scaled, errors.relative_l2


def bits_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes, so that NaN equals NaN and −0 differs from 0."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.numel() == 0:
        return True
    return bool(
        torch.equal(
            first.contiguous().view(-1).view(torch.uint8), second.contiguous().view(-1).view(torch.uint8)
        )
    )


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place: list[int] = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        place.append(rest)
    return tuple(reversed(place))


def _chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    flat = [tensor.reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), _CHUNK):
        yield tuple(part[start : start + _CHUNK].double() for part in flat)


def _rms(tensor: torch.Tensor) -> float:
    total, count = 0.0, 0
    for (part,) in _chunks(tensor):
        finite = part[torch.isfinite(part)]
        total += float((finite * finite).sum())
        count += finite.numel()
    return math.sqrt(total / count) if count else 0.0


def _errors(found: torch.Tensor, expected: torch.Tensor, plain: torch.Tensor | None = None) -> _Errors:
    """Distances over the elements where the reference is finite; elsewhere only the kind of value counts."""
    rms = _rms(expected)
    largest, scaled, squares, norm = 0.0, 0.0, 0.0, 0.0
    for got, want, ordinary in _chunks(found, expected, found if plain is None else plain):
        finite = torch.isfinite(want) & torch.isfinite(ordinary)
        error = torch.where(finite, (got - want).abs(), 0.0)
        error = torch.nan_to_num(error, nan=math.inf, posinf=math.inf)
        if error.numel():
            largest = max(largest, float(error.max()))
            ratio = error / (want.abs() + rms).clamp_min(torch.finfo(torch.float64).tiny)
            scaled = max(scaled, float(torch.where(finite, ratio, 0.0).max()))
        squares += float((error * error).sum())
        norm += float(torch.where(finite, want * want, 0.0).sum())
    relative = 0.0
    if squares > 0.0:
        relative = math.sqrt(squares / norm) if norm > 0.0 else math.inf
    return _Errors(largest=largest, largest_scaled=scaled, relative_l2=relative)


def _bad_elements(
    found: torch.Tensor, expected: torch.Tensor, plain: torch.Tensor, element: float, rms: float
) -> tuple[int, int | None]:
    """Number of elements outside the gate and the flat position of the first."""
    count, first, start = 0, None, 0
    for got, want, ordinary in _chunks(found, expected, plain):
        bad = _is_bad(got, want, ordinary, element, rms)
        here = int(bad.sum())
        if here and first is None:
            first = start + int(bad.to(torch.uint8).argmax())
        count += here
        start += got.numel()
    return count, first


def _is_bad(
    got: torch.Tensor, want: torch.Tensor, ordinary: torch.Tensor, element: float, rms: float
) -> torch.Tensor:
    """Mask of the elements outside the gate.

    Where the reference is not finite, its own value or the oracle's is asked for: NaN for NaN, the same
    infinity for an infinity.
    """
    bad = element_is_bad(got, want, element, rms)
    odd = ~torch.isfinite(ordinary)
    if bool(odd.any()):
        alike = (got == ordinary) | (got.isnan() & ordinary.isnan())
        bad &= ~(odd & alike)
    return bad


def element_is_bad(got: torch.Tensor, want: torch.Tensor, element: float, rms: float) -> torch.Tensor:
    """Mask of the elements outside the element gate; NaN matches NaN and an infinity itself."""
    alike = (got == want) | (got.isnan() & want.isnan())
    close = (got - want).abs() <= element * (want.abs() + rms)
    return ~(alike | (close & torch.isfinite(want)))


def sentence(item: OutputComparison) -> str:
    """One sentence on an output outside its gates."""
    text = f"Output {item.index} of shape {item.shape} is wrong"
    if item.first_bad is not None and item.first_bad_values is not None:
        got, want = item.first_bad_values
        text += (
            f" in {item.bad_fraction:.2%} of its elements, first at {item.first_bad}: "
            f"{got:.7g} instead of {want:.7g}"
        )
    elif not math.isnan(item.relative_l2_error):
        text += f": relative L2 error {item.relative_l2_error:.3g}, allowed {item.tolerance_l2:.3g}"
    return text + (f"; {item.pattern}." if item.pattern else ".")

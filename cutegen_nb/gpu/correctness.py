"""Is the output right: gates from the error of the reference itself, then the comparison.

The reference runs once in its own precision and once in float64 (the oracle).  What separates the two is
what a faithful implementation in that precision costs; the gates are a small multiple of it, with a
floor of a few units in the last place and a cap.  Both gates must hold: one for every element, scaled
by the element and by the root mean square of the output, and one on the relative L2 error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from cutegen_nb.core.evaluation import OutputComparison
from cutegen_nb.gpu.distances import Distance, measure, real, root_mean_square
from cutegen_nb.gpu.patterns import describe

MULTIPLE = 8.0
"""Gates are this many times the reference's own error. A kernel sums in another order than the library,
and a plain loop is a few times worse than the pairwise sum that libraries use."""
_HALVES = (torch.float16, torch.bfloat16)
_HALF_MULTIPLE = 4.0
_HALF_SHARE = 0.3125
"""The same for the relative L2 error of half types, and its floor as a share of the element's. What every
implementation loses there is the rounding of its result, a fifth of a unit in the last place; five quarters
of a unit are allowed, and two bits dropped are not."""
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


def units_lost(reduction_length: float) -> float:
    """Last bits that a mean of so many equal numbers may be off by, after `if_terms_repeat`.

    What a norm leaves of equal numbers is that error and no more, divided by the root of a small epsilon.
    """
    return max(1.0, reduction_length / 8)


def l2_multiple(dtype: torch.dtype) -> float:
    """How many times the reference's own relative L2 error is allowed."""
    return _HALF_MULTIPLE if dtype in _HALVES else MULTIPLE


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
    errors = measure(reference, oracle, reference)
    beyond = errors.largest_scaled > wide or errors.relative_l2 > wide / 2
    if not math.isfinite(errors.largest_scaled) or beyond:
        element = min(MULTIPLE * narrow, wide)
        return Gate(element=element, l2=element / 2, reference_l2=errors.relative_l2, against_oracle=False)
    element = min(max(narrow, MULTIPLE * errors.largest_scaled), wide)
    # Rounding of single elements averages out in the norm; that of a sum is shared by all computed from it,
    # a whole row of a softmax, and does not.
    own = floor(dtype, 1.0)
    share = _HALF_SHARE if dtype in _HALVES else 0.5
    l2 = min(max(share * own + (narrow - own), l2_multiple(dtype) * errors.relative_l2), wide / 2)
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
    found, expected = real(candidate), real(true)
    rms = root_mean_square(true)
    errors = measure(candidate, true, reference, element=gate.element, rms=rms)
    place = None if errors.first_bad is None else _unravel(errors.first_bad, tuple(found.shape))
    right = _within(errors, gate)
    wrong = None if right else describe(candidate, true, gate.element, rms, inputs)
    return OutputComparison(
        index=index,
        shape=tuple(candidate.shape),
        dtype=str(candidate.dtype).removeprefix("torch."),
        matches=right,
        max_abs_error=errors.largest,
        relative_l2_error=errors.relative_l2,
        reference_relative_l2_error=gate.reference_l2,
        tolerance_abs=gate.element * rms,
        tolerance_rel=gate.element,
        tolerance_l2=gate.l2,
        bad_fraction=errors.bad_count / max(1, found.numel()),
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
    true = compared_with(reference, oracle, gate)
    errors = measure(candidate, true, reference, element=gate.element, rms=rms, to_first_bad=True)
    return _within(errors, gate)


def compared_with(reference: torch.Tensor, oracle: torch.Tensor | None, gate: Gate) -> torch.Tensor:
    """What an output is compared with: the oracle, or the reference where its gate asks for that."""
    return oracle if gate.against_oracle and oracle is not None else reference


def _within(errors: Distance, gate: Gate) -> bool:
    return errors.bad_count == 0 and (errors.relative_l2 <= gate.l2 or errors.largest == 0.0)


def same(first: torch.Tensor, second: torch.Tensor, gate: Gate) -> bool:
    """Whether two runs of a candidate agree: bit for bit, or within the gate (atomics add in any order)."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    errors = measure(second, first, element=gate.element, rms=root_mean_square(first), to_first_bad=True)
    return errors.bad_count == 0


def distance(found: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Largest error relative to the element plus the root mean square, and the relative L2 error."""
    errors = measure(found, expected, found)
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


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    place: list[int] = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        place.append(rest)
    return tuple(reversed(place))


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

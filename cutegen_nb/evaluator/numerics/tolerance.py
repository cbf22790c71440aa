"""Tolerances, and the comparison of outputs with the float64 oracle.

The reference runs once in its own precision and once in float64 (the oracle). The difference is the error of
a faithful implementation in that precision. A tolerance is a small multiple of that error, with a floor of a
few units in the last place and a cap; the element tolerance is never narrower than KernelBench's.

An output must keep to two tolerances (its "gate"): one for every element, relative to the element plus the
root mean square of the output, and one for the relative L2 error. On inputs that the problem does not draw,
`widened_for_any_order` widens both by what an honest order of operations may lose.
docs/explanation/accuracy.md states the policy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from cutegen_nb.core.evaluation import OutputComparison
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics.distance import Distance, measure, real, root_mean_square
from cutegen_nb.evaluator.numerics.error_pattern import describe

MULTIPLE = 8.0
"""Tolerance ÷ the reference's own error. A kernel sums in another order than the library, and a plain loop is
a few times worse than the pairwise sum that libraries use."""
_HALVES = (torch.float16, torch.bfloat16)
"""The half-precision types: 11 and 8 significant bits."""
_HALF_MULTIPLE = 4.0
"""`MULTIPLE` for the relative L2 error of the half types."""
_HALF_SHARE = 0.3125
"""Floor of the half types' L2 tolerance ÷ floor of their element tolerance: 0.3125 · 4 eps = 1.25 eps.

Every implementation rounds its result, which costs a fifth of eps in the relative L2 error. Results cut off
two bits early exceed 1.25 eps, and so do results rounded three bits early.
"""
_KERNELBENCH = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
"""KernelBench's tolerance by dtype. KernelBench uses it as an absolute error, under which zeros pass for a
softmax of long rows; here it is relative to the element plus the output's root mean square."""
_UNIT_ROUNDOFF = {torch.float64: 2.0**-53}
"""Unit roundoff u (half a unit in the last place) of sums, by dtype; other dtypes sum in float32."""
_FLOAT32_ROUNDOFF = 2.0**-24
"""Unit roundoff u of float32, the type in which sums of float32 and half types are kept."""
_CHUNK = 1 << 27
"""Elements that `bits_equal` compares at a time, for a mask of 128 MiB."""
_WORD = 8
"""Bytes of the integers that `bits_equal` compares where both tensors consist of them."""
_LARGEST_SUMMATION_ERROR = 0.03
"""Largest relative error that `summation_error_bound` allows. Longer sums have to be split to stay below."""
_CAPS = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 6e-2}
"""Widest element tolerance by dtype, relative to the element plus the output's root mean square."""


def floor(dtype: torch.dtype, reduction_length: float) -> float:
    """Narrowest element tolerance: a few units in the last place, as multiples of eps.

    64 eps of float32, because the hardware's approximate exponential, sine and reciprocal cost that; at least
    4 eps of the half types, whose own rounding is larger; 64 eps of float64. A sum over L terms in one thread
    loses about √(L/3) half units, hence the growth with √L from L = 4096 on.
    """
    growth = max(1.0, math.sqrt(reduction_length) / 64)  # √4096 = 64
    if dtype is torch.float64:
        return 64 * torch.finfo(dtype).eps * growth
    # The half types' own rounding happens once, at the end: sums are kept in float32.
    rounding = 0.0 if dtype is torch.float32 else 4 * torch.finfo(dtype).eps
    return max(rounding, 64 * torch.finfo(torch.float32).eps * growth)


def kernelbench_tolerance(dtype: torch.dtype) -> float:
    """KernelBench's tolerance for outputs of `dtype`; 0 if it has none (float64, integers)."""
    return _KERNELBENCH.get(dtype, 0.0)


def summation_error_bound(dtype: torch.dtype, reduction_length: float) -> float:
    """Relative error that a sum of `reduction_length` terms of one sign may have in any order of additions.

    (n − 1) u for n terms one after another, u the unit roundoff (Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 4.2): 2.3 % for a thread that adds up 393,216 terms in float32. At most 3 %.
    """
    lost = max(0.0, reduction_length - 1.0) * _UNIT_ROUNDOFF.get(dtype, _FLOAT32_ROUNDOFF)
    return min(lost, _LARGEST_SUMMATION_ERROR)


def backward_error_bound(dtype: torch.dtype, reduction_length: float) -> float:
    """Relative change of the inputs that is equivalent to rounding in a sum of terms of either sign.

    8 √n u for n = `reduction_length` terms: rounding errors have no common sign, so that their bound grows
    with √n (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019, with λ = 8).
    """
    return 8.0 * math.sqrt(reduction_length) * _UNIT_ROUNDOFF.get(dtype, _FLOAT32_ROUNDOFF)


def widened_for_any_order(
    gate: Tolerance, dtype: torch.dtype, reduction_length: float, moved: tuple[float, float]
) -> Tolerance:
    """Widen `gate` to the error of the worst honest order of operations.

    `moved` is the distance that the exact answer moves, by element and in the L2 norm, when each input moves
    by `backward_error_bound`. A rounded sum is the exact sum of inputs changed by so much (backward error),
    so that `moved` shows the effect of cancellation.
    """
    lost = summation_error_bound(dtype, reduction_length)
    # moved[0] / 2: the L2 tolerance is half the element tolerance wherever nothing else is known of it.
    return replace(
        gate, element=max(gate.element, lost, moved[0]), l2=max(gate.l2, lost, moved[1], moved[0] / 2)
    )


def l2_multiple(dtype: torch.dtype) -> float:
    """L2 tolerance ÷ the reference's own relative L2 error, for outputs of `dtype`."""
    return _HALF_MULTIPLE if dtype in _HALVES else MULTIPLE


def cap(dtype: torch.dtype) -> float:
    """Widest element tolerance for outputs of `dtype`; 6e-2 for a type not listed."""
    return _CAPS.get(dtype, 6e-2)


def caps() -> dict[torch.dtype, float]:
    """Widest element tolerances, by dtype."""
    return dict(_CAPS)


def find_tolerance(
    reference: torch.Tensor, oracle: torch.Tensor | None, reduction_length: float
) -> Tolerance:
    """Find the tolerances for one output.

    `reference` and `oracle` have the same shape; `oracle` is float64, or None if the reference cannot run in
    float64. `reduction_length` is roughly the number of terms of the longest sum behind the output. Integer
    and boolean outputs must be equal: their tolerances are zero.
    """
    if not (reference.is_floating_point() or reference.is_complex()):
        return Tolerance(element=0.0, l2=0.0, reference_l2=0.0, against_oracle=False)
    dtype = torch.view_as_real(reference).dtype if reference.is_complex() else reference.dtype
    narrow, wide = floor(dtype, reduction_length), cap(dtype)
    if oracle is None:
        return _against_reference(dtype, narrow, reference_l2=math.nan)
    # `reference` as `plain`: elements where it overflows say nothing about its rounding.
    errors = measure(reference, oracle, reference)
    beyond = errors.largest_scaled > wide or errors.relative_l2 > wide / 2
    if not math.isfinite(errors.largest_scaled) or beyond:
        # The reference is no measure of faithful arithmetic here.
        return _against_reference(dtype, narrow, reference_l2=errors.relative_l2)
    usual = kernelbench_tolerance(dtype)
    # The cap bounds what the measured error may give; KernelBench's tolerance holds in any case.
    element = max(min(max(narrow, MULTIPLE * errors.largest_scaled), wide), usual)
    # Rounding of single elements averages out in the norm: a share of their floor is enough. The error of a
    # sum, `narrow - own`, is common to all that is computed from it (a row of a softmax) and counts in full.
    own = floor(dtype, 1.0)
    share = _HALF_SHARE if dtype in _HALVES else 0.5
    l2 = min(max(share * own + (narrow - own), l2_multiple(dtype) * errors.relative_l2), wide / 2)
    if dtype not in _HALVES:
        # Not for half types: sums kept in half precision show in the L2 error alone, far below 1e-2.
        l2 = max(l2, usual)
    return Tolerance(element=element, l2=l2, reference_l2=errors.relative_l2)


def _against_reference(dtype: torch.dtype, narrow: float, *, reference_l2: float) -> Tolerance:
    """Return the tolerances for a comparison with the reference itself; `narrow` is the dtype's `floor`."""
    usual = kernelbench_tolerance(dtype)
    element = max(min(MULTIPLE * narrow, cap(dtype)), usual)
    l2 = element / 2 if dtype in _HALVES else max(element / 2, usual)
    return Tolerance(element=element, l2=l2, reference_l2=reference_l2, against_oracle=False)


def find_tolerances(
    wanted: Sequence[torch.Tensor], truth: Sequence[torch.Tensor | None], reduction_length: float
) -> tuple[Tolerance, ...]:
    """Find the tolerances of several outputs from the reference's outputs and the oracle's."""
    return tuple(
        find_tolerance(want, true, reduction_length) for want, true in zip(wanted, truth, strict=True)
    )


def compare(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    index: int,
    candidate: torch.Tensor,
    reference: torch.Tensor,
    oracle: torch.Tensor | None,
    gate: Tolerance,
    inputs: tuple[torch.Tensor, ...],
) -> OutputComparison:
    """Compare output number `index` with its tolerances.

    Shapes and dtypes are equal already. `inputs` only serve to name the pattern of wrong elements.
    """
    true = expected_output(reference, oracle, gate)
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
        # A complex output is measured as pairs: the last index tells real from imaginary.
        first_bad=None if place is None else place[: candidate.dim()],
        first_bad_values=None if place is None else (float(found[place]), float(expected[place])),
        pattern=wrong.sentence if wrong else "",
        wrong=wrong,
    )


def matches(
    candidate: torch.Tensor, reference: torch.Tensor, oracle: torch.Tensor | None, gate: Tolerance, rms: float
) -> bool:
    """Return whether `compare` would find a match; stops at the first chunk with a bad element.

    `rms` is the `root_mean_square` of the tensor that `expected_output` returns. Wrong answers that are tried
    against the comparison are mostly wrong from their first element on; a whole comparison of 1.6e9 elements
    takes 0.4 s on an H200.
    """
    true = expected_output(reference, oracle, gate)
    errors = measure(candidate, true, reference, element=gate.element, rms=rms, to_first_bad=True)
    return _within(errors, gate)


def expected_output(reference: torch.Tensor, oracle: torch.Tensor | None, gate: Tolerance) -> torch.Tensor:
    """Return the tensor to compare an output with: the oracle, or the reference if `gate` asks for that."""
    return oracle if gate.against_oracle and oracle is not None else reference


def _within(errors: Distance, gate: Tolerance) -> bool:
    return errors.bad_count == 0 and (errors.relative_l2 <= gate.l2 or errors.largest == 0.0)


def same(first: torch.Tensor, second: torch.Tensor, gate: Tolerance) -> bool:
    """Return whether two runs of a candidate agree within the element tolerance: atomics add in any order."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    errors = measure(second, first, element=gate.element, rms=root_mean_square(first), to_first_bad=True)
    return errors.bad_count == 0


def distance(found: torch.Tensor, expected: torch.Tensor) -> tuple[float, float]:
    """Largest error relative to the element plus the root mean square, and the relative L2 error."""
    errors = measure(found, expected, found)
    return errors.largest_scaled, errors.relative_l2


def bits_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors hold the same bytes: NaN equals the same NaN, −0 differs from 0."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    if first.numel() == 0:
        return True
    one, two = (item.contiguous().view(-1).view(torch.uint8) for item in (first, second))
    if all(item.numel() % _WORD == 0 and item.storage_offset() % _WORD == 0 for item in (one, two)):
        one, two = one.view(torch.int64), two.view(torch.int64)
    # In chunks: the comparison makes a mask, a byte for each integer.
    parts = zip(one.split(_CHUNK), two.split(_CHUNK), strict=True)
    return all(torch.equal(part, other) for part, other in parts)


def _unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    # Row-major: the last dimension varies fastest.
    place: list[int] = []
    for extent in reversed(shape):
        position, rest = divmod(position, extent)
        place.append(rest)
    return tuple(reversed(place))


def sentence(item: OutputComparison) -> str:
    """Describe an output outside its tolerances in one sentence."""
    text = f"Output {item.index} of shape {item.shape} is wrong"
    if item.first_bad is not None and item.first_bad_values is not None:
        got, want = item.first_bad_values
        text += (
            f" in {item.bad_fraction:.2%} of its elements, first at {item.first_bad}: "
            f"{got:.7g} instead of {want:.7g} (tolerance: {item.tolerance_rel:.2g} × (|expected "
            "value| + root mean square of the expected output))"
        )
    elif not math.isnan(item.relative_l2_error):
        text += f": relative L2 error {item.relative_l2_error:.3g}, allowed {item.tolerance_l2:.3g}"
    return text + (f"; {item.pattern}." if item.pattern else ".")

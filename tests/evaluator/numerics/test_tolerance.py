"""Tolerances and the comparison with the oracle, on tensors alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from cutegen_nb.evaluator.numerics import (
    distance as distances,
)
from cutegen_nb.evaluator.numerics import (
    tolerance as correctness,
)


def _compare(candidate, reference, oracle=None, inputs=(), reduction_length=1.0):
    oracle = reference.double() if oracle is None else oracle
    gate = correctness.find_tolerance(reference, oracle, reduction_length)
    return correctness.compare(0, candidate, reference, oracle, gate, inputs)


def test_the_reference_itself_always_passes(values):
    # Through bfloat16 on the way: each element within the cap, the norm beyond half of it.
    rough = (values * (1 + 9e-4 * torch.sign(values))).float()
    assert _compare(rough.clone(), rough, values.double()).matches


def test_a_plain_loop_over_a_long_row_is_no_wrong_kernel():
    # KernelBench's softmax has rows of 393,216: one float32 sum after the other loses about 3e-5 of the sum,
    # and every element of the row shares that loss.
    length = 393_216
    exponentials = torch.rand(2, length, generator=torch.Generator().manual_seed(1)).exp()
    oracle = exponentials.double() / exponentials.double().sum(1, keepdim=True)
    loop = np.add.accumulate(exponentials.numpy(), axis=1, dtype=np.float32)[:, -1:]
    candidate = exponentials / torch.from_numpy(loop.copy())

    compared = _compare(candidate, oracle.float(), oracle, reduction_length=length)

    assert compared.relative_l2_error > 1e-5
    assert compared.matches
    assert not _compare(candidate * 1.0003, oracle.float(), oracle, reduction_length=length).matches


@pytest.fixture
def values():
    generator = torch.Generator().manual_seed(7)
    return torch.randn(64, 48, generator=generator)


@pytest.mark.parametrize("length", [1024, 4096, 16_384])
def test_a_plain_loop_over_terms_that_repeat_is_no_wrong_kernel(length):
    # A softmax of mostly zeros: nine exponentials in ten are one number, and each addition of it rounds alike.
    # No problem draws such inputs; the tolerance is that of the worst order of additions.
    generator = torch.Generator().manual_seed(2)
    drawn = torch.randn(8, length, generator=generator)
    drawn[torch.rand(8, length, generator=generator) < 0.9] = 0.0
    exponentials = (drawn - drawn.amax(1, keepdim=True)).exp()
    oracle = exponentials.double() / exponentials.double().sum(1, keepdim=True)
    loop = np.add.accumulate(exponentials.numpy(), axis=1, dtype=np.float32)[:, -1:]
    candidate = exponentials / torch.from_numpy(loop.copy())
    usual = correctness.find_tolerance(oracle.float(), oracle, 1.0)
    gate = correctness.widened_for_any_order(usual, torch.float32, length, (0.0, 0.0))

    assert correctness.compare(0, candidate, oracle.float(), oracle, gate, ()).matches
    assert not correctness.compare(0, candidate * 1.002, oracle.float(), oracle, gate, ()).matches


@pytest.mark.parametrize(
    ("dtype", "usual"), [(torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 4 * 2.0**-7)]
)
def test_the_tolerance_is_never_narrower_than_kernelbenchs(values, dtype, usual):
    exact = values.to(dtype)
    assert correctness.find_tolerance(exact, exact.double(), 1.0).element == usual


def test_half_types_keep_a_norm_below_kernelbenchs():
    # Sums kept in half precision show in the L2 error alone.
    exact = torch.randn(64, 48, generator=torch.Generator().manual_seed(7)).half()
    gate = correctness.find_tolerance(exact, exact.double(), 1.0)
    assert gate.l2 == pytest.approx(1.25 * torch.finfo(torch.float16).eps)


@pytest.mark.parametrize(
    ("dtype", "length", "bound"),
    [
        (torch.float32, 1.0, 0.0),
        (torch.float32, 2.0, 2.0**-24),
        (torch.float32, 393_216.0, 393_215 * 2.0**-24),  # 2.3 %, docs/explanation/accuracy.md
        (torch.float16, 1025.0, 1024 * 2.0**-24),  # summed in float32
        (torch.float64, 1025.0, 1024 * 2.0**-53),
        (torch.float32, 1e9, 0.03),
    ],
)
def test_a_sum_may_lose_a_roundoff_for_each_addition_and_three_percent_at_most(dtype, length, bound):
    assert correctness.summation_error_bound(dtype, length) == pytest.approx(bound)


def test_inputs_that_cancel_move_the_tolerance_by_what_the_exact_answer_moves():
    gate = correctness.Tolerance(element=1e-4, l2=1e-4, reference_l2=1e-7)
    wide = correctness.widened_for_any_order(gate, torch.float32, 16.0, (0.02, 0.005))
    assert (wide.element, wide.l2) == (0.02, 0.01)
    assert correctness.widened_for_any_order(gate, torch.float32, 16.0, (0.0, 0.0)) == gate
    assert correctness.backward_error_bound(torch.float32, 16.0) == 32 * 2.0**-24


def test_without_an_oracle_the_tolerance_is_a_multiple_of_the_floor_around_the_reference(values):
    gate = correctness.find_tolerance(values.double(), None, 1.0)
    assert not gate.against_oracle
    assert gate.element == 8 * correctness.floor(torch.float64, 1.0)
    assert math.isnan(gate.reference_l2)


@pytest.mark.parametrize("oracle", [None, torch.full((3,), 4.0, dtype=torch.float64)])
def test_around_the_reference_too_it_is_never_narrower_than_kernelbench_s(oracle):
    gate = correctness.find_tolerance(torch.tensor([1.0, 2.0, 3.0]), oracle, 1.0)
    assert not gate.against_oracle
    assert (gate.element, gate.l2) == (1e-4, 1e-4)


def test_a_wrong_output_is_one_sentence_with_place_values_and_tolerance(values):
    spoiled = values.clone()
    spoiled[5, 7] += 3.0
    got, want = spoiled[5, 7].item(), values[5, 7].item()
    text = correctness.sentence(_compare(spoiled, values))
    assert text == (
        f"Output 0 of shape (64, 48) is wrong in 0.03% of its elements, first at (5, 7): {got:.7g} instead of "
        f"{want:.7g} (tolerance: 0.0001 × (|expected value| + root mean square of the expected output)); "
        "one element is wrong, at flat index 247 of 3072."
    )


def test_an_output_off_by_a_little_everywhere_is_told_by_its_norm():
    # Each element within 1e-4 of itself and the root mean square; together beyond 1e-4 of the norm.
    even = torch.ones(1000)
    text = correctness.sentence(_compare(even * (1 + 1.8e-4), even))
    assert text == "Output 0 of shape (1000,) is wrong: relative L2 error 0.00018, allowed 0.0001."


def test_equal_outputs_match_with_no_error(values):
    result = _compare(values.clone(), values)
    assert result.matches
    assert result.max_abs_error == 0.0
    assert result.bad_fraction == 0.0


def test_the_error_of_fast_math_passes_in_float32(values):
    oracle = values.double().exp()
    assert _compare((oracle * (1 + 2e-6)).float(), oracle.float(), oracle).matches


def test_kernelbenchs_one_in_ten_thousand_passes_in_float32_and_twice_that_fails(values):
    oracle = values.double().exp()
    assert _compare((oracle * (1 + 0.9e-4)).float(), oracle.float(), oracle).matches
    assert not _compare((oracle * (1 + 2e-4)).float(), oracle.float(), oracle).matches


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rounding_once_more_passes_in_half_precision_and_a_percent_too_many_fails(values, dtype):
    oracle = values.double()
    unit = torch.finfo(dtype).eps
    assert _compare((oracle * (1 + unit)).to(dtype), oracle.to(dtype), oracle).matches
    assert not _compare((oracle * (1 + 8 * unit)).to(dtype), oracle.to(dtype), oracle).matches


@pytest.mark.parametrize(("dtype", "bits"), [(torch.float16, 8), (torch.bfloat16, 5)])
def test_results_of_three_bits_less_fail_in_half_precision(values, dtype, bits):
    oracle = values.double().erf()
    mantissa, exponent = torch.frexp(oracle)
    coarse = torch.ldexp((mantissa * 2**bits).round() / 2**bits, exponent)
    assert _compare(oracle.to(dtype), oracle.to(dtype), oracle).matches
    assert not _compare(coarse.to(dtype), oracle.to(dtype), oracle).matches


def test_a_sum_in_another_order_passes(values):
    terms = torch.rand(32, 65536, generator=torch.Generator().manual_seed(1))
    oracle = terms.double().sum(1)
    one_by_one = terms.view(32, 256, 256).sum(1).cumsum(1)[:, -1]
    assert _compare(one_by_one, terms.sum(1), oracle, reduction_length=65536).matches


def test_a_sum_that_leaves_out_one_term_in_a_thousand_fails():
    terms = torch.rand(32, 65536, generator=torch.Generator().manual_seed(1))
    oracle = terms.double().sum(1)
    assert not _compare(terms[:, :65471].sum(1), terms.sum(1), oracle, reduction_length=65536).matches


def test_the_gate_never_exceeds_its_cap(values):
    noisy = values + 1e-4 * torch.randn(values.shape, generator=torch.Generator().manual_seed(3))
    gate = correctness.find_tolerance(noisy, values.double(), 1e9)
    assert gate.element <= correctness.cap(torch.float32)


def test_a_reference_far_from_its_own_oracle_is_compared_with_instead():
    reference = torch.tensor([1.0, 2.0, 3.0])
    jumped = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    gate = correctness.find_tolerance(reference, jumped, 1.0)
    assert not gate.against_oracle
    assert correctness.compare(0, reference.clone(), reference, jumped, gate, ()).matches


def test_integers_must_be_equal():
    indices = torch.arange(10)
    assert _compare(indices.clone(), indices).matches
    off = indices.clone()
    off[3] += 1
    result = _compare(off, indices)
    assert not result.matches
    assert result.first_bad == (3,)
    assert result.first_bad_values == (4.0, 3.0)


def test_nan_is_wrong_where_the_reference_is_finite_and_right_where_it_is_nan(values):
    spoiled = values.clone()
    spoiled[5, 7] = float("nan")
    result = _compare(spoiled, values)
    assert not result.matches
    assert result.first_bad == (5, 7)
    assert _compare(spoiled.clone(), spoiled).matches


def test_infinities_must_have_the_same_sign(values):
    reference = values.clone()
    reference[0, 0] = float("inf")
    assert _compare(reference.clone(), reference).matches
    other = reference.clone()
    other[0, 0] = -float("inf")
    assert not _compare(other, reference).matches


def test_zeros_and_empty_outputs_match_themselves():
    zeros = torch.zeros(8, 8)
    assert _compare(zeros.clone(), zeros).matches
    assert not _compare(torch.full((8, 8), 1e-20), zeros).matches
    empty = torch.empty(0, 4)
    assert _compare(empty.clone(), empty).matches


def test_complex_outputs_are_compared_by_their_parts(values):
    reference = torch.complex(values, values + 1)
    result = _compare(reference.clone(), reference, reference.to(torch.complex128))
    assert result.matches
    assert not _compare(reference.conj().resolve_conj(), reference, reference.to(torch.complex128)).matches


def test_bits_are_compared_as_bits():
    nan = torch.tensor([float("nan"), 0.0])
    assert correctness.bits_equal(nan, nan.clone())
    assert not correctness.bits_equal(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert not correctness.bits_equal(torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize("count", [1, 7, 64, 1001])
def test_every_byte_is_compared_in_chunks_and_from_any_offset_on(count, monkeypatch):
    monkeypatch.setattr(correctness, "_CHUNK", 5)
    whole = torch.arange(count + 1, dtype=torch.uint8)
    one = whole[1:]
    assert correctness.bits_equal(one, one.clone())
    for at in {0, count // 2, count - 1}:
        other = one.clone()
        other[at] += 1
        assert not correctness.bits_equal(one, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.int32])
@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-6, 1.0 + 3e-3, 1.5, 0.0, float("nan")])
@pytest.mark.parametrize("part", [slice(None), slice(-1, None), slice(0, 1)])
def test_the_short_answer_is_that_of_the_whole_comparison(monkeypatch, dtype, factor, part):
    monkeypatch.setattr(distances, "_CHUNK_ELEMENTS", 256)
    generator = torch.Generator().manual_seed(7)
    exact = (torch.randn(1000, generator=generator, dtype=torch.float64) * 30).to(
        torch.complex128 if dtype.is_complex else torch.float64
    )
    reference = exact.to(dtype)
    floating = dtype.is_floating_point or dtype.is_complex
    oracle = exact if floating else None
    gate = correctness.find_tolerance(reference, oracle, 1.0)
    candidate = reference.clone()
    if floating or not math.isnan(factor):
        candidate[part] = (candidate[part].to(exact.dtype) * factor).to(dtype)
    if floating:
        exact[500], reference[500], candidate[500] = (float("inf"),) * 3
    rms = distances.root_mean_square(correctness.expected_output(reference, oracle, gate))
    whole = correctness.compare(0, candidate, reference, oracle, gate, ())
    assert correctness.matches(candidate, reference, oracle, gate, rms) is whole.matches

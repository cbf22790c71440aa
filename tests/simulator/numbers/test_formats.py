"""Formats of floats: exact widening, one rounding to narrow, NaN and integers at the ends of their range."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers import formats
from cutegen_nb.simulator.numbers.formats import integer_of, single_to_bfloat, single_to_half, to_eight_bits


def singles(*values):
    return np.array(values, np.float32)


def test_every_half_widens_exactly_and_rounds_back_to_itself():
    bits = np.arange(65536, dtype=np.uint16)
    wide = formats.half_to_single(bits)
    finite = np.isfinite(wide)
    assert (single_to_half(wide[finite]) == bits[finite]).all()
    assert (single_to_half(singles(np.nan, -np.nan)) == 0x7FFF).all()


def test_a_bfloat_tie_goes_to_the_even_neighbour():
    below, above = np.uint32(0x3F808000), np.uint32(0x3F818000)  # halfway between two bfloat16 each
    bits = single_to_bfloat(np.array([below, above]).view(np.float32))
    assert bits.tolist() == [0x3F80, 0x3F82]
    assert single_to_bfloat(singles(np.nan)).tolist() == [0x7FFF]


@pytest.mark.parametrize(
    ("kind", "table", "greatest"),
    [("e4m3", formats.E4M3_TO_SINGLE, 448.0), ("e5m2", formats.E5M2_TO_SINGLE, 57344.0)],
)
def test_eight_bit_codes_come_back_and_what_is_beyond_is_the_greatest(kind, table, greatest):
    finite = np.flatnonzero(np.isfinite(table))
    assert (to_eight_bits(table[finite], kind) == finite).all()
    with np.errstate(invalid="ignore"):  # as in a launch
        codes = to_eight_bits(singles(1e9, -1e9, np.inf), kind)
    assert table[codes].tolist() == [greatest, -greatest, greatest]
    with np.errstate(invalid="ignore"):
        assert to_eight_bits(singles(np.nan), kind).tolist() == [0x7F]


def test_subnormals_are_flushed_with_their_sign_and_saturation_ends_at_plus_zero():
    found = formats.flushed(singles(1e-40, -1e-40, 1.0))
    assert found.tolist() == [0.0, 0.0, 1.0]
    assert np.signbit(found).tolist() == [False, True, False]
    assert formats.saturated(singles(-2, 0.5, 3, np.nan)).tolist() == [0.0, 0.5, 1.0, 0.0]


def test_an_approximation_keeps_its_bits_and_powers_of_two():
    cut = formats.truncate_to_fraction_bits(np.array([1 / 3, 0.25, -8.0]), 11)
    assert 0 < (1 / 3 - float(cut[0])) * 3 <= 2.0**-11
    assert cut[1:].tolist() == [0.25, -8.0]


@pytest.mark.parametrize(
    ("kind", "values"), [(np.int32, (-(2**31), 2**31 - 1, 0)), (np.uint64, (0, 2**64 - 1, 2**63))]
)
def test_numbers_out_of_range_saturate_and_nan_has_the_value_of_its_width(kind, values):
    found = integer_of(singles(-1e30, 1e30, np.nan), "rni", np.dtype(kind))
    assert tuple(found.tolist()) == values
    assert integer_of(singles(2.5, -2.5), "rni", np.dtype(np.int32)).tolist() == [2, -2]
    assert integer_of(singles(2.1, -2.1), "rpi", np.dtype(np.int32)).tolist() == [3, -2]

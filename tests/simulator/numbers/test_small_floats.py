"""Floats of 4 and 6 bits and scales of blocks, against the formats' own tables."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers.small_floats import VALUES, codes_of, scale_codes, scale_values


def test_the_values_are_those_of_the_formats():
    assert VALUES["e2m1"][:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert (VALUES["e2m3"][31], VALUES["e3m2"][31]) == (7.5, 28)
    assert (VALUES["e2m3"][1], VALUES["e3m2"][1]) == (0.125, 0.0625)


@pytest.mark.parametrize("kind", VALUES)
def test_a_number_goes_to_the_nearest_code(kind):
    table = VALUES[kind].astype(np.float64)
    half = len(table) // 2
    given = np.random.default_rng(1).normal(0, table.max() / 2, 500).astype(np.float32)
    nearest = np.abs(given[:, None].astype(np.float64) - table[None]).min(axis=1)
    found = table[codes_of(given, kind)]
    assert (np.abs(given - found) == nearest).all()
    middles = ((table[: half - 1] + table[1:half]) / 2).astype(np.float32)
    even = np.arange(half - 1) + np.arange(half - 1) % 2
    assert (codes_of(middles, kind) == even).all()
    assert (table[codes_of(table.astype(np.float32), kind)] == table).all()


@pytest.mark.parametrize("kind", VALUES)
def test_what_is_beyond_becomes_the_greatest(kind):
    greatest = len(VALUES[kind]) // 2 - 1
    given = np.array([1e9, np.inf, -np.inf, np.nan], np.float32)
    assert codes_of(given, kind).tolist() == [greatest, greatest, 2 * greatest + 1, greatest]


def test_scales_are_powers_of_two_or_unsigned_e4m3():
    assert scale_values(np.array([0, 127, 130], np.uint8), "ue8m0").tolist() == [2.0**-127, 1, 8]
    assert np.isnan(scale_values(np.array([255], np.uint8), "ue8m0"))[0]
    assert scale_values(np.array([0x38, 0xB8, 0x7E], np.uint8), "ue4m3").tolist() == [1, 1, 448]


def test_a_scale_is_rounded_down_or_up_to_a_power_of_two():
    given = np.array([1, 1.5, 3, 0, np.nan, np.inf], np.float32)
    assert scale_codes(given, upwards=False).tolist() == [127, 127, 128, 0, 255, 254]
    assert scale_codes(given, upwards=True).tolist() == [127, 128, 129, 0, 255, 254]

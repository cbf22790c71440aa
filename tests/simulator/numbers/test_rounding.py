"""Results are rounded once in every direction, against exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest

from cutegen_nb.simulator.numbers import rounding

OPERATIONS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
}


def drawn(kind, count=300):
    draw = random.Random(3)
    return np.array([draw.choice((-1, 1)) * 2 ** draw.uniform(-30, 30) for _ in range(count)], kind)


def is_rounded(result, exact, mode):
    """Whether a float is the exact number's neighbour on the side that the mode names."""
    number = Fraction(float(result))
    if mode == "rn":
        others = (np.nextafter(result, result.dtype.type(side)) for side in (-np.inf, np.inf))
        return all(abs(number - exact) <= abs(Fraction(float(one)) - exact) for one in others)
    toward = {"rm": -np.inf, "rp": np.inf, "rz": -np.inf if exact > 0 else np.inf}[mode]
    if number != exact and (number < exact) != (toward < 0):
        return False
    back = Fraction(float(np.nextafter(result, result.dtype.type(-toward))))
    return number == exact or (back > exact) == (toward < 0)


@pytest.mark.parametrize("mode", rounding.MODES)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(("kind", "of"), [(np.float32, rounding.single), (np.float64, rounding.double)])
def test_the_exact_result_is_rounded_in_the_direction_of_the_mode(name, mode, kind, of):
    x, y = drawn(kind), drawn(kind)[::-1].copy()
    found = of(name, mode)(x, y)
    exact = [OPERATIONS[name](Fraction(float(a)), Fraction(float(b))) for a, b in zip(x, y, strict=True)]
    assert all(is_rounded(one, number, mode) for one, number in zip(found, exact, strict=True))


def test_a_multiply_add_is_rounded_once_where_two_roundings_would_lie_on_a_midpoint():
    x, y, z = (np.array([one], np.float32) for one in (1 + 2.0**-23, 1 + 2.0**-23, 2.0**-60))
    found = rounding.multiply_add_single(x, y, z)
    exact = Fraction(float(x[0])) * Fraction(float(y[0])) + Fraction(float(z[0]))
    assert is_rounded(found[0], exact, "rn")


def test_an_inexact_sum_rounded_to_odd_ends_in_a_one_and_an_exact_one_stays():
    found = rounding.sum_to_odd(np.array([1.0, 1.0]), np.array([2.0**-80, 2.0**-52]))
    assert found.tolist() == [1 + 2.0**-52, 1 + 2.0**-52]
    down = rounding.sum_to_odd(np.array([1.0]), np.array([-1.0]), "rm")
    assert np.signbit(down).all()


def test_beyond_the_range_the_direction_decides_between_infinity_and_the_greatest_number():
    large = np.array([1e300])
    with np.errstate(over="ignore"):  # as in a launch
        nearest, zero, up = (
            rounding.toward(one, mode).tolist()
            for one, mode in ((large, "rn"), (large, "rz"), (-large, "rp"))
        )
    assert nearest == [np.inf]
    assert zero == [float(np.finfo(np.float32).max)]
    assert up == [float(np.finfo(np.float32).min)]

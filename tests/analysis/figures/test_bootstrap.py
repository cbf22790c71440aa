"""The widening of a bootstrap interval, against tables of Student's t."""

import math

import pytest

from cutegen_nb.analysis.figures.bootstrap import NORMAL, widening


@pytest.mark.parametrize(("blocks", "student"), [(5, 2.776), (10, 2.262), (31, 2.042), (121, 1.980)])
def test_the_factor_is_that_of_students_quantile(blocks, student):
    wanted = student / NORMAL * math.sqrt(blocks / (blocks - 1))
    assert widening(blocks) == pytest.approx(wanted, rel=3e-3)


def test_many_blocks_need_none_and_one_says_nothing():
    assert widening(100_000) == pytest.approx(1.0, abs=1e-4)
    assert widening(1) == math.inf
    assert widening(3) > widening(4) > 1

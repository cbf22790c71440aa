"""Strata of a grid: each cluster lies in one of them, edges apart, and draws are spread evenly."""

import itertools

import numpy as np
import pytest

from cutegen_nb.simulator.sampling.strata import (
    Stratum,
    cluster_of,
    clusters_of,
    ctas_of,
    neighbours,
    strata,
)
from cutegen_nb.simulator.state.launch import Launch


def launch(grid, cluster=(1, 1, 1)):
    return Launch(grid=grid, block=(32, 1, 1), dynamic_smem_bytes=0, cluster=cluster)


@pytest.mark.parametrize(
    ("grid", "cluster", "sizes"),
    [
        ((1, 1, 1), (1, 1, 1), [1]),
        ((7, 1, 1), (1, 1, 1), [1, 6]),
        ((5, 4, 1), (1, 1, 1), [1, 3, 4, 12]),
        ((5, 4, 3), (1, 1, 1), [1, 2, 3, 4, 6, 8, 12, 24]),
        ((8, 4, 2), (2, 2, 1), [1, 1, 1, 1, 3, 3, 3, 3]),
    ],
)
def test_each_cta_lies_in_one_stratum(grid, cluster, sizes):
    whole = launch(grid, cluster)
    found = strata(whole)
    assert sorted(one.size for one in found) == sizes
    numbers = np.concatenate([ctas_of(whole, one.places()) for one in found])
    assert sorted(numbers.tolist()) == list(range(grid[0] * grid[1] * grid[2]))


def test_the_last_of_each_axis_is_apart():
    inside = max(strata(launch((9, 6, 4))), key=lambda one: one.size)
    assert (inside.first, inside.extents) == ((0, 0, 0), (8, 5, 3))


def test_places_are_numbered_with_x_fastest():
    inside = max(strata(launch((4, 3, 2))), key=lambda one: one.size)
    assert inside.places() == [(x, y, 0) for y, x in itertools.product(range(2), range(3))]


@pytest.mark.parametrize("many", [1, 4, 16, 100])
def test_one_cluster_is_drawn_from_each_of_equal_parts(many):
    stratum = max(strata(launch((1001, 1, 1))), key=lambda one: one.size)
    drawn = [place[0] for place in stratum.draw(np.random.default_rng(1), many)]
    assert [one * many // 1000 for one in drawn] == list(range(many))


def test_a_stratum_smaller_than_the_draw_is_drawn_whole():
    stratum = max(strata(launch((4, 1, 1))), key=lambda one: one.size)
    assert stratum.draw(np.random.default_rng(1), 16) == stratum.places()


def test_clusters_are_numbered_as_a_grid_of_their_own():
    whole = launch((6, 4, 1), (2, 2, 1))
    assert clusters_of(whole) == (3, 2, 1)
    assert ctas_of(whole, [(1, 1, 0)]).tolist() == [14, 15, 20, 21]
    assert {cluster_of(whole, cta) for cta in (14, 15, 20, 21)} == {(1, 1, 0)}


def test_neighbours_beyond_the_grid_are_left_out():
    whole = launch((5, 4, 3))
    assert neighbours(whole, 0) == {"x": 1, "y": 5, "z": 20}
    assert neighbours(whole, 5 * 4 * 3 - 1) == {}
    assert neighbours(whole, 4) == {"y": 9, "z": 24}


@pytest.mark.parametrize("period", [2, 4, 8])
def test_draws_from_a_large_stratum_have_different_remainders(period):
    """What only one of so many clusters does is drawn: all remainders of 2 and 4, the first and the last of 8."""
    stratum = Stratum(first=(0, 0, 0), extents=(9263, 1, 1))
    for seed in range(20):
        remainders = {x % period for x, _, _ in stratum.draw(np.random.default_rng(seed), 4)}
        assert remainders >= {0, period - 1}
        assert len(remainders) == min(period, 4)

"""Addresses in a cluster name a CTA by its rank, and keep their offset."""

import numpy as np
import pytest

from cutegen_nb.simulator.state import clusters


def test_ctas_are_ordered_by_cluster_and_then_by_rank():
    assert clusters.by_cluster((4, 2, 1), (2, 2, 1)).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert clusters.by_cluster((2, 1, 1), (1, 1, 1)).tolist() == [[0], [1]]


@pytest.mark.parametrize("kind", [np.uint32, np.int64])
def test_a_mapped_address_keeps_its_offset_and_names_its_rank(kind):
    own = np.array([16, 16, 1 << 20], kind)
    there = clusters.mapped(own, np.array([0, 3, 1])).astype(np.int64)
    assert clusters.offsets_of(there).tolist() == own.tolist()
    assert clusters.ranks_of(there, np.full(3, 9)).tolist() == [0, 3, 1]
    again = clusters.mapped(there, np.array([2, 2, 2]))
    assert clusters.ranks_of(again, np.zeros(3)).tolist() == [2, 2, 2]


def test_an_address_without_a_rank_is_the_threads_own_cta():
    addresses = np.array([16, -1])
    assert clusters.rows_of(addresses, np.array([5, 6]), 4).tolist() == [5, 6]
    assert clusters.ranks_of(addresses[:1], np.array([3])).tolist() == [3]


def test_a_multicast_goes_to_the_ranks_of_its_mask_in_the_senders_cluster():
    sources, rows = clusters.multicast(np.array([0b101, 0b010]), np.array([1, 6]), 4)
    assert list(zip(sources.tolist(), rows.tolist(), strict=True)) == [(0, 0), (0, 2), (1, 5)]


def test_a_rank_names_the_row_of_its_cta_in_the_threads_own_cluster():
    there = clusters.mapped(np.array([16, 16]), np.array([0, 3]))
    assert clusters.rows_of(there, np.array([5, 6]), 4).tolist() == [4, 7]

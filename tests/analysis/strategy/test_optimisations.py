"""Every optimisation on both of its sides, and where nothing tells whether a kernel carries it out."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.analysis.strategy.optimisations import in_force
from cutegen_nb.core.strategy import Optimisation

CASES = [
    # Optimisation, traits that show it, traits that deny it.
    (Optimisation.COALESCED, {"coalesced_fraction": 0.7}, {"coalesced_fraction": 0.69}),
    (Optimisation.VECTORS, {"wide_fraction": 0.8}, {"wide_fraction": 0.79}),
    (Optimisation.IN_FLIGHT, {"loads_in_flight": 2}, {"loads_in_flight": 1}),
    (Optimisation.GRID_STRIDE, {"grid_stride": True}, {"grid_stride": False}),
    (
        Optimisation.ONE_KERNEL,
        {"launches": 2, "intermediate_fraction": 0.05},
        {"launches": 2, "intermediate_fraction": 0.06},
    ),
    (Optimisation.ROWS_SHARED, {"row_owner": "warp"}, {"row_owner": "thread"}),
    (Optimisation.WARP_A_ROW, {"row_owner": "warp"}, {"row_owner": "CTA"}),
    (Optimisation.ROW_KEPT, {"passes": 1.3}, {"passes": 1.31}),
    (Optimisation.PASSES_MERGED, {"passes": 2.6}, {"passes": 2.61}),
    (Optimisation.SPLIT, {"split": True}, {"split": False}),
    (Optimisation.SHARED_TILES, {"staged_fraction": 0.5}, {"staged_fraction": 0.49}),
    (Optimisation.REGISTER_BLOCKS, {"multiply_adds_a_load": 1.5}, {"multiply_adds_a_load": 1.49}),
    (Optimisation.TENSOR_CORES, {"tensor_types": ("f16",), "launches": 1}, {"launches": 1}),
    (Optimisation.PIPELINED, {"covered_instructions": 64.0}, {"covered_instructions": 63.9}),
    (Optimisation.CONFLICT_FREE, {"conflict_ratio": 1.05}, {"conflict_ratio": 1.06}),
]


@pytest.mark.parametrize(("name", "shown", "denied"), CASES)
def test_each_optimisation_is_shown_on_one_side_and_denied_on_the_other(name, shown, denied):
    yes, no = in_force(name, KernelTraits(**shown)), in_force(name, KernelTraits(**denied))
    assert yes is not None
    assert no is not None
    assert (yes[0], no[0]) == (True, False)
    assert yes[1] != "" != no[1]


def test_every_optimisation_is_tested_and_defined():
    assert [case[0] for case in CASES] == list(Optimisation)
    assert all(item.meaning.endswith(".") for item in Optimisation)


def test_what_nothing_tells_is_neither_shown_nor_denied():
    told = {item for item in Optimisation if in_force(item, KernelTraits()) is not None}
    # The text of a kernel says whether a loop walks its grid; all else needs counts.
    assert told == {Optimisation.GRID_STRIDE}


@pytest.mark.parametrize(
    ("name", "traits", "answer"),
    [
        (Optimisation.ROW_KEPT, {"passes": 1.0, "passes_at_most": 3.0}, None),
        (Optimisation.ROW_KEPT, {"passes": 1.0}, (True, "rows are read once")),
        (
            Optimisation.ROW_KEPT,
            {"passes": 2.0, "passes_at_most": 3.0},
            (False, "rows are read 2 to 3 times"),
        ),
        (Optimisation.ONE_KERNEL, {"launches": 1}, (True, "no intermediate tensor is stored")),
        (Optimisation.ONE_KERNEL, {"launches": 3}, (False, "3 launches pass tensors on")),
        (
            Optimisation.ONE_KERNEL,
            {"launches": 2, "intermediate_fraction": 0.0, "values_passed_bytes": 4096, "split": True},
            (True, "2 launches pass partial sums of 4,096 bytes, and no intermediate tensor"),
        ),
        (Optimisation.SHARED_TILES, {"async_copies": True}, (True, "asynchronous copies fill shared memory")),
        (
            Optimisation.REGISTER_BLOCKS,
            {"tensor_types": ("?",)},
            (True, "fragments of tensor cores are blocks"),
        ),
        (Optimisation.PIPELINED, {"groups_in_flight": 2}, (True, "2 groups of copies stay under way")),
        (Optimisation.PIPELINED, {"groups_in_flight": 1}, (True, "a group of copies stays under way")),
        (Optimisation.PIPELINED, {"launches": 1}, (False, "nothing is loaded ahead of a barrier")),
        (Optimisation.CONFLICT_FREE, {"launches": 1}, (True, "shared memory is not used")),
        (
            Optimisation.VECTORS,
            {"wide_fraction": 0.25, "widest_bits": 32},
            (False, "25.0 % of the bytes move by whole vectors; the widest access has 32 bits"),
        ),
    ],
)
def test_the_figure_is_told_in_words(name, traits, answer):
    assert in_force(name, KernelTraits(**traits)) == answer

"""Constants of the estimate lie where physics and the data sheets leave them."""

from dataclasses import fields

from cutegen_nb.analysis.estimate.constants import CONSTANTS, MACHINE_INSTRUCTIONS


def test_fractions_are_shares_and_copies_reach_no_more_than_reads():
    shares = [
        getattr(CONSTANTS, one.name) for one in fields(CONSTANTS) if one.name.endswith(("fraction", "share"))
    ]
    assert len(shares) == 4
    assert all(0 < one < 1 for one in shares)
    assert CONSTANTS.dram_copy_fraction < CONSTANTS.dram_read_fraction


def test_norms_lie_between_the_sum_and_the_largest():
    assert CONSTANTS.overlap > 1
    assert CONSTANTS.queueing > 1


def test_a_scattered_request_costs_more_than_one_of_a_line():
    assert (
        min(CONSTANTS.scattered_l1_clocks, CONSTANTS.scattered_l2_sectors, CONSTANTS.scattered_dram_factor)
        > 1
    )
    assert MACHINE_INSTRUCTIONS["move"] < 1 < MACHINE_INSTRUCTIONS["integer-divide"]

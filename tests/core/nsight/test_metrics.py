"""Metrics of Nsight Compute that a profile keeps, and their units."""

from __future__ import annotations

import pytest

from cutegen_nb.core.nsight.metrics import DRAM_SHARE, STALL, is_kept, unit_of
from cutegen_nb.core.profile import DURATION


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        (DURATION, True),
        (DRAM_SHARE, True),
        (STALL.format("long_scoreboard"), True),
        ("launch__occupancy_limit_registers", True),
        ("sm__inst_executed_pipe_tensor_op_hmma.sum", True),
        ("sm__inst_executed_pipe_tensor_op_hmma.sum.per_second", False),
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum", False),
        ("sm__maximum_warps_avg_per_active_cycle", False),
        ("", False),
    ],
)
def test_of_thousands_of_metrics_those_that_are_read_are_kept(name, kept):
    assert is_kept(name) is kept


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        (DURATION, "ns"),
        (DRAM_SHARE, "%"),
        ("gpc__cycles_elapsed.avg.per_second", "Hz"),
        ("gpc__cycles_elapsed.avg", "cycle"),
        ("dram__bytes_read.sum", "byte"),
        ("dram__bytes_read.sum.per_second", "byte/s"),
        ("launch__shared_mem_per_block_static", "byte"),
        ("lts__t_sectors.sum", "sector"),
        ("smsp__inst_executed.sum", "inst"),
        ("launch__registers_per_thread", "register/thread"),
        ("launch__waves_per_multiprocessor", ""),
    ],
)
def test_the_unit_follows_from_the_name(name, unit):
    assert unit_of(name) == unit

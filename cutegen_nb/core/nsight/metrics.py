"""Nsight Compute metrics that profiles keep, by their names on GH100 (ncu 2025).

Names on other chips differ in places. A metric that a report lacks is left out, never estimated.
"""

from __future__ import annotations

import re

from cutegen_nb.core.profile import DURATION

# Shares of a unit's peak, in per cent of the elapsed time.
DRAM_SHARE = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2_SHARE = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
L1_SHARE = "l1tex__throughput.avg.pct_of_peak_sustained_elapsed"
SHARED_SHARE = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
"""Share of the L1 data stage, which passes 128 bytes a clock: wavefronts of shared memory and of L1."""
ISSUE_SHARE = "sm__inst_issued.avg.pct_of_peak_sustained_elapsed"
COMPUTE_SHARE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY_SHARE = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
PIPE_SHARES = {
    "cuda.f32 pipe": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "integer pipe": "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "cuda.f64 pipe": "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "tensor pipe": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
}
"""Share of the time that each arithmetic pipe was active, in per cent, by name of the pipe."""

# Bytes.
DRAM_READ, DRAM_WRITE = "dram__bytes_read.sum", "dram__bytes_write.sum"
L2_SECTORS = "lts__t_sectors_srcunit_tex.sum"
"""Sectors of 32 bytes moved between the L1 caches and the L2."""
L2_READS, L2_WRITES = "lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"
# Share of the sectors found in the cache, in per cent.
L2_HITS, L1_HITS = "lts__t_sector_hit_rate.pct", "l1tex__t_sector_hit_rate.pct"
# Resident warps, as a share of the most that an SM holds: measured, and permitted by the launch.
ACHIEVED_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
THEORETICAL_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
ELIGIBLE_WARPS = "smsp__warps_eligible.avg.per_cycle_active"
"""Warps ready to issue, on average, a scheduler and cycle."""
ISSUE_ACTIVE = "smsp__issue_active.avg.pct_of_peak_sustained_active"
"""Share of the cycles in which a scheduler issued an instruction, in per cent."""
WARP_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
"""Cycles between two instructions of a warp, on average."""
# Filled with a stall reason such as ``long_scoreboard``: warps stalled for it on average, an issued
# instruction.
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALL_SAMPLES = "smsp__pcsamp_warps_issue_stalled_{}"
"""Samples of warps that waited for a stall reason, which is filled in."""
REGISTERS = "launch__registers_per_thread"
STATIC_SHARED, DYNAMIC_SHARED = "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"
WAVES = "launch__waves_per_multiprocessor"
"""CTAs of the grid ÷ CTAs that the device holds at a time."""
MULTIPROCESSORS = "launch__sm_count"
BUSY_CYCLES, ELAPSED_CYCLES = "sm__cycles_active.avg", "sm__cycles_elapsed.avg"
GPC_CYCLES = "gpc__cycles_elapsed.avg"
"""Elapsed cycles of the GPCs: nearly `ELAPSED_CYCLES`, and part of every metric set of ncu."""
WARP_CYCLES = "smsp__cycles_elapsed.avg"
CLOCK = "gpc__cycles_elapsed.avg.per_second"
LOCAL_LOADS, LOCAL_STORES = (f"l1tex__t_sectors_pipe_lsu_mem_local_op_{way}.sum" for way in ("ld", "st"))
SPILL_REQUESTS = "derived__local_spilling_requests"
THREAD_INSTRUCTIONS = "smsp__thread_inst_executed_per_inst_executed.ratio"
"""Average number of active threads in an executed warp instruction, at most 32."""
# Metrics of one source line: sectors and wavefronts that its accesses need, and the least possible (ideal).
LINE_SECTORS = "memory_l2_theoretical_sectors_global"
LINE_SECTORS_IDEAL = "memory_l2_theoretical_sectors_global_ideal"
LINE_LOCAL = "memory_l2_theoretical_sectors_local"
LINE_WAVEFRONTS = "memory_l1_wavefronts_shared"
LINE_WAVEFRONTS_IDEAL = "memory_l1_wavefronts_shared_ideal"

_SINGLE = frozenset({
    DURATION, DRAM_SHARE, L2_SHARE, L1_SHARE, SHARED_SHARE, ISSUE_SHARE, COMPUTE_SHARE, MEMORY_SHARE,
    *PIPE_SHARES.values(), DRAM_READ, DRAM_WRITE, L2_SECTORS, L2_READS, L2_WRITES, L2_HITS, L1_HITS,
    ACHIEVED_OCCUPANCY, THEORETICAL_OCCUPANCY, ELIGIBLE_WARPS, ISSUE_ACTIVE, WARP_LATENCY, REGISTERS,
    STATIC_SHARED, DYNAMIC_SHARED, WAVES, MULTIPROCESSORS, BUSY_CYCLES, ELAPSED_CYCLES, GPC_CYCLES,
    CLOCK, LOCAL_LOADS,
    LOCAL_STORES, SPILL_REQUESTS, THREAD_INSTRUCTIONS, "sm__cycles_active.max", "sm__cycles_active.min",
    "smsp__pcsamp_interval_cycles", LINE_SECTORS, LINE_SECTORS_IDEAL, LINE_WAVEFRONTS,
    LINE_WAVEFRONTS_IDEAL, "inst_executed",
})  # fmt: skip
_FAMILIES = re.compile(
    r"smsp__average_warps_issue_stalled_\w+_per_issue_active\.ratio|launch__occupancy_limit_\w+"
    r"|smsp__inst_executed_op_\w+\.sum|l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_(ld|st)\.sum"
    r"|sm__inst_executed_pipe_tensor\w*\.sum"
)


def is_kept(name: str) -> bool:
    """Return whether a profile keeps the metric; a report of the full set has thousands."""
    return name in _SINGLE or bool(_FAMILIES.fullmatch(name))


_UNITS = (
    # The first pattern that matches wins: per cent and rates stand before the plain counts they contain.
    (re.compile(r"pct|\.pct$"), "%"),
    (re.compile(r"^gpu__time_duration"), "ns"),
    (re.compile(r"__cycles_elapsed.*per_second"), "Hz"),
    (re.compile(r"bytes\w*\.(sum|avg|min|max)\.per_second$"), "byte/s"),
    (re.compile(r"bytes|shared_mem_per_block|stack_size"), "byte"),
    (re.compile(r"sectors"), "sector"),
    (re.compile(r"cycles"), "cycle"),
    (re.compile(r"^(smsp__|sm__)?(thread_)?inst_(executed|issued)"), "inst"),
    (re.compile(r"registers_per_thread"), "register/thread"),
)


def unit_of(name: str) -> str:
    """Base unit implied by a metric's name, for reports that give none; empty for a plain number."""
    return next((unit for pattern, unit in _UNITS if pattern.search(name)), "")

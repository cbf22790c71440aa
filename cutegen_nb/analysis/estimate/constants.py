"""Constants of the estimate of time that no data sheet states, each with its source.

Those marked "fitted" are chosen so that the estimates of the kernels that `benchmarks/estimate.py` uses for
fitting come nearest to their measured times on an NVIDIA H200 and an H100; the other kernels recorded there
test them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateConstants:
    """Behaviour of memories, pipes and scheduler that all targets share."""

    dram_read_fraction: float = 0.94
    """Share of the stated DRAM bandwidth that reads alone reach: 4.5 of 4.8 TB/s, measured on an H200."""
    dram_copy_fraction: float = 0.89
    """Share of it that as many reads as writes reach: 4.28 of 4.8 TB/s, measured on an H200."""
    peak_fraction: float = 0.78
    """Share of a pipe's stated peak that dense work sustains: 774 of 989 TFLOP/s in fp16 on tensor cores, 52
    of 67 in fp32 on CUDA cores, both measured on an H200; the clock falls under such load."""
    latency_factor: float = 1.31
    """Latency of a load in a running kernel ÷ that of a lone pointer chase. Fitted."""
    scattered_l1_clocks: float = 1.31
    """Clocks of the L1 for each line of a request whose threads all touch different lines; 1 for a line that
    neighbours share. Fitted."""
    scattered_l2_sectors: float = 3.98
    """L2 bandwidth that a request for one sector takes, in sectors. A slice looks up one line a
    clock, however little it delivers. Fitted."""
    partial_l2_sectors: float = 2.0
    """L2 bandwidth that a store of a part of a sector takes, in sectors. Not fitted: measured kernels ask for
    1.3 (neighbouring stores fill the rest at once) to 5 (another CTA does)."""
    scattered_dram_factor: float = 2.39
    """Time of a lone 32-byte sector from DRAM ÷ its share of a streamed line: DRAM delivers at least
    64 bytes, and opens a row for them. Fitted."""
    cta_start_clocks: float = 685.0
    """Clocks from the launch of a CTA to its first load, and from its last store to the next CTA. Fitted."""
    instruction_clocks: float = 4.87
    """Clocks that an instruction adds to the chain of its warp. A dependent one takes 4 to 5, independent
    neighbours overlap. Fitted."""
    barrier_clocks: float = 30.9
    """Clocks that a barrier of a CTA adds to the chain of a warp, beside the wait for the slowest warp.
    Fitted."""
    overlap: float = 3.77
    """Exponent p of the norm that joins the terms of a launch: 1 adds them, ∞ takes the largest. Fitted."""
    queueing: float = 2.5
    """The same exponent for memory and the chain of a CTA. Loads queue: where a chain alone takes as long as
    the transfers, rows read by scalar loads took 1.3 to 1.5 times either on an H200 and an H100."""
    shuffle_clocks: float = 26.8
    """Clocks that a shuffle adds to the chain of its warp beyond those of any instruction. Fitted."""
    l2_share: float = 0.5
    """Share of the L2 that keeps data until it is read again: each half keeps a copy of what the other half's
    multiprocessors read (Chips and Cheese 2023, on the H100)."""
    launch_s: float = 3.0e-6
    """Seconds that a launch adds: its start, and the drain of the one before it on the same stream. A ReLU
    over 64 × 1024 elements takes 3.84 µs, measured on an H200, of which the chain of a warp is 0.8 µs."""


CONSTANTS = EstimateConstants()
"""Constants in use."""

MACHINE_INSTRUCTIONS = {
    "move": 0.2,
    "parameter": 0.2,
    "control": 1.0,
    "integer-divide": 20.0,
    "special": 2.0,
}
"""Machine instructions for one PTX instruction, by pipe; 1 for pipes that are not listed.

The assembler renames registers instead of moving them, and reads parameters as operands. Integer division is
a subroutine of about 20 instructions. Functions such as ``ex2`` and ``rcp`` come with a scaling instruction,
and a rounded division or root with several.
"""

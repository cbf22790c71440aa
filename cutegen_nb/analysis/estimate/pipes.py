"""Work of a launch by pipe: instructions that are issued, clocks of arithmetic pipes, tensor cores."""

from __future__ import annotations

from cutegen_nb.analysis.estimate.constants import MACHINE_INSTRUCTIONS, EstimateConstants
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.roofline import COUNTED_AS
from cutegen_nb.core.profile import Counters

ISSUED_PER_CLOCK = 4
"""Warp instructions that a multiprocessor issues a clock: one for each of its four partitions."""
MEMORY_PIPES = frozenset({"load", "store", "atomic", "async-copy"})
"""Pipes of memory instructions, which are all issued to one unit, that of L1 and shared memory."""
_MOST_OF_ONE_WARP = 2 * 16 * 8 * 32
"""Most floating-point operations of an ``mma.sync``, m16n8k32 in fp8."""


def machine_instructions(counters: Counters) -> float:
    """Return the estimated machine instructions of warps, from the PTX instructions by pipe."""
    if not counters.instructions:
        return float(counters.warp_instructions)
    return sum(
        amount * MACHINE_INSTRUCTIONS.get(pipe_of(name), 1.0)
        for name, amount in counters.instructions.items()
    )


def pipe_of(name: str) -> str:
    """Return the pipe of a kind of instruction: ``load`` of ``load.global``."""
    # Parameters are operands from the constant bank, not loads.
    return "parameter" if name in {"load.param", "load.const"} else name.partition(".")[0]


def pipe_clocks(counters: Counters, target: EstimateTarget) -> dict[str, float]:
    """Return the clocks of one multiprocessor for all instructions of each arithmetic pipe."""
    clocks: dict[str, float] = {}
    for name, amount in counters.instructions.items():
        pipe = pipe_of(name)
        if pipe not in MEMORY_PIPES:
            clocks[pipe] = clocks.get(pipe, 0.0) + amount * target.pipe_clocks(pipe)
    return clocks


def tensor_s(counters: Counters, target: EstimateTarget, constants: EstimateConstants) -> float:
    """Return the seconds that all products take on all tensor cores together."""
    peaks = target.sheet.peak_flops
    total = 0.0
    for name, amount in counters.flops.items():
        peak = peaks.get(COUNTED_AS.get(name, name), 0.0)
        total += amount / peak if name.startswith("tensor.") and peak else 0.0
    return total / _tensor_fraction(counters, target, constants)


def _tensor_fraction(counters: Counters, target: EstimateTarget, constants: EstimateConstants) -> float:
    """Return the share of the tensor cores' peak that the kernel's kind of product reaches."""
    if _by_warp_groups(counters):
        return constants.peak_fraction
    return min(constants.peak_fraction, target.mma_sync_fraction)


def _by_warp_groups(counters: Counters) -> bool:
    """Return whether products are mostly ``wgmma``, which does more work an instruction than ``mma.sync``."""
    issued = sum(amount for name, amount in counters.instructions.items() if name.startswith("tensor."))
    done = sum(amount for name, amount in counters.flops.items() if name.startswith("tensor."))
    return done > _MOST_OF_ONE_WARP * issued

"""Terms of a launch's time: bandwidths, pipes, latency of a warp, start of the launch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.chain import chain_s
from cutegen_nb.analysis.estimate.constants import EstimateConstants
from cutegen_nb.analysis.estimate.memory_traffic import MemoryTraffic, memory_traffic
from cutegen_nb.analysis.estimate.pipes import (
    ISSUED_PER_CLOCK,
    MEMORY_PIPES,
    machine_instructions,
    pipe_clocks,
    pipe_of,
    tensor_s,
)
from cutegen_nb.analysis.estimate.residency import Residency, residency
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.devices import SMEM_BYTES_PER_CLOCK
from cutegen_nb.core.estimate import LaunchSample, Term
from cutegen_nb.core.profile import SECTOR_BYTES, Counters

DRAM, L2, L1 = "DRAM", "L2", "L1 and shared memory"
ISSUE, TENSOR, LATENCY, LAUNCH = "instruction issue", "tensor pipe", "latency of loads", "launch"
"""Names of the terms; an arithmetic pipe is called ``fp32 pipe`` and so on."""
_FLOAT_PIPES = frozenset({"fp16", "fp32", "fp64"})
"""Pipes of sums and products of floats."""
_L1_LINE_BYTES = 128
"""Bytes that the L1 delivers a clock, which is a line."""
_SM_PORT_BYTES = 64
"""Bytes a clock that one multiprocessor receives from the L2 (A100 white paper)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTime:
    """Estimated time of one launch and the terms that it is made of."""

    terms: tuple[Term, ...]
    """Least time of each thing alone, in no order."""
    seconds: float
    """Time of all of them together."""


def launch_time(
    sample: LaunchSample, target: EstimateTarget, constants: EstimateConstants, *, is_first: bool
) -> LaunchTime:
    """Estimate one launch: the terms overlap, so norms of them are taken; the start of the launch adds."""
    placed = residency(sample.profile, target)
    moved = memory_traffic(sample, placed, target, constants, is_first=is_first)
    dram, l2 = _dram_s(moved, target, constants), _l2_s(moved, placed, target, constants)
    chain = chain_s(sample, moved, placed, target, constants)
    work = (
        Term(name=L1, seconds=_l1_s(sample, moved, placed, target, constants)),
        *_pipes(sample.profile.counters, placed, target, constants),
    )
    # One stream passes through DRAM and L2. Loads queue for it: the busier it is, the longer a warp waits.
    queued = _norm((max(dram, l2), chain), constants.queueing)
    together = _norm((queued, *(one.seconds for one in work)), constants.overlap)
    launch = Term(name=LAUNCH, seconds=constants.launch_s)
    memory = Term(name=DRAM, seconds=dram), Term(name=L2, seconds=l2), Term(name=LATENCY, seconds=chain)
    terms = (*memory, *work, launch)
    return LaunchTime(terms=terms, seconds=together + launch.seconds)


def _norm(seconds: Iterable[float], p: float) -> float:
    """Return the p-norm of times: their sum for p = 1, nearly the largest of them for a large p."""
    return float(sum(one**p for one in seconds) ** (1 / p))


def _dram_s(moved: MemoryTraffic, target: EstimateTarget, constants: EstimateConstants) -> float:
    total = moved.dram + moved.dram_stores
    # The bus turns round between reads and writes: slowest where both are equally many.
    mixed = min(2 * moved.dram_stores / total, 1.0) if total else 0.0
    fraction = constants.dram_read_fraction - mixed * (
        constants.dram_read_fraction - constants.dram_copy_fraction
    )
    lone = moved.dram_again * moved.load_scatter * (constants.scattered_dram_factor - 1)
    return (total + lone) * SECTOR_BYTES / (target.sheet.bandwidth_bytes_per_s * fraction)


def _l2_s(
    moved: MemoryTraffic, placed: Residency, target: EstimateTarget, constants: EstimateConstants
) -> float:
    sectors = moved.l2 + moved.dram + moved.stores
    scattered = (moved.l2 + moved.dram) * moved.load_scatter
    more = scattered * (constants.scattered_l2_sectors - 1)
    more += moved.partial_stores * (constants.partial_l2_sectors - 1)
    taken = sectors + more
    whole = taken * SECTOR_BYTES / target.l2_bandwidth_bytes_per_s
    # Few multiprocessors cannot draw the L2's whole bandwidth.
    port = sectors * SECTOR_BYTES * _slowest(placed, target) / _SM_PORT_BYTES
    return max(whole, port)


def _l1_s(
    sample: LaunchSample,
    moved: MemoryTraffic,
    placed: Residency,
    target: EstimateTarget,
    constants: EstimateConstants,
) -> float:
    counters = sample.profile.counters
    # A request takes a clock for each line that it touches: L1 and shared memory share one data path.
    # Four sectors of a line take a clock together, a line of a single thread takes more than one by itself.
    sectors = moved.loads + moved.stores
    scattered = moved.loads * moved.load_scatter + moved.stores * moved.store_scatter
    lines = (sectors - scattered) * SECTOR_BYTES / _L1_LINE_BYTES + scattered * constants.scattered_l1_clocks
    wavefronts = counters.smem_wavefronts * (SMEM_BYTES_PER_CLOCK / _L1_LINE_BYTES)
    issued = sum(
        amount * target.pipe_clocks(pipe_of(name))
        for name, amount in counters.instructions.items()
        if pipe_of(name) in MEMORY_PIPES
    )
    clocks = max(lines + wavefronts, issued)
    return clocks * _slowest(placed, target)


def _slowest(placed: Residency, target: EstimateTarget) -> float:
    """Return the seconds of the fullest multiprocessor for one clock of the grid's work."""
    return placed.imbalance / (target.sms * target.clock_hz)


def _pipes(
    counters: Counters, placed: Residency, target: EstimateTarget, constants: EstimateConstants
) -> list[Term]:
    slowest = _slowest(placed, target)
    terms = [Term(name=ISSUE, seconds=machine_instructions(counters) / ISSUED_PER_CLOCK * slowest)]
    clocks = pipe_clocks(counters, target)
    busiest = max(clocks, key=lambda one: clocks[one], default="")
    if clocks.get(busiest):
        # Multipliers of floats draw the power under which the clock falls; integer units do not.
        fraction = constants.peak_fraction if busiest in _FLOAT_PIPES else 1.0
        seconds = clocks[busiest] * slowest / fraction
        terms.append(Term(name=f"{busiest} pipe", seconds=seconds))
    tensor = tensor_s(counters, target, constants)
    if tensor:
        terms.append(Term(name=TENSOR, seconds=tensor * placed.imbalance))
    return terms

"""Terms of a launch's time: bandwidths, pipes, latency of a warp, start of the launch."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.estimate.constants import MACHINE_INSTRUCTIONS, EstimateConstants
from cutegen_nb.analysis.estimate.memory_traffic import MemoryTraffic, memory_traffic
from cutegen_nb.analysis.estimate.residency import Residency, residency
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.hardware.devices import SMEM_BYTES_PER_CLOCK
from cutegen_nb.analysis.hardware.roofline import COUNTED_AS
from cutegen_nb.core.estimate import LaunchSample, Term
from cutegen_nb.core.profile import SECTOR_BYTES, Counters

DRAM, L2, L1 = "DRAM", "L2", "L1 and shared memory"
ISSUE, TENSOR, LATENCY, LAUNCH = "instruction issue", "tensor pipe", "latency of loads", "launch"
"""Names of the terms; an arithmetic pipe is called ``fp32 pipe`` and so on."""
_ISSUED_PER_CLOCK = 4
"""Warp instructions that a multiprocessor issues a clock: one for each of its four partitions."""
_MEMORY_PIPES = frozenset({"load", "store", "atomic", "async-copy"})
"""Pipes of memory instructions, which are all issued to one unit, that of L1 and shared memory."""
_PLAIN_REGISTERS = 40
"""Registers of a thread that works on one value at a time."""
_L1_LINE_BYTES = 128
"""Bytes that the L1 delivers a clock, which is a line."""
_MOST_OF_ONE_WARP = 2 * 16 * 8 * 32
"""Most floating-point operations of an ``mma.sync``, m16n8k32 in fp8."""
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
    """Estimate one launch: the terms overlap, so their p-norm is taken; the start of the launch adds."""
    placed = residency(sample.profile, target)
    moved = memory_traffic(sample, placed, target, constants, is_first=is_first)
    terms = (
        Term(name=DRAM, seconds=_dram_s(moved, target, constants)),
        Term(name=L2, seconds=_l2_s(moved, placed, target, constants)),
        Term(name=L1, seconds=_l1_s(sample, moved, placed, target, constants)),
        *_pipes(sample.profile.counters, placed, target, constants),
        Term(name=LATENCY, seconds=_latency_s(sample, moved, placed, target, constants)),
    )
    p = constants.overlap
    together = sum(one.seconds**p for one in terms) ** (1 / p)
    launch = Term(name=LAUNCH, seconds=constants.launch_s)
    return LaunchTime(terms=(*terms, launch), seconds=together + launch.seconds)


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
    scattered = (moved.l2 + moved.dram) * moved.load_scatter + moved.stores * moved.store_scatter
    taken = sectors + scattered * (constants.scattered_l2_sectors - 1)
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
        amount * target.pipe_clocks(_pipe(name))
        for name, amount in counters.instructions.items()
        if _pipe(name) in _MEMORY_PIPES
    )
    clocks = max(lines + wavefronts, issued)
    return clocks * _slowest(placed, target)


def _slowest(placed: Residency, target: EstimateTarget) -> float:
    """Return the seconds of the fullest multiprocessor for one clock of the grid's work."""
    return placed.imbalance / (target.sms * target.clock_hz)


def machine_instructions(counters: Counters) -> float:
    """Return the estimated machine instructions of warps, from the PTX instructions by pipe."""
    if not counters.instructions:
        return float(counters.warp_instructions)
    return sum(
        amount * MACHINE_INSTRUCTIONS.get(_pipe(name), 1.0) for name, amount in counters.instructions.items()
    )


def _pipe(name: str) -> str:
    """Return the pipe of a kind of instruction: ``load`` of ``load.global``."""
    # Parameters are operands from the constant bank, not loads.
    return "parameter" if name in {"load.param", "load.const"} else name.partition(".")[0]


def _pipes(
    counters: Counters, placed: Residency, target: EstimateTarget, constants: EstimateConstants
) -> list[Term]:
    slowest = _slowest(placed, target)
    terms = [Term(name=ISSUE, seconds=machine_instructions(counters) / _ISSUED_PER_CLOCK * slowest)]
    clocks: dict[str, float] = {}
    for name, amount in counters.instructions.items():
        pipe = _pipe(name)
        if pipe not in _MEMORY_PIPES:
            clocks[pipe] = clocks.get(pipe, 0.0) + amount * target.pipe_clocks(pipe)
    busiest = max(clocks, key=lambda one: clocks[one], default="")
    if clocks.get(busiest):
        seconds = clocks[busiest] * slowest / constants.peak_fraction
        terms.append(Term(name=f"{busiest} pipe", seconds=seconds))
    tensor = sum(_tensor_s(name, amount, target) for name, amount in counters.flops.items())
    if tensor:
        fraction = constants.peak_fraction
        if not _by_warp_groups(counters):
            fraction = min(fraction, target.mma_sync_fraction)
        terms.append(Term(name=TENSOR, seconds=tensor * placed.imbalance / fraction))
    return terms


def _by_warp_groups(counters: Counters) -> bool:
    """Return whether products are mostly ``wgmma``, which does more work an instruction than ``mma.sync``."""
    issued = sum(amount for name, amount in counters.instructions.items() if name.startswith("tensor."))
    done = sum(amount for name, amount in counters.flops.items() if name.startswith("tensor."))
    return done > _MOST_OF_ONE_WARP * issued


def _tensor_s(name: str, flops: int, target: EstimateTarget) -> float:
    peak = target.sheet.peak_flops.get(COUNTED_AS.get(name, name), 0.0)
    return flops / peak if name.startswith("tensor.") and peak else 0.0


def _latency_s(
    sample: LaunchSample,
    moved: MemoryTraffic,
    placed: Residency,
    target: EstimateTarget,
    constants: EstimateConstants,
) -> float:
    """Return the time of a warp's chain × the CTAs that follow one another in its place."""
    counters = sample.profile.counters
    warps = placed.ctas * placed.warps_per_cta
    mean = counters.warp_instructions / warps
    longest = max(sample.longest_warp_instructions, mean)
    # The longest warp is assumed to wait as much more often as it has more instructions.
    rounds = sample.load_rounds / warps * (longest / mean if mean else 1.0)
    each = _instruction_clocks(sample, constants)
    waited = _round_clocks(sample, moved, target) * constants.latency_factor
    # Loads issued ahead of their use are under way while the instructions in between are issued.
    exposed = max(waited - _instructions_ahead(counters) * each, 0.0)
    clocks = (
        constants.cta_start_clocks
        + rounds * exposed
        + longest * each
        + counters.barriers / warps * constants.barrier_clocks
    )
    return clocks * placed.waves / target.clock_hz


def _instruction_clocks(sample: LaunchSample, constants: EstimateConstants) -> float:
    """Return the clocks that one PTX instruction adds to the chain of its warp."""
    counters = sample.profile.counters
    machine = machine_instructions(counters) / max(counters.warp_instructions, 1)
    resources = sample.profile.resources
    # Values that live at once are results that do not wait for one another, as in a register-blocked product.
    independent = max(resources.registers / _PLAIN_REGISTERS, 1.0) if resources else 1.0
    return machine * max(constants.instruction_clocks / independent, 1.0)


def _instructions_ahead(counters: Counters) -> float:
    """Return the mean number of instructions between a load and its first use."""
    return counters.gmem_wait_instructions / counters.gmem_waits if counters.gmem_waits else 0.0


def _round_clocks(sample: LaunchSample, moved: MemoryTraffic, target: EstimateTarget) -> float:
    """Return the mean clocks that a warp waits for a round of loads."""
    if not moved.loads or not sample.load_rounds:
        return 0.0
    # A round waits for the slowest of its requests, so more requests make a slow one likelier.
    each = max(_load_requests(sample.profile.counters) / sample.load_rounds, 1.0)
    in_dram = min(moved.dram / moved.loads * each, 1.0)
    in_l2 = min(moved.l2 / moved.loads * each, 1 - in_dram)
    latency = target.latency
    return in_dram * latency.dram + in_l2 * latency.l2 + (1 - in_dram - in_l2) * latency.l1


def _load_requests(counters: Counters) -> int:
    """Return the requests of loads and asynchronous copies; all requests where kinds were not counted."""
    kinds = [
        counters.gmem_accesses[kind] for kind in ("load", "async-copy") if kind in counters.gmem_accesses
    ]
    return sum(one.requests for one in kinds) if kinds else counters.gmem_requests

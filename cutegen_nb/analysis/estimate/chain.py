"""Chain of a CTA: what its warps do and wait for one after another, and the CTAs that follow in its place."""

from __future__ import annotations

import math

from cutegen_nb.analysis.estimate.constants import EstimateConstants
from cutegen_nb.analysis.estimate.memory_traffic import MemoryTraffic
from cutegen_nb.analysis.estimate.pipes import (
    ISSUED_PER_CLOCK,
    machine_instructions,
    pipe_clocks,
    tensor_s,
)
from cutegen_nb.analysis.estimate.residency import Residency
from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.core.estimate import LaunchSample
from cutegen_nb.core.profile import Access, Counters

_PLAIN_REGISTERS = 40
"""Registers of a thread that works on one value at a time."""
_DIFFERENT = 0.1
"""Standard deviation of a CTA's instructions, as a share of them, from which CTAs count as different."""


def chain_s(
    sample: LaunchSample,
    moved: MemoryTraffic,
    placed: Residency,
    target: EstimateTarget,
    constants: EstimateConstants,
) -> float:
    """Return the time of a CTA's chain × the CTAs that follow one another in its place."""
    counters = sample.profile.counters
    warps = placed.ctas * placed.warps_per_cta
    mean = counters.warp_instructions / warps
    longest = max(sample.longest_warp_instructions, mean)
    # Where CTAs differ, most of those that follow one another are of the usual length.
    usual = mean if _ctas_differ(sample) else longest
    issued = _instruction_clocks(sample, constants) + _shuffle_share(counters) * constants.shuffle_clocks
    # A long warp is assumed to wait as much more often as it has more instructions.
    waited = sample.load_rounds * _exposed_clocks(sample, moved, target, constants)
    waited_each = waited / max(counters.warp_instructions, 1)
    clocks = (
        constants.cta_start_clocks
        + max(usual * issued, _pipe_clocks_of_cta(counters, placed, target))
        + usual * waited_each
        + counters.barriers / warps * constants.barrier_clocks
    )
    # One long CTA may be the last to end.
    last = (longest - usual) * (issued + waited_each)
    each = clocks / target.clock_hz + _products_s(counters, placed, target, constants)
    return each * placed.waves + last / target.clock_hz


def _pipe_clocks_of_cta(counters: Counters, placed: Residency, target: EstimateTarget) -> float:
    """Return the clocks in which a CTA with a multiprocessor for itself gets its instructions through."""
    busiest = max(pipe_clocks(counters, target).values(), default=0.0)
    return max(busiest, machine_instructions(counters) / ISSUED_PER_CLOCK) / placed.ctas


def _products_s(
    counters: Counters, placed: Residency, target: EstimateTarget, constants: EstimateConstants
) -> float:
    """Return the seconds that the products of one CTA take on one multiprocessor's tensor cores.

    Its warps start them together and wait for them before they use the sums.
    """
    return tensor_s(counters, target, constants) * target.sms / placed.ctas


def _exposed_clocks(
    sample: LaunchSample, moved: MemoryTraffic, target: EstimateTarget, constants: EstimateConstants
) -> float:
    """Return the clocks that a warp waits for a round of loads, less those of what it issues meanwhile."""
    waited = _round_clocks(sample, moved, target) * constants.latency_factor
    ahead = _instructions_ahead(sample.profile.counters) * _instruction_clocks(sample, constants)
    return max(waited - ahead, 0.0)


def _shuffle_share(counters: Counters) -> float:
    """Return the share of instructions that exchange values between the threads of a warp."""
    return counters.instructions.get("warp", 0) / max(counters.warp_instructions, 1)


def _ctas_differ(sample: LaunchSample) -> bool:
    """Return whether CTAs of one launch have different numbers of instructions."""
    # The standard deviation of one CTA follows from the standard error of the mean of those that ran.
    return sample.error_fraction * math.sqrt(sample.ctas) > _DIFFERENT


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
    """Return the mean clocks that a warp waits for a round of loads or of asynchronous copies."""
    if not moved.loads or not sample.load_rounds:
        return 0.0
    loads, copies = _accesses(sample.profile.counters)
    requests = loads.requests + copies.requests
    # A round waits for the slowest of its requests, so more requests make a slow one likelier.
    each = max(requests / sample.load_rounds, 1.0)
    # Copies bring fresh tiles; what is found in the L1 are first of all the values that loads share.
    of_loads = min(moved.l1, loads.passes)
    in_l1 = of_loads, max(min(moved.l1 - of_loads, copies.passes), 0.0)
    return sum(
        kind.requests * _clocks_outside_l1(1 - found / kind.passes, each, moved, target)
        for kind, found in zip((loads, copies), in_l1, strict=True)
        if kind.passes
    ) / max(requests, 1)


def _clocks_outside_l1(share: float, each: float, moved: MemoryTraffic, target: EstimateTarget) -> float:
    """Return the mean clocks of a round, of whose sectors this share is not in the L1."""
    outside = moved.l2 + moved.dram
    in_dram = min(share * moved.dram / outside * each, 1.0) if outside else 0.0
    in_l2 = min(share * moved.l2 / outside * each, 1 - in_dram) if outside else 0.0
    latency = target.latency
    return in_dram * latency.dram + in_l2 * latency.l2 + (1 - in_dram - in_l2) * latency.l1


def _accesses(counters: Counters) -> tuple[Access, Access]:
    """Return loads and asynchronous copies; all requests are loads where kinds were not counted."""
    none = Access(requests=0, bytes=0, passes=0, ideal=0)
    kinds = counters.gmem_accesses
    if not kinds:
        sectors = counters.gmem_load_sectors
        none_known = Access(
            requests=counters.gmem_requests, bytes=counters.gmem_load_bytes, passes=sectors, ideal=sectors
        )
        return none_known, none
    return kinds.get("load", none), kinds.get("async-copy", none)

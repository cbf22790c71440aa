"""Estimate of the time of one call of a candidate on a named GPU, from sampled counts at full size.

Each launch has terms: bytes through DRAM, L2 and L1, instructions through the pipes, the waits of a warp.
They overlap, and the slowest decides. The times of launches add up. The constants are those of `constants`.
"""

from __future__ import annotations

from cutegen_nb.analysis.estimate.constants import CONSTANTS, EstimateConstants
from cutegen_nb.analysis.estimate.interval import deviation, interval
from cutegen_nb.analysis.estimate.launch_terms import LaunchTime, launch_time
from cutegen_nb.analysis.estimate.targets import EstimateTarget, target_of
from cutegen_nb.analysis.hardware.occupancy import occupancy
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.estimate import Estimate, FullSizeSample, Term
from cutegen_nb.core.evaluation import Evaluation


def estimate(
    sample: FullSizeSample, target: EstimateTarget, constants: EstimateConstants = CONSTANTS
) -> Estimate:
    """Estimate the time of one call. Raises UsageError where the sample has no launch, with its reason."""
    if not sample.launches:
        reason = sample.missing or "no kernel was launched"
        raise UsageError(f"no time can be estimated: {reason}")
    times = [
        launch_time(one, target, constants, is_first=index == 0) for index, one in enumerate(sample.launches)
    ]
    terms = _together(times)
    seconds = sum(one.seconds for one in times)
    low, high = interval(seconds, deviation(terms, sample))
    return Estimate(
        target=target.name, seconds=seconds, seconds_low=low, seconds_high=high, bound=terms[0].name,
        terms=terms, note=_note(sample, target),
    )  # fmt: skip


def estimate_of(
    evaluation: Evaluation | None, device: Device, target: EstimateTarget | None = None
) -> Estimate | None:
    """Estimate the time of an evaluated kernel for `target`, by default `target_of` the device.

    None on a GPU, which has a clock, and without a sample.
    """
    sample = evaluation.full_size if evaluation else None
    if device.kind is DeviceKind.GPU or sample is None or not sample.launches:
        return None
    return estimate(sample, target or target_of(device))


def _together(times: list[LaunchTime]) -> tuple[Term, ...]:
    """Return the terms of all launches by name, the largest first."""
    total: dict[str, float] = {}
    for launch in times:
        for term in launch.terms:
            total[term.name] = total.get(term.name, 0.0) + term.seconds
    ordered = sorted(total.items(), key=lambda item: -item[1])
    return tuple(Term(name=name, seconds=seconds) for name, seconds in ordered)


def _note(sample: FullSizeSample, target: EstimateTarget) -> str:
    """Return the restriction of an estimate: a CTA that does not fit, or registers that are not known."""
    for launch in sample.launches:
        profile = launch.profile
        threads = profile.block[0] * profile.block[1] * profile.block[2]
        smem_bytes = profile.dynamic_smem_bytes + profile.static_smem_bytes
        registers = profile.resources.registers if profile.resources else 0
        fits = occupancy(
            target.sheet.architecture, threads=threads, registers=registers, smem_bytes=smem_bytes
        ).active_ctas
        if not fits:
            return f"A CTA of {profile.kernel} does not fit {target.name}: such a launch is refused there."
    if any(one.profile.resources is None for one in sample.launches):
        return "The registers of a thread are not known, so occupancy may be lower than assumed."
    return ""

"""Text description of the roofline chart, for accessibility and for the terminal."""

from __future__ import annotations

from cutegen_nb.analysis.figures import quantity
from cutegen_nb.analysis.figures.quantity import scaled, share, times
from cutegen_nb.analysis.hardware.hierarchy import DRAM
from cutegen_nb.analysis.hardware.roofline import Roofline, RooflinePoint, place
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.analysis.history.summary import (
    floor,
    hardware,
    parent_round,
    revision,
    roof_device,
    simulated,
)
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Bound


def describe(session: Session) -> tuple[str, ...]:
    """Describe every roof with its source, the problem, its zone, and each kernel with its parent."""
    device = roof_device(session)
    roof = place(session.facts, device)
    if not roof.bandwidth_bytes_per_s:
        return (f"There is no roofline for {hardware(session)}: {device.source}.",)
    said = [f"{hardware(session)}: bandwidth {scaled(roof.bandwidth_bytes_per_s, 'B/s')} ({device.source})."]
    said += [
        f"{one.name}: {scaled(one.bandwidth_bytes_per_s, 'B/s')} ({one.source})."
        for one in roof.levels
        if one.name != DRAM
    ]
    for item in roof.ceilings:
        note = f", {item.note}" if item.note else ""
        peak = scaled(item.flops_per_s, "FLOP/s")
        said.append(f"{item.pipe}: {peak}, ridge point at {quantity.figure(item.ridge)} FLOP/B{note}.")
    said.append(_problem(session, roof))
    found = zone(session.facts, device, fewest_flops(session))
    if found and session.facts.full.flops:
        said.append(found.text())
    said += [words for item in session.rounds if (words := _round(session, item))]
    return tuple(said)


def caption(session: Session) -> str:
    """Explain the signs of the chart."""
    said = "An arrow leads from each kernel to the one made from it; hollow ones (○) were not approved."
    if simulated(session):
        said = (
            "Simulated counts have no rate: kernels stand in the band below the roofs, by FLOP a byte alone, "
            f"once for each memory. {said}"
        )
    notes = {item.note for item in place(session.facts, roof_device(session)).ceilings if item.note}
    return " ".join([said, *(f"* {note}." for note in sorted(notes))])


def _problem(session: Session, roof: Roofline) -> str:
    if not session.facts.full.flops:
        return f"The problem does no floating-point arithmetic. Floor: {floor(session)}."
    side = "memory" if roof.bound is Bound.MEMORY else "compute"
    intensity = quantity.figure(roof.problem.intensity)
    return (
        f"The problem at full size has at most {intensity} FLOP/B and is bound by {side}. "
        f"Floor: {floor(session)}."
    )


def _round(session: Session, item: Round) -> str:
    evaluation = item.evaluation
    if evaluation is None:
        return ""
    roof = place(session.facts, roof_device(session), evaluation)
    if roof.kernel is None or not (evaluation.passed or roof.above):
        return ""
    parent = parent_round(session, item)
    origin = f" (from {revision(parent)})" if parent else ""
    return f"{revision(item)}{origin}: {_kernel(roof, roof.kernel)}"


def _kernel(roof: Roofline, point: RooflinePoint) -> str:
    if point.achieved_flops_per_s is None:
        return _counted(roof, point)
    reached = scaled(point.achieved_flops_per_s, "FLOP/s")
    light = share(roof.sol_fraction) if roof.sol_fraction is not None else "an unknown share"
    said = f"{reached} measured, {light} of the speed of light."
    if roof.above:
        return f"{said} This is above the roof, so it blocks: {roof.above}"
    if roof.fewer_operations:
        return (
            f"{said} The FLOP/s are those of the reference's operations. An identity saves this kernel many, "
            "so that memory alone sets its floor."
        )
    if roof.sol_fraction is not None and roof.sol_fraction > 1:
        return (
            f"{said} A little above the roof drawn: tensors that stay in the L2, or reads faster than the "
            "copy that the bandwidth was measured with, come to this; it blocks nothing."
        )
    return said


def _counted(roof: Roofline, point: RooflinePoint) -> str:
    moved = (
        f"{times(roof.moved_over_least)} the least bytes" if roof.moved_over_least else "bytes not counted"
    )
    by_level = "; ".join(
        f"{one.level} {quantity.figure(value)}"
        for one in roof.traffic
        if (value := roof.intensity_at(one.level))
    )
    levels = f" By memory: {by_level} FLOP/B." if by_level else ""
    source = " (simulated counts)" if point.simulated else ""
    return f"{quantity.figure(point.intensity)} FLOP/B, {moved}{source}.{levels}"

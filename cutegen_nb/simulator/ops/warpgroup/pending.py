"""``wgmma`` groups: products read shared memory until a wait covers them.

Results are there at once, so that a register read too early is not noticed; a product that no wait covers
before its CTA ends is. Reads of shared memory are reported to the race checker at the first wait of the warp
group that covers the product: a stage released before shows as a race. The product is complete for all four
warps then (PTX ISA, ``wgmma.wait_group``), so the others are ordered after the one that waited first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.findings import ASYNC_HAZARD
from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ops.warpgroup.descriptors import UNIT
from cutegen_nb.simulator.ptx.faults import place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

GROUP_WARPS = 4
"""Warps of a warp group."""


@dataclass(slots=True)
class PendingProducts:
    """Reads of shared memory by one ``wgmma`` instruction, a row for each product."""

    instruction: Instruction
    """Instruction, for messages."""
    places: Array
    """Byte address of each unit in its CTA's shared memory, (products, units)."""
    warps: Array
    """Numbers in the batch of the warps of each product, (products, warps)."""
    groups: Array
    """Number of the group that each product belongs to."""


def begin(lanes: Batch, instruction: Instruction, places: Array, warps: Array) -> None:
    """Note the units of 16 bytes that products of some warps read: (products, units), (products, warps)."""
    if lanes.watch is not None:
        groups = _groups(lanes)[warps[:, 0]]
        lanes.products.append(PendingProducts(instruction, places, warps, groups))


def commit(lanes: Batch, mask: Mask | None) -> None:
    """Close the current group of the active warps (``commit_group``)."""
    _groups(lanes)[_active(lanes, mask).ravel()] += 1


def wait(lanes: Batch, mask: Mask | None, left: int) -> None:
    """Complete the products of the active warps, except those of the ``left`` newest groups."""
    if lanes.watch is None:
        return
    groups, active = _groups(lanes), _active(lanes, mask)
    _each_group(lanes, active, lanes.watch.acquired)
    kept, waited = [], np.zeros(lanes.warps, np.bool_)
    for one in lanes.products:
        here = active.ravel()[one.warps]
        first = one.warps[np.arange(len(here)), here.argmax(axis=1)]
        due = here.any(axis=1) & (one.groups < groups[first] - left)
        if due.any():
            _report(lanes, one.instruction, one.places[due], first[due])
            waited[first[due]] = True
        if not due.all():
            one.places, one.warps, one.groups = one.places[~due], one.warps[~due], one.groups[~due]
            kept.append(one)
    lanes.products = kept
    if waited.any():
        _each_group(lanes, waited.reshape(active.shape), lanes.watch.released)


def check_waited(lanes: Batch) -> None:
    """Note a finding where a CTA ended with products that no wait had covered."""
    for one in lanes.products:
        cta, warp = divmod(int(one.warps[0, 0]), lanes.warps_per_cta)
        thread, block = lanes.place_of(cta * lanes.threads + warp * WARP)
        lanes.findings.add(
            ASYNC_HAZARD,
            f"CTA {block} ends, and thread {thread} has not waited for its wgmma ({place(one.instruction)}): "
            "what it adds up may be read too early, and its tiles overwritten. Commit it "
            "(warpgroup.commit_group) and wait (warpgroup.wait_group(0)) before the sums are read.",
            one.instruction, thread=thread, cta=block,
        )  # fmt: skip


def _groups(lanes: Batch) -> Array:
    if lanes.product_groups is None:
        lanes.product_groups = np.zeros(lanes.warps, np.int64)
    return lanes.product_groups


def _active(lanes: Batch, mask: Mask | None) -> Array:
    """Active warps, bool of shape (ctas, warps of a CTA)."""
    return np.broadcast_to(lanes.warps_of(mask), (lanes.ctas, lanes.warps_per_cta))


def _each_group(lanes: Batch, who: Array, tell: Callable[[Array, Hashable], None]) -> None:
    """Tell the race checker of a release or an acquire by some warps, for each warp group of a CTA."""
    number = np.arange(lanes.warps_per_cta) // GROUP_WARPS
    for group in range(int(number[-1]) + 1):
        some = who & (number == group)
        if some.any():
            tell(some[:1] if _same(some) else some, ("wgmma", group))


def _report(lanes: Batch, instruction: Instruction, places: Array, warps: Array) -> None:
    """Tell the race checker of reads: (products, units), each row by the first thread of a warp."""
    assert lanes.watch is not None
    ctas, warp = np.divmod(warps, lanes.warps_per_cta)
    threads = np.repeat(ctas * lanes.threads + warp * WARP, places.shape[1])
    request: SeparableAddresses | ListedAddresses = ListedAddresses(places.ravel(), threads)
    if len(places) % lanes.ctas == 0:
        # One row stands for all CTAs where they read the same.
        shape = (lanes.ctas, -1)
        rows = np.hstack((places, warp[:, None])).reshape(shape)
        if (ctas.reshape(shape) == np.arange(lanes.ctas)[:, None]).all() and _same(rows):
            some = slice(len(places) // lanes.ctas)
            readers = np.repeat(warp[some] * WARP, places.shape[1])
            request = SeparableAddresses(np.zeros(1, np.int64), places[some].ravel(), readers)
    lanes.watch.read(lanes, None, SharedAccess(instruction, request, UNIT, 1, "reads"))


def _same(rows: Array) -> bool:
    return bool((rows == rows[:1]).all())

"""Form of a global access, and the count of its requests, bytes and sectors.

The sectors of a request whose addresses separate into CTA and thread parts are counted for one CTA and
multiplied. Those of any other request are counted address by address.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.access_patterns import cta_sectors, request_sectors
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import Allocation

_FEW = 8
"""Ranges up to which flags are set one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalForm:
    """Form of a global access without its addresses: sizes, direction, tally."""

    instruction: Instruction
    """Instruction, for messages."""
    tally: InstructionTally
    """Tally in which the access is counted."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements a thread, without those of ``surplus``."""
    surplus: int = 0
    """Elements after those that the instruction loads too and no instruction reads."""
    unread: int = 0
    """Bytes at the end of the last of ``count`` elements that no instruction reads."""
    stores: bool = False
    """True if the instruction writes."""
    atomic: bool = False
    """True for an atomic or a reduction."""
    counted: bool = True
    """True if the access counts as global traffic; False for constants."""

    @property
    def size(self) -> int:
        """Bytes a thread."""
        return self.width * (self.count + self.surplus)

    @property
    def needed(self) -> int:
        """Bytes a thread that have to lie in a tensor."""
        return self.width * self.count - self.unread


def targets(request: ListedAddresses, positions: Array | None) -> Array | None:
    """Lanes of the addresses at some positions of a request; None for all lanes of the batch."""
    if positions is None:
        return request.lanes
    return positions if request.lanes is None else request.lanes[positions]


def count(lanes: Batch, mask: Mask | None, form: GlobalForm) -> None:
    """Count requests (one a warp) and bytes of an access."""
    if not form.counted:
        return
    tally = form.tally
    threads = lanes.lane_count if mask is None else mask.threads
    tally.requests += lanes.warps if mask is None else mask.warps
    if form.atomic:
        tally.bytes_atomic += threads * form.size
    elif form.stores:
        tally.bytes_stored += threads * form.size
    else:
        tally.bytes_loaded += threads * form.size


def _add_sectors(form: GlobalForm, sectors: int, ideal: int) -> None:
    tally = form.tally
    tally.ideal += ideal
    if form.atomic:
        tally.atomic_sectors += sectors
    elif form.stores:
        tally.store_sectors += sectors
    else:
        tally.load_sectors += sectors


def count_listed(
    lanes: Batch, request: ListedAddresses, allocation: Allocation, positions: Array | None, form: GlobalForm
) -> None:
    """Count the sectors of the addresses at some positions of a request."""
    if not form.counted:
        return
    addresses = request.addresses if positions is None else request.addresses[positions]
    where = targets(request, positions)
    warps = lanes.warp_of_lane if where is None else lanes.warp_of_lane[where]
    _add_sectors(form, *request_sectors(addresses, warps, form.size))
    flags, first = lanes.tally.touched(allocation)
    # An access of at most 32 bytes, aligned to its size, lies in one sector.
    flags[addresses // SECTOR_BYTES - first] = True
    allocation.read |= form.atomic or not form.stores
    if form.stores or form.atomic:
        allocation.about_to_store()


def count_split(
    lanes: Batch, mask: Mask | None, request: SeparableAddresses, allocation: Allocation, form: GlobalForm
) -> None:
    """Count the sectors of a separable request.

    CTAs whose base has the same offset within a sector touch equally many, so one of them is counted and the
    number multiplied.
    """
    if not form.counted:
        return
    flags, first = lanes.tally.touched(allocation)
    allocation.read |= form.atomic or not form.stores
    if form.stores or form.atomic:
        allocation.about_to_store()
    if len(request.row) == 1:  # one address for a whole CTA is one sector a warp
        warps = lanes.warps if mask is None else mask.warps
        _add_sectors(form, warps, warps)
        flags[(request.column + request.row[0]) // SECTOR_BYTES - first] = True
        return
    warp_of = lanes.warp_of_thread if request.active is None else lanes.warp_of_thread[request.active]
    # One column stands for all CTAs where they use the same addresses.
    repeat = lanes.ctas // len(request.column)
    phases = request.column & (SECTOR_BYTES - 1)
    if (phases == phases[0]).all():
        groups = [(int(phases[0]), request.column)]
    else:
        groups = [(int(phase), request.column[phases == phase]) for phase in np.unique(phases)]
    for phase, column in groups:
        sectors, ideal, distinct = cta_sectors(request.row, warp_of, phase, form.size)
        many = len(column) * repeat
        _add_sectors(form, sectors * many, ideal * many)
        _mark(flags, column // SECTOR_BYTES - first, distinct)


def _mark(flags: Array, bases: Array, distinct: Array) -> None:
    """Set the flags of ``bases + distinct``, by slices where they are contiguous."""
    length = len(distinct)
    if int(distinct[-1] - distinct[0]) + 1 != length:
        flags[bases[:, None] + distinct[None]] = True
        return
    low = bases + int(distinct[0])
    if len(low) == 1 or (np.diff(low) == length).all():
        flags[int(low[0]) : int(low[-1]) + length] = True
    elif len(low) <= _FEW:
        for one in low:
            flags[int(one) : int(one) + length] = True
    else:
        flags[low[:, None] + np.arange(length)[None]] = True

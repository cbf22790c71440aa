"""Counts of asynchronous copies (``cp.async``), which depend on source and destination addresses together."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.state.addressing import AddressOperand, SeparableAddresses, listed, split
from cutegen_nb.simulator.state.banks import LINE_BYTES, copy_passes, cta_copy
from cutegen_nb.simulator.state.batch import Batch, Mask

_SKIPPED = -1
"""Source address that stands for a thread that reads nothing and writes zeros."""


class CopyCount:
    """Correction of the counts of one copy.

    Create it before the copy's global load and shared store count themselves. :meth:`settle` then replaces
    their separate counts by those of the copy as a whole.
    """

    __slots__ = ("_ideal", "_sectors", "_tally", "_wavefronts")

    def __init__(self, tally: InstructionTally) -> None:
        self._tally = tally
        self._sectors, self._wavefronts, self._ideal = (
            tally.load_sectors,
            tally.wavefronts,
            tally.shared_ideal,
        )

    def settle(  # noqa: PLR0913, PLR0917 - all that a copy is
        self,
        lanes: Batch,
        mask: Mask | None,
        reads: Array | None,
        source: AddressOperand,
        target: AddressOperand,
        size: int,
        *,
        bypass: bool,
    ) -> None:
        """Count the copy.

        Args:
            lanes: batch that copies.
            mask: threads that copy; None for all.
            reads: True for threads that read their source, shape (1 or ctas, 1 or threads); None for all.
            source: addresses in global memory.
            target: addresses in shared memory.
            size: bytes per thread.
            bypass: True if the copy goes past the L1 cache (``.cg``).
        """
        if reads is not None:
            reads = np.broadcast_to(reads, (reads.shape[0], lanes.threads))
        passes, ideal, sectors = _counted(lanes, mask, reads, source, target, size, bypass=bypass)
        self._tally.wavefronts = self._wavefronts + passes
        self._tally.shared_ideal = self._ideal + ideal
        self._tally.load_sectors = self._sectors + sectors


def _counted(  # noqa: PLR0913, PLR0917 - see CopyCount.settle
    lanes: Batch,
    mask: Mask | None,
    reads: Array | None,
    source: AddressOperand,
    target: AddressOperand,
    size: int,
    *,
    bypass: bool,
) -> tuple[int, int, int]:
    there, here = split(mask, source), split(mask, target)
    alike = reads is None or reads.shape[0] == 1
    if there is not None and here is not None and len(here.column) == 1 and alike:
        return _of_ctas(lanes, reads, there, here, size, bypass=bypass)
    given = listed(lanes, mask, source)
    sources, targets = given.addresses, listed(lanes, mask, target).addresses
    if not len(sources):
        return 0, 0, 0
    warps = lanes.warp_of_lane if given.lanes is None else lanes.warp_of_lane[given.lanes]
    sources = sources - _shift(lanes, int(sources[0]))
    if reads is not None:
        read = np.broadcast_to(reads, (lanes.ctas, lanes.threads)).reshape(-1)
        sources = np.where(read if given.lanes is None else read[given.lanes], sources, _SKIPPED)
    return copy_passes(sources, targets, warps, size, bypass=bypass)


def _shift(lanes: Batch, address: int) -> int:
    """Bytes by which the allocation at an address is off a 128-byte line; on a GPU each begins a line."""
    allocation = lanes.memory.find(address, address + 1)
    return 0 if allocation is None else allocation.address % LINE_BYTES


def _of_ctas(  # noqa: PLR0913 - see CopyCount.settle
    lanes: Batch,
    reads: Array | None,
    source: SeparableAddresses,
    target: SeparableAddresses,
    size: int,
    *,
    bypass: bool,
) -> tuple[int, int, int]:
    """Count one CTA of each alignment to a line, and multiply by the number of such CTAs."""
    threads = np.arange(lanes.threads) if source.active is None else source.active
    row = np.broadcast_to(source.row, threads.shape)
    # Whole lines may be dropped from the offsets: only their position within a line matters.
    row = row - row.min() // LINE_BYTES * LINE_BYTES
    targets = np.broadcast_to(target.row, threads.shape) + int(target.column[0])
    warps = lanes.warp_of_thread[threads]
    column = source.column - _shift(lanes, int(source.column[0] + source.row[0]))
    phases, counts = np.unique(column & (LINE_BYTES - 1), return_counts=True)
    repeat = lanes.ctas // len(source.column)
    total = np.zeros(3, np.int64)
    for phase, many in zip(phases, counts, strict=True):
        sources = row + phase
        if reads is not None:
            sources = np.where(reads[0][threads], sources, _SKIPPED)
        total += np.array(cta_copy(sources, targets, warps, size, bypass=bypass)) * int(many) * repeat
    passes, ideal, sectors = total.tolist()
    return passes, ideal, sectors

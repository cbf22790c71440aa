"""Counts of a launch as arrays, so that they can be subtracted, multiplied and added to."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.counters.counters import InstructionTally, Tally
from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Address, Instruction
from cutegen_nb.simulator.state.batch import WARP
from cutegen_nb.simulator.state.global_memory import Allocation

FIELDS = (
    "requests", "bytes_loaded", "bytes_stored", "bytes_atomic", "load_sectors", "store_sectors",
    "atomic_sectors", "ideal", "shared_requests", "shared_loaded", "shared_stored", "wavefronts",
    "shared_ideal", "local_loaded", "local_stored", "divergent", "guarded_threads",
)  # fmt: skip
"""Counts of an :class:`InstructionTally`, in the order of the columns of :attr:`Counts.fields`."""
_DIVERGENT = FIELDS.index("divergent")
_read = attrgetter(*FIELDS)
_ALL = slice(None)


@dataclass(slots=True)
class Counts:
    """Counts of a launch, or a multiple of them."""

    warps: Array
    """Warp executions of each segment."""
    threads: Array
    """Thread executions of each segment."""
    fields: Array
    """Counts of each instruction that has any of its own, shape (instructions, ``FIELDS``)."""
    clock: float
    """Instructions of all segments executed, once for all warps that went together."""

    def __sub__(self, other: Counts) -> Counts:
        """Counts between two moments."""
        return Counts(
            self.warps - other.warps, self.threads - other.threads, self.fields - other.fields,
            self.clock - other.clock,
        )  # fmt: skip

    def __add__(self, other: Counts) -> Counts:
        """Add counts."""
        return Counts(
            self.warps + other.warps, self.threads + other.threads, self.fields + other.fields,
            self.clock + other.clock,
        )  # fmt: skip

    def times(self, factor: float) -> Counts:
        """Multiply counts."""
        return Counts(
            self.warps * factor, self.threads * factor, self.fields * factor, self.clock * factor
        )  # fmt: skip


class CountReader:
    """Reader and writer of the counts of one program."""

    def __init__(self, program: Program) -> None:
        self._tallies: list[InstructionTally] = []
        self._starts = [0]
        for segment in program.segments:
            for instruction, tally in segment.instructions:
                if tally.guarded or _counts(instruction):
                    self._tallies.append(tally)
            self._starts.append(len(self._tallies))
        self.lengths: Array = np.array([len(segment.instructions) for segment in program.segments], np.int64)
        """Instructions of each segment."""

    def of_segments(self, first: int, last: int) -> slice:
        """Rows of :attr:`Counts.fields` that belong to some segments."""
        return slice(self._starts[first], self._starts[last + 1])

    def read(self, tally: Tally, clock: float = 0.0, rows: slice = _ALL) -> Counts:
        """Return the counts as they are now, those of instructions for some rows only."""
        return Counts(
            np.array(tally.warps, np.int64),
            np.array(tally.threads, np.int64),
            np.array([_read(one) for one in self._tallies[rows]], np.int64).reshape(-1, len(FIELDS)),
            clock,
        )

    def write(self, counts: Counts, tally: Tally, rows: slice = _ALL) -> None:
        """Replace the counts that :meth:`read` returned, rounded to whole numbers."""
        tally.warps = np.rint(counts.warps).astype(np.int64).tolist()
        tally.threads = np.rint(counts.threads).astype(np.int64).tolist()
        whole = np.rint(counts.fields).astype(np.int64).tolist()
        for one, row in zip(self._tallies[rows], whole, strict=True):
            _assign(one, row)

    def same(self, one: Counts, other: Counts, first: int, but: frozenset[int]) -> bool:
        """Return whether counts agree, except in the clock, which advances at each reading.

        Fields are those from segment `first` on. The segments `but` may differ; then branches may diverge
        differently too.
        """
        if not but:
            left, right = (one.warps, one.threads, one.fields), (other.warps, other.threads, other.fields)
            return all(map(np.array_equal, left, right))
        kept = np.ones(len(one.warps), np.bool_)
        kept[list(but)] = False
        rows = np.repeat(kept, np.diff(self._starts))[self._starts[first] :][: len(one.fields)]
        differs = (one.fields != other.fields) & rows[:, None]
        differs[:, _DIVERGENT] = False
        return (
            np.array_equal(one.warps[kept], other.warps[kept])
            and np.array_equal(one.threads[kept], other.threads[kept])
            and not differs.any()
        )

    def stretched(self, counts: Counts, factors: Array) -> Counts:
        """Multiply the counts of each segment by a factor of its own, and the clock by the largest."""
        by_row = np.repeat(factors, np.diff(self._starts))
        return Counts(
            counts.warps * factors, counts.threads * factors, counts.fields * by_row[:, None],
            counts.clock * float(factors.max(initial=1.0)),
        )  # fmt: skip

    def scattered_sectors(self) -> tuple[int, int]:
        """Return the sectors of scattered loads, and of scattered stores and atomics, as last written."""
        # A bulk copy is a request of one thread for many whole lines.
        by_threads = [one for one in self._tallies if not one.access.startswith("bulk")]
        loads = sum(_scattered(one.requests, one.load_sectors) for one in by_threads)
        stores = (_scattered(one.requests, one.store_sectors + one.atomic_sectors) for one in by_threads)
        return round(loads), round(sum(stores))

    def instructions(self, counts: Counts) -> float:
        """Return the warp instructions of counts."""
        return float(counts.warps @ self.lengths)


def _scattered(requests: int, sectors: int) -> float:
    """Return the scattered sectors of an instruction: none where two threads share one, all where none do."""
    if not sectors:
        return 0.0
    # Threads that share a sector are neighbours in memory, so that their sectors share lines as well.
    threads_per_sector = WARP * requests / sectors
    return sectors * min(max(2 - threads_per_sector, 0.0), 1.0)


def _assign(tally: InstructionTally, row: list[int]) -> None:
    for name, value in zip(FIELDS, row, strict=True):
        setattr(tally, name, value)


_BRANCHES = frozenset({"bra", "brx"})


def _counts(instruction: Instruction) -> bool:
    """Return whether an instruction has counts beside its executions: it is a branch, or has an address."""
    return instruction.opcode in _BRANCHES or any(isinstance(one, Address) for one in instruction.operands)


class _Extent:
    """Range of the sectors set in it; takes the place of an array of flags, one a sector."""

    __slots__ = ("end", "first")

    def __init__(self) -> None:
        self.first, self.end = 0, 0

    def __setitem__(self, where: slice | Array, value: object) -> None:
        """Widen the range by a slice or by an array of sectors."""
        del value
        if isinstance(where, slice):
            low, high = int(where.start), int(where.stop)
        elif not where.size:
            return
        else:
            low, high = int(where.min()), int(where.max()) + 1
        if self.end:
            low, high = min(low, self.first), max(high, self.end)
        self.first, self.end = low, high


class SampleTally(Tally):
    """Tally of a sample. It keeps the range of touched sectors of an allocation, not a flag for each."""

    def __init__(self, segments: int) -> None:
        super().__init__(segments)
        self._extents: dict[int, _Extent] = {}

    def touched(self, allocation: Allocation) -> tuple[Array, int]:
        """Return the range of an allocation, set as flags are, and the number of its first sector."""
        extent = self._extents.get(allocation.address)
        if extent is None:
            extent = self._extents[allocation.address] = _Extent()
        flags: Array = extent  # type: ignore[assignment]  # of an array only item assignment is used
        return flags, allocation.address // SECTOR_BYTES

    def extent(self, allocation: Allocation) -> int:
        """Sectors from the first to the last touched one of an allocation."""
        extent = self._extents.get(allocation.address)
        return extent.end - extent.first if extent else 0

    def distinct_sectors(self) -> int:
        """Zero: the sample computes this number from its log of accesses."""
        return 0

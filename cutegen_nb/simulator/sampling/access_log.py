"""Log of the global sectors that some CTAs of a batch load and store, in order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.state.access_patterns import cta_sectors, request_sectors
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import WARP, Batch

MOST_SECTORS = 1 << 20
"""Most sectors logged of a CTA: 32 MiB of traffic. Accesses after them are not logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Repetition of a logged access in skipped iterations."""

    stride: int
    """Sectors from one repetition to the next."""
    repetitions: int
    """Repetitions after the logged access."""
    time_each: float
    """Sectors loaded between two repetitions."""
    since: int
    """Accesses that were logged when the repetitions had happened."""


@dataclass(slots=True)
class CtaLog:
    """Accesses of one CTA, each the sectors of one instruction."""

    cta: int
    """Linear number of the CTA in the grid."""
    instructions: list[int] = field(default_factory=list)
    """Identity of the instruction of each access."""
    sectors: list[Array] = field(default_factory=list)
    """Distinct sectors of each access: byte address ÷ 32."""
    lowest: list[int] = field(default_factory=list)
    """Least byte address of each access."""
    stores: list[bool] = field(default_factory=list)
    """True for a store."""
    again: list[int] = field(default_factory=list)
    """Sectors that more than one warp loads by the same instruction, counted from the second warp on."""
    times: list[float] = field(default_factory=list)
    """Sectors that the CTA had loaded before each access, skipped iterations included."""
    weights: list[float] = field(default_factory=list)
    """Number of times that each access stands for: 1, and one for each skipped repetition."""
    levels: dict[int, tuple[Level, ...]] = field(default_factory=dict)
    """Repetitions of the accesses of skipped periods, from inner to outer loops."""
    clock: float = 0.0
    """Sectors loaded so far, skipped iterations included."""
    size: int = 0
    """Sectors in the log."""
    full: bool = False
    """True if the log has ended before the CTA has."""

    def add(self, instruction: int, sectors: Array, lowest: int, again: int, *, stores: bool) -> None:
        """Log one access."""
        self.instructions.append(instruction)
        self.sectors.append(sectors)
        self.lowest.append(lowest)
        self.stores.append(stores)
        self.again.append(again)
        self.times.append(self.clock)
        self.weights.append(1.0)
        self.size += len(sectors)
        self.full = self.size > MOST_SECTORS
        if not stores:
            self.clock += len(sectors)

    def repeats(self, first: int, middle: int) -> bool:
        """Return whether the accesses from ``middle`` on repeat those before it, moved by whole sectors."""
        if self.full:
            return True
        if self.instructions[first:middle] != self.instructions[middle:]:
            return False
        return not any(
            (late - early) % SECTOR_BYTES
            for early, late in zip(self.lowest[first:middle], self.lowest[middle:], strict=True)
        )

    def skip(self, middle: int, periods: int) -> None:
        """Let the accesses from ``middle`` on happen ``periods`` times more."""
        end = len(self.instructions)
        if self.full or middle == end:
            return
        elapsed = self.clock - self.times[middle]
        for at in range(middle, end):
            self.weights[at] *= 1 + periods
            level = Level(
                stride=(self.lowest[at] - self.lowest[at - (end - middle)]) // SECTOR_BYTES,
                repetitions=periods, time_each=elapsed, since=end,
            )  # fmt: skip
            self.levels[at] = (*self.levels.get(at, ()), level)
        self.clock += elapsed * periods


@dataclass(frozen=True, slots=True)
class LogMark:
    """Moment in a log of accesses."""

    lengths: dict[int, int] = field(default_factory=dict)
    """Accesses of each CTA so far, by its place in the batch."""


class AccessLog:
    """Observer of the accesses of some CTAs of a batch."""

    def __init__(self, logged: dict[int, CtaLog]) -> None:
        self.logged = logged
        """Logs by the CTA's place in the batch."""

    def mark(self) -> LogMark:
        """Return the present moment."""
        return LogMark({place: len(one.instructions) for place, one in self.logged.items()})

    def repeats(self, first: LogMark, middle: LogMark) -> bool:
        """Return whether the accesses since ``middle`` are by the same instructions as those before it."""
        return all(
            one.repeats(first.lengths[place], middle.lengths[place]) for place, one in self.logged.items()
        )

    def skip(self, middle: LogMark, periods: int) -> None:
        """Let the accesses since ``middle`` happen ``periods`` times more."""
        for place, one in self.logged.items():
            one.skip(middle.lengths[place], periods)

    def touched(
        self,
        lanes: Batch,
        request: SeparableAddresses | ListedAddresses,
        size: int,
        tally: InstructionTally,
        *,
        stores: bool,
    ) -> None:
        """Log a request of the CTAs that are logged."""
        for place, one in self.logged.items():
            if one.full:
                continue
            found = (
                _of_separable(lanes, request, place, size)
                if isinstance(request, SeparableAddresses)
                else _of_listed(lanes, request, place, size)
            )
            if found is not None:
                sectors, lowest, total = found
                one.add(id(tally), sectors, lowest, total - len(sectors), stores=stores)


def _of_separable(
    lanes: Batch, request: SeparableAddresses, place: int, size: int
) -> tuple[Array, int, int] | None:
    """Distinct sectors of a CTA's request, its least address, and its sectors counted once a warp."""
    base = int(request.column[place if len(request.column) > 1 else 0])
    warps = lanes.warp_of_thread if request.active is None else lanes.warp_of_thread[request.active]
    if not len(warps):
        return None
    if len(request.row) == 1:
        address = base + int(request.row[0])
        return np.array([address // SECTOR_BYTES]), address, len(np.unique(warps))
    total, _, distinct = cta_sectors(request.row, warps, base % SECTOR_BYTES, size)
    return distinct + base // SECTOR_BYTES, base + int(request.row.min()), total


def _of_listed(
    lanes: Batch, request: ListedAddresses, place: int, size: int
) -> tuple[Array, int, int] | None:
    """Distinct sectors of a CTA's request, its least address, and its sectors counted once a warp."""
    first = place * lanes.threads
    if request.lanes is None:
        addresses, threads = request.addresses[first : first + lanes.threads], np.arange(lanes.threads)
    else:
        here = slice(*np.searchsorted(request.lanes, [first, first + lanes.threads]))
        addresses, threads = request.addresses[here], request.lanes[here] - first
    if not len(addresses):
        return None
    total, _ = request_sectors(addresses, threads // WARP, size)
    return np.unique(addresses // SECTOR_BYTES), int(addresses.min()), total

"""Counts while a launch runs, and the ``LaunchProfile`` they become."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES, Counters, LaunchProfile, LineCounters
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import Array

if TYPE_CHECKING:
    from cutegen_nb.simulator.memory import Allocation


class InstructionTally:
    """What one instruction did that is not the same at each execution."""

    __slots__ = (
        "atomic_sectors", "bytes_loaded", "bytes_stored", "divergent", "flop_kind", "flops_each", "guarded",
        "guarded_threads", "ideal", "load_sectors", "requests", "shared_ideal", "shared_loaded",
        "shared_stored", "store_sectors", "wavefronts",
    )  # fmt: skip

    def __init__(self) -> None:
        self.flop_kind = ""
        self.flops_each = 0
        self.guarded = False
        self.clear()

    def clear(self) -> None:
        """Begin a new launch."""
        self.guarded_threads = 0
        self.requests = 0
        self.bytes_loaded = 0
        self.bytes_stored = 0
        self.load_sectors = 0
        self.store_sectors = 0
        self.atomic_sectors = 0
        self.ideal = 0
        self.shared_loaded = 0
        self.shared_stored = 0
        self.wavefronts = 0
        self.shared_ideal = 0
        self.divergent = 0


class Tally:
    """Executions by segment, and the sectors of each allocation that were touched."""

    def __init__(self, segments: int) -> None:
        self.warps = [0] * segments
        """Warp executions of each segment."""
        self.threads = [0] * segments
        """Thread executions of each segment."""
        self._touched: dict[int, tuple[Allocation, Array]] = {}

    def touched(self, allocation: Allocation) -> tuple[Array, int]:
        """Flags of the allocation's sectors, and the number of the first one."""
        known = self._touched.get(allocation.address)
        first = allocation.address // SECTOR_BYTES
        if known is None:
            known = (allocation, np.zeros((allocation.end - 1) // SECTOR_BYTES - first + 1, np.bool_))
            self._touched[allocation.address] = known
        return known[1], first

    def distinct_sectors(self) -> int:
        """Different sectors touched at all."""
        return sum(int(np.count_nonzero(flags)) for _, flags in self._touched.values())


def profile_of(
    empty: LaunchProfile,
    tally: Tally,
    segments: Sequence[Sequence[tuple[Instruction, InstructionTally]]],
) -> LaunchProfile:
    """Fill in the counts of a launch, in total and by line of Python."""
    by_line: dict[tuple[str, int], _Sum] = {}
    for segment, warps, threads in zip(segments, tally.warps, tally.threads, strict=True):
        if not warps:
            continue
        for instruction, one in segment:
            place = (instruction.file, instruction.line)
            line = by_line.get(place)
            if line is None:
                line = by_line[place] = _Sum()
            line.add(instruction, one, warps, threads)
    lines = tuple(
        LineCounters(file=file, line=line, counters=by_line[file, line].counters())
        for file, line in sorted(by_line)
    )
    total = _Sum()
    for line_sum in by_line.values():
        total.merge(line_sum)
    return replace(
        empty,
        counters=total.counters(),
        lines=lines,
        gmem_distinct_sectors=tally.distinct_sectors(),
    )


_BRANCHES = frozenset({"bra", "brx"})
_BARRIERS = frozenset({"bar", "barrier"})


class _Sum:
    """Counts of one line, changeable."""

    __slots__ = ("flops", "numbers")

    def __init__(self) -> None:
        self.numbers = [0] * 16
        self.flops: dict[str, int] = {}

    def add(self, instruction: Instruction, one: InstructionTally, warps: int, threads: int) -> None:
        """Add one instruction that this many warps and threads executed."""
        numbers = self.numbers
        for index, value in enumerate(
            (
                warps, threads, one.bytes_loaded, one.bytes_stored, one.load_sectors, one.store_sectors,
                one.atomic_sectors, one.ideal, one.requests, one.shared_loaded, one.shared_stored,
                one.wavefronts, one.shared_ideal, warps * (instruction.opcode in _BARRIERS),
                warps * (instruction.opcode in _BRANCHES), one.divergent,
            )
        ):  # fmt: skip
            numbers[index] += value
        if one.flops_each:
            executed = one.guarded_threads if one.guarded else threads
            self.flops[one.flop_kind] = self.flops.get(one.flop_kind, 0) + executed * one.flops_each

    def merge(self, other: _Sum) -> None:
        """Add another line's counts."""
        self.numbers = [mine + theirs for mine, theirs in zip(self.numbers, other.numbers, strict=True)]
        for kind, count in other.flops.items():
            self.flops[kind] = self.flops.get(kind, 0) + count

    def counters(self) -> Counters:
        """As the frozen value."""
        (
            warps, threads, loaded, stored, load_sectors, store_sectors, atomic_sectors, ideal, requests,
            shared_loaded, shared_stored, wavefronts, shared_ideal, barriers, branches, divergent,
        ) = self.numbers  # fmt: skip
        return Counters(
            warp_instructions=warps, thread_instructions=threads, flops=dict(sorted(self.flops.items())),
            gmem_load_bytes=loaded, gmem_store_bytes=stored, gmem_load_sectors=load_sectors,
            gmem_store_sectors=store_sectors, gmem_atomic_sectors=atomic_sectors, gmem_ideal_sectors=ideal,
            gmem_requests=requests, smem_load_bytes=shared_loaded, smem_store_bytes=shared_stored,
            smem_wavefronts=wavefronts, smem_ideal_wavefronts=shared_ideal, barriers=barriers,
            branches=branches, divergent_branches=divergent,
        )  # fmt: skip

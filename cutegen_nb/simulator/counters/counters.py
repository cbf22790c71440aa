"""Counts taken while a launch runs (:class:`Tally`), and the ``LaunchProfile`` made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES, Access, Counters, LaunchProfile, LineCounters
from cutegen_nb.simulator.counters.pipes import access_of, pipe_of
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.banks import BankRule

if TYPE_CHECKING:
    from cutegen_nb.simulator.state.global_memory import Allocation


class InstructionTally:
    """Counts of one instruction that cannot be derived from how often it was executed.

    Traffic in bytes, sectors and wavefronts; ``divergent`` branches; threads whose guard predicate held.
    """

    __slots__ = (
        "access", "atomic_sectors", "bytes_atomic", "bytes_loaded", "bytes_stored", "divergent", "flop_kind",
        "flops_each", "guarded", "guarded_threads", "ideal", "load_sectors", "local_loaded", "local_stored",
        "pipe", "products", "requests", "service", "shared_ideal", "shared_loaded", "shared_requests",
        "shared_stored", "store_sectors", "tensor_bytes_each", "tensor_flops", "wait_distance", "wavefronts",
    )  # fmt: skip

    def __init__(self) -> None:
        self.flop_kind = ""
        self.flops_each = 0
        self.guarded = False
        self.pipe = ""
        self.access = ""
        self.service: BankRule | None = None
        self.tensor_bytes_each = 0
        """Bytes of tensor memory that a thread moves."""
        self.wait_distance = 0
        """Instructions from this load to its first use if a warp waits for it there; 0 if it does not."""
        self.clear()

    def clear(self) -> None:
        """Reset the counts for a new launch."""
        self.requests = self.bytes_loaded = self.bytes_stored = self.bytes_atomic = 0
        self.load_sectors = self.store_sectors = self.atomic_sectors = self.ideal = 0
        self.shared_requests = self.shared_loaded = self.shared_stored = 0
        self.wavefronts = self.shared_ideal = self.local_loaded = self.local_stored = 0
        self.divergent = self.guarded_threads = 0
        self.products: dict[str, int] = {}
        """Matrix products by shape and type, where a register tells them (``tcgen05.mma``)."""
        self.tensor_flops: dict[str, int] = {}
        """Operations of these products, by pipe and type."""

    def add_product(self, kind: str, shape: str, number: int, flops: int) -> None:
        """Count products of one shape, of ``flops`` operations each."""
        _add(self.products, shape, number)
        _add(self.tensor_flops, kind, number * flops)


class Tally:
    """Counts of a launch: executions of each segment, and touched sectors of each allocation.

    A segment is a straight run of instructions, which are all executed equally often.
    """

    def __init__(self, segments: int) -> None:
        self.warps = [0] * segments
        """Warp executions of each segment."""
        self.threads = [0] * segments
        """Thread executions of each segment."""
        self._touched: dict[int, tuple[Allocation, Array]] = {}

    def touched(self, allocation: Allocation) -> tuple[Array, int]:
        """Return the flags of an allocation's 32-byte sectors, and the number of its first sector."""
        known = self._touched.get(allocation.address)
        first = allocation.address // SECTOR_BYTES
        if known is None:
            known = (allocation, np.zeros((allocation.end - 1) // SECTOR_BYTES - first + 1, np.bool_))
            self._touched[allocation.address] = known
        return known[1], first

    def distinct_sectors(self) -> int:
        """Number of distinct sectors touched in the launch."""
        return sum(int(np.count_nonzero(flags)) for _, flags in self._touched.values())


def profile_of(
    empty: LaunchProfile,
    tally: Tally,
    segments: Sequence[Sequence[tuple[Instruction, InstructionTally]]],
) -> LaunchProfile:
    """Return the profile ``empty`` with the counts of a launch filled in, in total and by line of Python."""
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


def add_executions(
    executed: dict[int, int], tally: Tally, segments: Sequence[Sequence[tuple[Instruction, InstructionTally]]]
) -> None:
    """Add the executions of a launch by warps to those of the instruction that begins in each PTX line."""
    for segment, warps in zip(segments, tally.warps, strict=True):
        before = 0
        for instruction, _ in segment:
            # An instruction on wide registers is carried out in parts, which follow one another.
            if warps and instruction.ptx_line != before:
                executed[instruction.ptx_line] = executed.get(instruction.ptx_line, 0) + warps
            before = instruction.ptx_line


_BRANCHES = frozenset({"bra", "brx"})
_BARRIERS = frozenset({"bar", "barrier"})


_TRAFFIC = {
    "requests": "gmem_requests", "bytes_loaded": "gmem_load_bytes", "bytes_stored": "gmem_store_bytes",
    "load_sectors": "gmem_load_sectors", "store_sectors": "gmem_store_sectors",
    "atomic_sectors": "gmem_atomic_sectors", "ideal": "gmem_ideal_sectors",
    "shared_loaded": "smem_load_bytes", "shared_stored": "smem_store_bytes", "wavefronts": "smem_wavefronts",
    "shared_ideal": "smem_ideal_wavefronts", "local_loaded": "local_load_bytes",
    "local_stored": "local_store_bytes",
}  # fmt: skip
"""Field of :class:`InstructionTally` → field of ``Counters`` that sums it, for memory instructions."""


class _Sum:
    """Mutable counts of one line of Python, or of several added up."""

    __slots__ = ("flops", "gmem", "instructions", "numbers", "products", "smem")

    def __init__(self) -> None:
        self.numbers: defaultdict[str, int] = defaultdict(int)
        """Field of ``Counters`` that is a number → its value."""
        self.instructions: defaultdict[str, int] = defaultdict(int)
        """Pipe → warp instructions."""
        self.flops: defaultdict[str, int] = defaultdict(int)
        """``pipe.type`` → floating-point operations."""
        self.products: defaultdict[str, int] = defaultdict(int)
        """Shape and type → products of matrices in tensor memory."""
        self.gmem: dict[str, Access] = {}
        """Kind of access → accesses of global memory."""
        self.smem: dict[str, Access] = {}
        """Kind of access → accesses of shared memory."""

    def add(self, instruction: Instruction, one: InstructionTally, warps: int, threads: int) -> None:
        """Add one instruction with its numbers of executions by warps and by threads."""
        if not one.pipe:
            one.pipe, one.access = pipe_of(instruction), access_of(instruction)
        # Threads whose guard predicate is false execute the instruction without effect.
        executed = one.guarded_threads if one.guarded else threads
        numbers = self.numbers
        numbers["warp_instructions"] += warps
        numbers["thread_instructions"] += threads
        numbers["thread_instructions_on"] += executed
        self.instructions[one.pipe] += warps
        if one.wait_distance:
            numbers["gmem_waits"] += warps
            numbers["gmem_wait_instructions"] += warps * one.wait_distance
        if one.flops_each:
            self.flops[one.flop_kind] += executed * one.flops_each
        if one.tensor_bytes_each:
            field = "tensor_load_bytes" if one.pipe.startswith("load") else "tensor_store_bytes"
            numbers[field] += executed * one.tensor_bytes_each
        for shape, number in one.products.items():
            self.products[shape] += number
        for kind, number in one.tensor_flops.items():
            self.flops[kind] += number
        if one.access:
            self._add_access(one)
        elif instruction.opcode in _BARRIERS:
            numbers["barriers"] += warps
        elif instruction.opcode in _BRANCHES:
            numbers["branches"] += warps
            numbers["divergent_branches"] += one.divergent

    def _add_access(self, one: InstructionTally) -> None:
        for name, field in _TRAFFIC.items():
            self.numbers[field] += getattr(one, name)
        if one.requests:
            _add_kind(
                self.gmem, one.access,
                Access(
                    requests=one.requests, bytes=one.bytes_loaded + one.bytes_stored + one.bytes_atomic,
                    passes=one.load_sectors + one.store_sectors + one.atomic_sectors, ideal=one.ideal,
                ),
            )  # fmt: skip
        if one.shared_requests:
            _add_kind(
                self.smem, one.access,
                Access(
                    requests=one.shared_requests, bytes=one.shared_loaded + one.shared_stored,
                    passes=one.wavefronts, ideal=one.shared_ideal,
                ),
            )  # fmt: skip

    def merge(self, other: _Sum) -> None:
        """Add another line's counts."""
        for mine, theirs in (
            (self.numbers, other.numbers), (self.instructions, other.instructions),
            (self.flops, other.flops), (self.products, other.products),
        ):  # fmt: skip
            for name, value in theirs.items():
                mine[name] += value
        for kind, access in other.gmem.items():
            _add_kind(self.gmem, kind, access)
        for kind, access in other.smem.items():
            _add_kind(self.smem, kind, access)

    def counters(self) -> Counters:
        """Return the counts as an immutable ``Counters``."""
        numbers: dict[str, Any] = self.numbers  # the fields that are dictionaries are given by name
        return Counters(
            instructions=dict(sorted(self.instructions.items())), flops=dict(sorted(self.flops.items())),
            products=dict(sorted(self.products.items())),
            gmem_accesses=dict(sorted(self.gmem.items())), smem_accesses=dict(sorted(self.smem.items())),
            **numbers,
        )  # fmt: skip


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    counts[key] = counts.get(key, 0) + amount


def _add_kind(accesses: dict[str, Access], kind: str, access: Access) -> None:
    known = accesses.get(kind)
    accesses[kind] = access if known is None else known + access

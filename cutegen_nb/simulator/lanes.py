"""The threads of one batch of CTAs: registers, memory of their own, and masks over them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_nb.simulator.memory import UNSIGNED, GlobalMemory
from cutegen_nb.simulator.values import Array, Value

if TYPE_CHECKING:
    from cutegen_nb.simulator.counters import Tally
    from cutegen_nb.simulator.findings import Findings
    from cutegen_nb.simulator.global_watch import GlobalWatch
    from cutegen_nb.simulator.local_watch import LocalWatch
    from cutegen_nb.simulator.mbarrier_objects import Mbarriers
    from cutegen_nb.simulator.printed import Printed
    from cutegen_nb.simulator.ptx_model import Instruction
    from cutegen_nb.simulator.shared_watch import SharedWatch

WARP = 32
"""Threads in a warp."""
POISON: Array = np.full(1, 0xFF, np.uint8)
"""What shared and local memory hold at first: NaN as floats, −1 as integers."""
ROW_BYTES = 16
"""Rows of shared and local memory are padded to this, so that they can be viewed in any width."""


class Mask:
    """Which threads execute: a boolean array of shape (1, threads) or (ctas, threads)."""

    __slots__ = ("_bits", "_index", "_negative", "_warps", "array", "lanes", "threads")

    def __init__(self, lanes: Lanes, array: Array) -> None:
        if array.shape[1] != lanes.threads:
            array = np.broadcast_to(array, (array.shape[0], lanes.threads))
        self.array = array
        self.lanes = lanes
        repeat = lanes.ctas if array.shape[0] == 1 else 1
        self.threads = int(np.count_nonzero(array)) * repeat
        """Active threads of the batch."""
        self._negative: dict[int, Array] = {}
        self._index: Array | None = None
        self._warps = -1
        self._bits: Array | None = None

    def bits(self) -> Array:
        """Active lanes as 32-bit numbers, shape (1 or ctas, warps)."""
        if self._bits is None:
            self._bits = warp_bits(self.array)
        return self._bits

    @property
    def warps(self) -> int:
        """Warps of the batch with an active thread."""
        if self._warps < 0:
            repeat = self.lanes.ctas if self.array.shape[0] == 1 else 1
            self._warps = int(np.count_nonzero(self.bits())) * repeat
        return self._warps

    @property
    def index(self) -> Array:
        """Active threads as indices into the flattened batch, ascending."""
        if self._index is None:
            self._index = np.flatnonzero(np.broadcast_to(self.array, (self.lanes.ctas, self.lanes.threads)))
        return self._index

    def select(self, new: Value, old: Value, width: int) -> Value:
        """``new`` where active, ``old`` elsewhere; bit arithmetic, a few times faster than ``np.where``."""
        unsigned = UNSIGNED[width]
        negative = self._negative.get(width)
        if negative is None:
            negative = np.negative(self.array.astype(unsigned))
            self._negative[width] = negative
        before = old if old.dtype is unsigned else old.view(unsigned)
        after = new if new.dtype is unsigned else new.view(unsigned)
        return np.bitwise_xor(before, np.bitwise_and(np.bitwise_xor(before, after), negative))

    def narrowed(self, predicate: Array) -> Mask:
        """Active threads for which the predicate holds too."""
        return Mask(self.lanes, np.logical_and(self.array, predicate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all batches of a launch share."""

    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    cluster: tuple[int, int, int]
    """CTAs of a cluster in x, y, z."""
    memory: GlobalMemory
    """Global memory."""
    parameters: bytes
    """Kernel parameters, laid out."""
    dynamic_smem_bytes: int
    """Dynamic shared memory of a CTA."""
    shared_bytes: int
    """Shared memory of a CTA, static and dynamic."""
    local_bytes: int
    """Local memory of a thread."""
    tally: Tally
    """Counts of the launch."""
    stop_at: float
    """Reading of ``time.monotonic`` at which the launch is given up."""
    findings: Findings
    """What checks found."""
    printed: Printed
    """What threads print."""
    filling: Array
    """Bytes that shared and local memory hold at first, repeated; a power of two of them, at most 16."""


class Lanes:
    """One batch: CTAs of ``threads`` threads that run side by side."""

    def __init__(  # noqa: PLR0915 - a batch has this many parts
        self, setting: Setting, registers: list[Value], cta_numbers: Array
    ) -> None:
        self.registers = registers
        """Value of every slot of the program."""
        self.cta_numbers = cta_numbers
        """Number of each CTA in its grid, x running fastest; ascending, not always without gaps."""
        self.ctas = ctas = len(cta_numbers)
        self.grid = setting.grid
        self.block = setting.block
        self.cluster = setting.cluster
        self.memory = setting.memory
        self.parameters = setting.parameters
        self.tally = setting.tally
        self.stop_at = setting.stop_at
        self.findings = setting.findings
        self.printed = setting.printed
        self.watch: SharedWatch | None = None
        """Watches shared memory; None where there is none or nobody looks."""
        self.local_watch: LocalWatch | None = None
        """Watches local memory; None where there is none or nobody looks."""
        self.global_watch: GlobalWatch | None = None
        """Watches global memory, for the whole launch; None where nobody looks."""
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.warps_per_cta = -(-self.threads // WARP)
        self.warps = ctas * self.warps_per_cta
        self.lane_count = ctas * self.threads
        self.dynamic_smem_bytes = setting.dynamic_smem_bytes
        """Of it, what the launch asked for."""
        self.shared_limit = setting.shared_bytes
        """Bytes of shared memory a CTA may use."""
        self.local_limit = setting.local_bytes
        """Bytes of local memory of a thread."""
        self.shared: Array = _filled((ctas, _padded(setting.shared_bytes)), setting.filling)
        """Shared memory, one row a CTA; on a GPU nobody knows what is in it at first, so here it is NaN."""
        self.local: Array = _filled((ctas, self.threads, _padded(setting.local_bytes)), setting.filling)
        """Local memory, one row a thread."""
        self.async_groups: Array | None = None
        """Groups of asynchronous copies each thread has committed; None before the first."""
        self.async_copies: list[Any] = []
        """Copies begun by cp.async and not yet arrived."""
        self.sums: dict[tuple[int, ...], tuple[list[Array], Array]] = {}
        """Registers, by identity, that are slices of one array which matrix products left, and that array."""
        self.mbarriers: Mbarriers | None = None
        """What is known of mbarriers besides their words in shared memory; None before the first."""
        self.arrivals: dict[int, Array] = {}
        """Threads that have arrived at a barrier without waiting, by its number; shape (1 or ctas, 1)."""
        self.later = 0
        """CTAs of the launch that run when these have ended."""
        self.clock = 0
        """Counts segments executed; what %clock shows."""
        thread = np.arange(self.threads)
        self.warp_of_thread: Array = thread // WARP
        """Warp of each thread in its CTA."""
        self.lane_of_thread: Array = thread % WARP
        """Lane of each thread in its warp."""
        self._warp_of_lane: Array | None = None

    def place_of(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """ThreadIdx and blockIdx of a lane, an index into the flattened batch."""
        cta, thread = divmod(lane, self.threads)
        return _coordinates(thread, self.block), _coordinates(int(self.cta_numbers[cta]), self.grid)

    def released(self, mask: Mask | None, key: Hashable) -> None:
        """The active warps let whoever acquires ``key`` know what they did: an arrival at an mbarrier."""
        if self.watch is not None:
            self.watch.released(self.warps_of(mask), key)

    def acquired(self, mask: Mask | None, key: Hashable) -> None:
        """The active warps saw what was released to ``key``: a wait that succeeded."""
        if self.watch is not None:
            self.watch.acquired(self.warps_of(mask), key)

    def fenced(self, mask: Mask | None) -> None:
        """The active warps executed a fence."""
        if self.watch is not None:
            self.watch.fenced(self.warps_of(mask))

    def flag_accessed(self, mask: Mask | None, instruction: Instruction, *, stores: bool) -> None:
        """An atomic or an access with an order was made; threads may synchronise through it."""
        if self.watch is not None:
            self.watch.flag_accessed(self.warps_of(mask), instruction, stores=stores)

    def warps_of(self, mask: Mask | None) -> Array:
        """Warps with an active thread, bool of shape (1 or ctas, warps)."""
        if mask is None:
            return np.ones((1, self.warps_per_cta), np.bool_)
        return mask.bits() != 0

    @property
    def warp_of_lane(self) -> Array:
        """Warp in the batch of each thread in the batch."""
        if self._warp_of_lane is None:
            ctas = np.arange(self.ctas)[:, None] * self.warps_per_cta
            self._warp_of_lane = (ctas + self.warp_of_thread[None]).ravel()
        return self._warp_of_lane

    def full(self, value: Value, dtype: np.dtype[Any]) -> Array:
        """The value as an array of shape (ctas, threads)."""
        plain = value if value.dtype is dtype else value.view(dtype)
        if plain.shape == (self.ctas, self.threads):
            return plain
        return np.broadcast_to(plain, (self.ctas, self.threads))


def _filled(shape: tuple[int, ...], filling: Array) -> Array:
    if (filling == filling[0]).all():
        return np.full(shape, filling[0], np.uint8)
    memory = np.empty(shape, np.uint8)
    memory[...] = np.resize(filling, shape[-1])
    return memory


def _padded(size: int) -> int:
    return -(-size // ROW_BYTES) * ROW_BYTES


def warp_bits(array: Array) -> Array:
    """Booleans of shape (n, threads) → one 32-bit number a warp, lane 0 in bit 0; shape (n, warps)."""
    count, threads = array.shape
    warps = -(-threads // WARP)
    if threads % WARP:
        padded = np.zeros((count, warps * WARP), np.bool_)
        padded[:, :threads] = array
        array = padded
    packed = np.packbits(array, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


def _coordinates(index: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x = index % extents[0]
    y = index // extents[0] % extents[1]
    return x, y, index // (extents[0] * extents[1])

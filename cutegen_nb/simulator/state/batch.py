"""Threads of one batch of CTAs (:class:`Batch`): registers, shared and local memory, execution masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.state.global_memory import UNSIGNED, GlobalMemory

if TYPE_CHECKING:
    from cutegen_nb.simulator.checkers.findings import Findings
    from cutegen_nb.simulator.checkers.global_memory import GlobalWatch
    from cutegen_nb.simulator.checkers.local_memory import LocalWatch
    from cutegen_nb.simulator.checkers.shared_memory import SharedMemoryChecker
    from cutegen_nb.simulator.counters.counters import Tally
    from cutegen_nb.simulator.ops.sync.mbarrier_objects import Mbarriers
    from cutegen_nb.simulator.ptx.model import Instruction
    from cutegen_nb.simulator.state.observers import AccessObserver, LoopObserver
    from cutegen_nb.simulator.state.printf import Printed
    from cutegen_nb.simulator.state.tensor_memory import TensorMemory

WARP = 32
"""Threads in a warp."""
POISON: Array = np.full(1, 0xFF, np.uint8)
"""Byte that fills shared and local memory at first, 0xFF: NaN as a float, −1 as an integer."""
ROW_BYTES = 16
"""Bytes to which rows of shared and local memory are padded, so that they can be viewed in any width."""


class Mask:
    """Execution mask: the active threads, a boolean array of shape (1, threads) or (ctas, threads)."""

    __slots__ = ("_bits", "_index", "_negative", "_warps", "array", "lanes", "threads")

    def __init__(self, lanes: Batch, array: Array) -> None:
        if array.shape[1] != lanes.threads:
            array = np.broadcast_to(array, (array.shape[0], lanes.threads))
        self.array = array
        self.lanes = lanes
        repeat = lanes.ctas if array.shape[0] == 1 else 1
        self.threads = int(np.count_nonzero(array)) * repeat
        """Number of active threads in the batch."""
        self._negative: dict[int, Array] = {}
        self._index: Array | None = None
        self._warps = -1
        self._bits: Array | None = None

    def bits(self) -> Array:
        """Active lanes of each warp as a 32-bit number, lane 0 in bit 0; shape (1 or ctas, warps)."""
        if self._bits is None:
            self._bits = warp_bits(self.array)
        return self._bits

    @property
    def warps(self) -> int:
        """Number of warps in the batch with an active thread."""
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
        """Return ``new`` where active and ``old`` elsewhere, for values of ``width`` bytes.

        Bit arithmetic: a few times faster than ``np.where``.
        """
        unsigned = UNSIGNED[width]
        # -1 has every bit set where the lane is active, 0 elsewhere: old ^ ((old ^ new) & -active).
        negative = self._negative.get(width)
        if negative is None:
            negative = np.negative(self.array.astype(unsigned))
            self._negative[width] = negative
        before = old if old.dtype is unsigned else old.view(unsigned)
        after = new if new.dtype is unsigned else new.view(unsigned)
        return np.bitwise_xor(before, np.bitwise_and(np.bitwise_xor(before, after), negative))

    def narrowed(self, predicate: Array) -> Mask:
        """Mask of the active threads for which the predicate holds too."""
        return Mask(self.lanes, np.logical_and(self.array, predicate))


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSetting:
    """Settings and results that all batches of a launch share."""

    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    cluster: tuple[int, int, int]
    """CTAs of a cluster in x, y, z."""
    memory: GlobalMemory
    """Global memory."""
    parameters: bytes
    """Kernel parameters, each at its offset in parameter memory."""
    dynamic_smem_bytes: int
    """Dynamic shared memory of a CTA, in bytes."""
    shared_bytes: int
    """Static and dynamic shared memory of a CTA, in bytes."""
    local_bytes: int
    """Local memory of a thread, in bytes."""
    tally: Tally
    """Counts of the launch."""
    stop_at: float
    """Deadline of the launch, a reading of ``time.monotonic``."""
    findings: Findings
    """Findings of the checkers."""
    printed: Printed
    """Output of ``printf``."""
    sms: int
    """SMs of the device: the value of ``%nsmid``; ``%smid`` is a CTA's number modulo this."""
    filling: Array
    """Initial bytes of shared and local memory, repeated; uint8, their number a power of two up to 16."""


class Batch:
    """State of one batch: CTAs of ``threads`` threads that run side by side.

    A lane is an index into the flattened batch, ``cta × threads + thread``.
    """

    def __init__(  # noqa: PLR0915 - a batch has this many parts
        self, setting: LaunchSetting, registers: list[Value], cta_numbers: Array
    ) -> None:
        self.registers = registers
        """Value of each register of the program, by slot."""
        self.cta_numbers = cta_numbers
        """Linear number of each CTA in the grid, x fastest. Ascending, with gaps if only some CTAs run; in
        clusters of several CTAs by cluster and rank."""
        self.ctas = ctas = len(cta_numbers)
        self.grid = setting.grid
        self.block = setting.block
        self.cluster = setting.cluster
        self.cluster_ctas = math.prod(setting.cluster)
        """CTAs of a cluster. Those of one cluster are neighbours in the batch, in order of rank."""
        self.sms = setting.sms
        self.memory = setting.memory
        self.parameters = setting.parameters
        self.tally = setting.tally
        self.stop_at = setting.stop_at
        self.findings = setting.findings
        self.printed = setting.printed
        self.watch: SharedMemoryChecker | None = None
        """Checker of shared memory; None without shared memory or in a run that is not checked."""
        self.local_watch: LocalWatch | None = None
        """Checker of local memory; None without local memory or in a run that is not checked."""
        self.global_watch: GlobalWatch | None = None
        """Checker of global memory for the whole launch; None in a run that is not checked."""
        self.loops: LoopObserver | None = None
        """Observer of loops, which may skip iterations; None in a run that executes every iteration."""
        self.accesses: AccessObserver | None = None
        """Observer of global loads and stores; None in a run that logs none."""
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.warps_per_cta = -(-self.threads // WARP)
        self.warps = ctas * self.warps_per_cta
        self.lane_count = ctas * self.threads
        self.dynamic_smem_bytes = setting.dynamic_smem_bytes
        """Dynamic shared memory of a CTA in bytes, as the launch asked for it."""
        self.shared_limit = setting.shared_bytes
        """Bytes of shared memory that a CTA may use."""
        self.local_limit = setting.local_bytes
        """Bytes of local memory that a thread may use."""
        self.shared: Array = _filled((ctas, _padded(setting.shared_bytes)), setting.filling)
        """Shared memory, uint8 of one row per CTA. Its initial contents are undefined on a GPU."""
        self.local: Array = _filled((ctas, self.threads, _padded(setting.local_bytes)), setting.filling)
        """Local memory, uint8 of shape (ctas, threads, bytes)."""
        self.async_groups: Array | None = None
        """Number of ``cp.async`` groups that each thread has committed; None before the first copy."""
        self.async_copies: list[Any] = []
        """Copies begun by ``cp.async`` that have not arrived yet."""
        self.bulk_loads = 0
        """Destinations of bulk loads that have not arrived yet."""
        self.bulk_groups: Array | None = None
        """Number of bulk groups that each thread has committed; None before the first bulk store."""
        self.bulk_stores: list[Any] = []
        """Bulk stores and reductions that are not complete yet."""
        self.products: list[Any] = []
        """``wgmma`` products that no wait has covered yet."""
        self.product_groups: Array | None = None
        """Number of ``wgmma`` groups that each warp has committed; None before the first product."""
        self.tensor: TensorMemory | None = None
        """Tensor memory; None before its first use."""
        self.tensor_allocation: Instruction | None = None
        """Instruction that allocated tensor memory last; None before the first."""
        self.tensor_work: list[Any] = []
        """Products and copies into tensor memory that are not complete yet, in the order of their issue."""
        self.tensor_issued = 0
        """Number of such instructions executed so far."""
        self.filling = setting.filling
        """Initial bytes of shared, local and tensor memory, repeated."""
        self.sums: dict[tuple[int, ...], Any] = {}
        """Accumulators of matrix products: ids of the registers that are slices of one array → that array
        with those registers."""
        self.mbarriers: Mbarriers | None = None
        """State of mbarriers besides their words in shared memory; None before the first."""
        self.arrivals: dict[int, Array] = {}
        """Threads that arrived by ``bar.arrive``, by barrier number; counts of shape (1 or ctas, 1)."""
        self.cluster_arrivals: Array | None = None
        """Arrivals of each thread at its cluster's barrier; None before the first."""
        self.cluster_waits: Array | None = None
        """Waits of each thread at its cluster's barrier that are over; None before the first."""
        self.take_cluster: Callable[[], int | None] | None = None
        """Function that takes a cluster which has not started from the launch and returns the number of its
        first CTA, None where none is left; None in a launch whose clusters take none."""
        self.earlier = 0
        """Number of CTAs of the launch that ended before this batch."""
        self.later = 0
        """Number of CTAs of the launch that run after this batch."""
        self.clock = 0
        """Value of ``%clock``: instructions of the segments executed so far, plus one per reading."""
        thread = np.arange(self.threads)
        self.warp_of_thread: Array = thread // WARP
        """Warp of each thread in its CTA."""
        self.lane_of_thread: Array = thread % WARP
        """Lane of each thread in its warp."""
        self._warp_of_lane: Array | None = None

    def place_of(self, lane: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """``threadIdx`` and ``blockIdx`` of a lane, each as (x, y, z)."""
        cta, thread = divmod(lane, self.threads)
        return coordinates(thread, self.block), coordinates(int(self.cta_numbers[cta]), self.grid)

    def released(self, mask: Mask | None, key: Hashable) -> None:
        """Tell the race checker of a release on ``key`` by the active warps, such as an mbarrier arrival."""
        if self.watch is not None:
            self.watch.released(self.warps_of(mask), key)

    def acquired(self, mask: Mask | None, key: Hashable) -> None:
        """Tell the race checker of an acquire on ``key`` by the active warps, such as a successful wait."""
        if self.watch is not None:
            self.watch.acquired(self.warps_of(mask), key)

    def fenced(self, mask: Mask | None, *, proxy: bool = False) -> None:
        """Tell the race checker that the active warps executed a fence, or one for the asynchronous proxy."""
        if self.watch is not None:
            self.watch.fenced(self.warps_of(mask), proxy=proxy)

    def flag_accessed(self, mask: Mask | None, instruction: Instruction, *, stores: bool) -> None:
        """Tell the race checker of an atomic or an ordered access, through which threads may synchronise."""
        if self.watch is not None:
            self.watch.flag_accessed(self.warps_of(mask), instruction, stores=stores)

    def warps_of(self, mask: Mask | None) -> Array:
        """Warps with an active thread, bool of shape (1 or ctas, warps)."""
        if mask is None:
            return np.ones((1, self.warps_per_cta), np.bool_)
        return mask.bits() != 0

    @property
    def counts_only(self) -> bool:
        """True in a sample, whose values nobody compares: tensor cores then leave their sums as they were."""
        return self.loops is not None

    @property
    def warp_of_lane(self) -> Array:
        """Number in the batch of each lane's warp, shape (ctas × threads,)."""
        if self._warp_of_lane is None:
            ctas = np.arange(self.ctas)[:, None] * self.warps_per_cta
            self._warp_of_lane = (ctas + self.warp_of_thread[None]).ravel()
        return self._warp_of_lane

    def full(self, value: Value, dtype: np.dtype[Any]) -> Array:
        """Return a register's value as an array of shape (ctas, threads)."""
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
    """Pack booleans of shape (n, threads) into one uint32 per warp, lane 0 in bit 0; shape (n, warps)."""
    count, threads = array.shape
    warps = -(-threads // WARP)
    if threads % WARP:
        padded = np.zeros((count, warps * WARP), np.bool_)
        padded[:, :threads] = array
        array = padded
    packed = np.packbits(array, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view(np.uint32)


def coordinates(index: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    """Coordinates (x, y, z) of a linear number, x fastest."""
    x = index % extents[0]
    y = index // extents[0] % extents[1]
    return x, y, index // (extents[0] * extents[1])

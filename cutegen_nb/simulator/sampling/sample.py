"""Sample of a launch: some CTAs of the real grid run without checkers, and their counts are extrapolated.

CTAs at the edges of the grid and inside it are sampled separately, because the number of each is known. The
sample grows while groups of CTAs differ much and time is left. Iterations of long loops are counted without
being run, and tensor-core instructions without computing their sums.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from cutegen_nb.core.estimate import LaunchSample, Reuse
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, LaunchProfile
from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.counters.counters import profile_of
from cutegen_nb.simulator.machine.machine import packed, ready
from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.machine.schedule import run_batch
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.faults import OutOfTime
from cutegen_nb.simulator.ptx.model import Module
from cutegen_nb.simulator.sampling.access_log import AccessLog, CtaLog
from cutegen_nb.simulator.sampling.counts import CountReader, Counts, SampleTally
from cutegen_nb.simulator.sampling.load_rounds import rounds_by_segment
from cutegen_nb.simulator.sampling.loop_skipper import LoopSkipper
from cutegen_nb.simulator.sampling.open_loops import BatchCut
from cutegen_nb.simulator.sampling.reuse import CtaReuse, reuse_of, sharing_of
from cutegen_nb.simulator.sampling.strata import Stratum, cluster_of, clusters_of, ctas_of, neighbours, strata
from cutegen_nb.simulator.sampling.unwritten import fill_unwritten
from cutegen_nb.simulator.state.batch import POISON, Batch, LaunchSetting
from cutegen_nb.simulator.state.device import DeviceFacts, sm_count
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch
from cutegen_nb.simulator.state.printf import Printed
from cutegen_nb.simulator.state.special_registers import special_value

_GROUP = 4
"""Clusters that run side by side at first."""
_LARGE_GROUP = 16
"""Clusters that run side by side where CTAs differ."""
_MOST_GROUPS = 8
"""Large groups drawn from a stratum at most."""
_FIRST_LARGE = 2
"""Large groups drawn from a stratum at least: a single group gives no estimate of the error."""
_SMALL_GRID = 1 << 13
"""Threads of a grid that runs whole, as one batch."""
_SMALL_STRATUM = 0.02
"""Share of the grid up to which a stratum gets a single group: its error hardly matters."""
_ERROR = 0.01
"""Standard error, as a share of the warp instructions, above which the sample grows."""
_FOR_NEIGHBOURS = 0.8
"""Share of the time in which neighbouring CTAs may run: no other batch shows which sectors they share."""
_UNKNOWN_ERROR = 0.05
"""Standard error assumed for one batch or a cut one: CTAs of a persistent kernel differ by a tile."""
_MOST_RESIDENT = 1 << 18
"""Most threads of a cooperative launch, which runs whole: those of 128 SMs."""
_SEED = 20260923
"""Seed of the draws, so that a sample can be repeated."""


class SampleEnded(Exception):
    """Reason for which a launch has no sample, in one or two sentences."""


def sample_launch(  # noqa: PLR0913 - a launch has this many parts
    module: Module,
    kernel_name: str,
    launch: Launch,
    parameters: tuple[bytes, ...],
    memory: GlobalMemory,
    *,
    stop_at: float = math.inf,
    device: DeviceFacts | None = None,
) -> LaunchSample:
    """Run a sample of a launch's CTAs, with the checkers off, and extrapolate its counts to the whole grid.

    Nothing is done per byte of memory, so allocations may be virtual and of any size. Values that a skipped
    loop accumulates are meaningless, and so is what the kernel stores of them.

    Args:
        module: parsed PTX.
        kernel_name: one of its kernels.
        launch: grid, block, dynamic shared memory, cluster.
        parameters: bytes of each kernel parameter, in order.
        memory: global memory of the kernel, read and written in place.
        stop_at: deadline, as a reading of ``time.monotonic``.
        device: device whose limits hold; by default those of the kernel's architecture.

    Raises:
        SampleEnded: the deadline came first, or a cooperative launch is too large to run whole.
        SimulatorFault: the launch cannot go on, as in ``machine.run``.
    """
    if launch.cooperative and launch.ctas * launch.threads > _MOST_RESIDENT:
        raise SampleEnded(
            f"Kernel {kernel_name} is a cooperative launch of {launch.ctas} CTAs, which wait for one "
            f"another: it cannot be sampled, and {launch.ctas * launch.threads:,} threads are too many to "
            "run at once."
        )
    program = ready(module, kernel_name, launch, memory, device)
    sms = sm_count(program.kernel.architecture) if device is None else device.sm_count
    memory.begin(keeping=False)
    sampler = _Sampler(program, launch, packed(program.kernel, parameters), memory, stop_at, sms)
    try:
        with np.errstate(all="ignore"):
            sampler.draw()
            sample = sampler.result()
            if sample.profile.ctas_run is not None:
                fill_unwritten(memory)
            return sample
    except OutOfTime as late:
        raise SampleEnded(f"The sample of kernel {kernel_name} was not finished in time.") from late
    finally:
        for array, _ in program.own_memory:
            memory.forget(int(array.ctypes.data))


@dataclass(frozen=True, slots=True)
class _Group:
    """Counts of one batch of a stratum."""

    clusters: int
    """Clusters that ran."""
    counts: Counts
    """Their counts."""
    instructions: float
    """Warp instructions among them."""
    skipped: float
    """Warp instructions among these that were counted and not run."""

    @property
    def each(self) -> float:
        """Warp instructions of a cluster."""
        return self.instructions / self.clusters


@dataclass(slots=True)
class _Drawn:
    """Groups drawn from one stratum."""

    stratum: Stratum
    """Part of the grid."""
    groups: list[_Group] = field(default_factory=list)
    """Batches that ran."""
    others: int = 0
    """Clusters of strata that were not sampled; they are counted as if they were clusters of this stratum."""

    @property
    def clusters(self) -> int:
        """Clusters that ran."""
        return sum(one.clusters for one in self.groups)

    @property
    def scale(self) -> float:
        """Number of clusters that each cluster that ran represents."""
        return self.size / self.clusters

    @property
    def size(self) -> int:
        """Number of clusters that the sample represents: those of the stratum and `others`."""
        return self.stratum.size + self.others

    def variance(self) -> float:
        """Variance of the stratum's extrapolated warp instructions; 0 where all ran or it is not known."""
        if self.clusters >= self.size or len(self.groups) < 2:  # noqa: PLR2004 - a variance needs two
            return 0.0
        means = [one.each for one in self.groups]
        return float(np.var(means, ddof=1)) / len(means) * self.size**2


class _Sampler:
    """Sample of one launch."""

    def __init__(  # noqa: PLR0913, PLR0917 - a launch has this many parts
        self,
        program: Program,
        launch: Launch,
        parameters: bytes,
        memory: GlobalMemory,
        stop_at: float,
        sms: int,
    ) -> None:
        self._program, self._launch, self._memory = program, launch, memory
        self._began, self._stop_at = time.monotonic(), stop_at
        self._reader = CountReader(program)
        self._skipper = LoopSkipper(program, self._reader)
        self._tally = SampleTally(len(program.segments))
        self._setting = LaunchSetting(
            grid=launch.grid, block=launch.block, cluster=launch.cluster, memory=memory,
            parameters=parameters, dynamic_smem_bytes=launch.dynamic_smem_bytes,
            shared_bytes=program.dynamic_smem_offset + launch.dynamic_smem_bytes,
            local_bytes=program.local_bytes, tally=self._tally, stop_at=stop_at, findings=Findings(),
            filling=POISON, printed=Printed(), sms=sms,
        )  # fmt: skip
        self._chance = np.random.default_rng(_SEED)
        self._drawn: list[_Drawn] = []
        self._logs: list[CtaLog] = []
        self._near: dict[str, CtaLog] = {}
        self._longest = 0.0
        self._ctas = 0
        self._slowest_s = 0.0
        """Seconds of the slowest batch so far."""
        self._least_error = 0.0
        self._stretch = 1.0
        """Largest factor by which the counts of a batch that was cut were multiplied."""

    def draw(self) -> None:
        """Run the sample; it grows while its error is large and half of the time is left."""
        whole = Stratum(first=(0, 0, 0), extents=clusters_of(self._launch))
        if self._launch.cooperative or self._launch.ctas * self._launch.threads <= _SMALL_GRID:
            self._drawn = [_Drawn(whole, [self._group(whole.places(), base=self._launch.ctas // 2)])]
            return
        self._drawn = [_Drawn(one) for one in strata(self._launch)]
        largest = max(self._drawn, key=lambda one: one.stratum.size)
        self._draw_first(largest, whole.size, logs=True)
        for drawn in self._drawn:
            if drawn is not largest and (
                drawn.stratum.size > _SMALL_STRATUM * whole.size or self._affords(1)
            ):
                self._draw_first(drawn, whole.size, logs=False)
        largest.others = sum(one.stratum.size for one in self._drawn if not one.groups)
        self._drawn = [one for one in self._drawn if one.groups]

    def _draw_first(self, drawn: _Drawn, clusters: int, *, logs: bool) -> None:
        """Draw from a stratum until its error is small; the largest also gets a block of neighbours."""
        stratum = drawn.stratum
        places = stratum.draw(self._chance, _GROUP) if stratum.size > _GROUP else stratum.places()
        drawn.groups.append(self._group([stratum.first, *places[1:]]))
        known = [drawn.groups[0].each]
        block = None
        if logs and not self._affords(1, _FOR_NEIGHBOURS):
            self._least_error = _UNKNOWN_ERROR if drawn.clusters < stratum.size else 0.0
        elif logs:
            block = self._block(places[-1])
            known += [block.each] if drawn.clusters < stratum.size else []
        elif drawn.clusters < stratum.size and stratum.size > _SMALL_STRATUM * clusters:
            drawn.groups.append(self._group(stratum.draw(self._chance, _GROUP)))
            known.append(drawn.groups[-1].each)
        if len(set(known)) > 1 and self._affords(_FIRST_LARGE):
            self._grow(drawn)
        elif len(set(known)) > 1 and block is not None:
            drawn.groups.append(block)

    def _grow(self, drawn: _Drawn) -> None:
        """Draw large groups from a stratum whose CTAs differ, or run all of it if it is small."""
        stratum = drawn.stratum
        drawn.groups.clear()
        if stratum.size <= _LARGE_GROUP * _MOST_GROUPS // 2:
            places = stratum.places()
            for first in range(0, len(places), _LARGE_GROUP):
                drawn.groups.append(self._group(places[first : first + _LARGE_GROUP]))
            return
        while len(drawn.groups) < _MOST_GROUPS:
            drawn.groups.append(self._group(stratum.draw(self._chance, _LARGE_GROUP)))
            if len(drawn.groups) >= _FIRST_LARGE and (not self._affords(1) or self._error() <= _ERROR):
                break

    def _affords(self, batches: int, share: float = 0.5) -> bool:
        """Return whether more batches, each as slow as the slowest, end within a share of the time."""
        end = self._began + share * (self._stop_at - self._began)
        return time.monotonic() + batches * self._slowest_s <= end

    def _block(self, place: tuple[int, int, int]) -> _Group:
        """Run a CTA and the next ones in x, y and z, and log what they load."""
        base = int(ctas_of(self._launch, [place])[0])
        near = neighbours(self._launch, base)
        return self._group(
            sorted({place, *(cluster_of(self._launch, one) for one in near.values())}), base=base
        )

    def _group(self, places: list[tuple[int, int, int]], *, base: int | None = None) -> _Group:
        """Run clusters side by side; log one CTA of the first group, or ``base`` and the CTAs next to it."""
        numbers = ctas_of(self._launch, places)
        middle = int(numbers[len(numbers) // 2])
        logged = {middle: CtaLog(middle)} if not self._logs else {}
        if base is not None:
            self._near = {axis: CtaLog(cta) for axis, cta in neighbours(self._launch, base).items()}
            logged = {one.cta: one for one in (CtaLog(base), *self._near.values())}
            self._logs.insert(0, logged[base])
        else:
            self._logs.extend(logged.values())
        self._ctas += len(numbers)
        began = time.monotonic()
        counts, skipped = self._run(
            numbers, {at: logged[int(cta)] for at, cta in enumerate(numbers) if int(cta) in logged}
        )
        self._slowest_s = max(self._slowest_s, time.monotonic() - began)
        self._longest = max(self._longest, counts.clock)
        return _Group(len(places), counts, self._reader.instructions(counts), skipped)

    def _run(self, numbers: Array, logged: dict[int, CtaLog]) -> tuple[Counts, float]:
        """Run CTAs as one batch; return their counts, and the warp instructions that were skipped."""
        before = self._reader.read(self._tally)
        lanes = Batch(self._setting, list(self._program.lowering.initial), numbers)
        log = AccessLog(logged) if logged else None
        # A batch may use half of the remaining time; the other half is for the batches after it.
        now = time.monotonic()
        self._skipper.begin(log, now + (self._stop_at - now) / 2)
        lanes.loops, lanes.accesses = self._skipper, log
        for name, slot in self._program.lowering.specials():
            lanes.registers[slot] = special_value(name, lanes)
        try:
            run_batch(self._program, lanes)
        except BatchCut as cut:
            ran = self._reader.read(self._tally, lanes.clock) - before
            counts = self._reader.stretched(ran, cut.factors)
            more = self._reader.instructions(counts) - self._reader.instructions(ran)
            self._stretch = max(self._stretch, float(cut.factors.max()))
            self._least_error = _UNKNOWN_ERROR
            return counts, self._skipper.skipped + more
        return self._reader.read(self._tally, lanes.clock) - before, self._skipper.skipped

    def _error(self) -> float:
        total = sum(
            one.instructions * drawn.scale for drawn in self._drawn for one in drawn.groups
        )  # fmt: skip
        found = math.sqrt(sum(map(_Drawn.variance, self._drawn))) / total if total else 0.0
        return max(found, self._least_error)

    def result(self) -> LaunchSample:
        """Extrapolate what was counted to the whole grid."""
        weighted = [(one, drawn.scale) for drawn in self._drawn for one in drawn.groups]
        counts, skipped = weighted[0][0].counts.times(0.0), 0.0
        for one, scale in weighted:
            counts = counts + one.counts.times(scale)
            skipped += one.skipped * scale
        self._reader.write(counts, self._tally)
        profile = self._profile()
        reuses = [reuse_of(one) for one in self._logs]
        rounds = np.rint(counts.warps) @ np.array(rounds_by_segment(self._program), np.int64)
        first, again = _scaled(reuses, profile.counters.gmem_load_sectors)
        loads, stores = self._reader.scattered_sectors()
        return LaunchSample(
            profile=self._with_distinct(profile, reuses),
            ctas=self._ctas,
            error_fraction=self._error(),
            skipped_fraction=skipped / max(1.0, self._reader.instructions(counts)),
            longest_warp_instructions=round(self._longest),
            load_rounds=int(rounds),
            scattered_load_sectors=loads,
            scattered_store_sectors=stores,
            first_touch_sectors=first,
            reuses=again,
            sharing=sharing_of(reuses[0], self._near),
        )

    def _profile(self) -> LaunchProfile:
        launch, kernel = self._launch, self._program.kernel
        whole = self._stretch == 1 and all(one.clusters >= one.size for one in self._drawn)
        empty = LaunchProfile(
            kernel=kernel.name, grid=launch.grid, block=launch.block,
            dynamic_smem_bytes=launch.dynamic_smem_bytes, static_smem_bytes=kernel.static_smem_bytes,
            counters=Counters(), ctas_run=None if whole else self._ctas,
        )  # fmt: skip
        return profile_of(empty, self._tally, self._program.tallied())

    def _with_distinct(self, profile: LaunchProfile, reuses: list[CtaReuse]) -> LaunchProfile:
        """Profile with the distinct sectors of the launch.

        Of each allocation these are at most what the CTAs touch each for itself, and at most the range from
        the first to the last sector that any sampled CTA touched; the corners of the grid are among them.
        """
        allocations = self._memory.allocations
        starts = np.array([one.address for one in allocations], np.int64) // SECTOR_BYTES
        own = np.zeros(len(allocations))
        loaded = sum(one.total for one in reuses)
        by_ctas = self._stretch * self._launch.ctas / max(1, len(reuses))
        by_loads = profile.counters.gmem_load_sectors / loaded if loaded else by_ctas
        for one in reuses:
            at = np.maximum(np.searchsorted(starts, one.fresh, side="right") - 1, 0)
            weights = one.fresh_weights * np.where(one.fresh_loads, by_loads, by_ctas)
            own += np.bincount(at, weights=weights, minlength=len(allocations))
        extents = [self._tally.extent(one) for one in allocations]
        if self._stretch > 1:  # other CTAs and later turns touch the rest
            extents = [
                (one.end - one.address) // SECTOR_BYTES if extent else 0
                for one, extent in zip(allocations, extents, strict=True)
            ]
        # Atomics are not logged: where nothing else touches an allocation, each of their sectors counts.
        atomics = profile.counters.gmem_atomic_sectors
        distinct = sum(min(extent, round(each) or atomics) for extent, each in zip(extents, own, strict=True))
        return replace(profile, gmem_distinct_sectors=distinct)


def _scaled(reuses: list[CtaReuse], total: int) -> tuple[int, tuple[Reuse, ...]]:
    """Scale first touches and reuses of the sampled CTAs to a launch that loads ``total`` sectors."""
    logged = sum(one.total for one in reuses)
    scale = total / logged if logged else 0.0
    again: dict[int, float] = {}
    for one in reuses:
        for distance, sectors in one.again.items():
            again[distance] = again.get(distance, 0.0) + sectors
    found = tuple(
        Reuse(distance_bytes=distance, sectors=round(sectors * scale))
        for distance, sectors in sorted(again.items())
    )
    return round(sum(one.first for one in reuses) * scale), found

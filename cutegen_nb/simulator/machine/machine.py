"""SIMT simulator: runs one kernel launch over PTX, launch configuration and memory, and counts its work.

CTAs run in batches small enough for the cache. Within a batch one NumPy operation executes an instruction for
every thread. No result here is a time.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from functools import partial

import numpy as np

from cutegen_nb.core.profile import Counters, LaunchProfile
from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.checkers.global_memory import GlobalWatch
from cutegen_nb.simulator.checkers.local_memory import LocalWatch
from cutegen_nb.simulator.checkers.shared_memory import SharedMemoryChecker
from cutegen_nb.simulator.counters.counters import Tally, add_executions, profile_of
from cutegen_nb.simulator.machine.program import Program, program_of
from cutegen_nb.simulator.machine.rerun import FILLING, settle
from cutegen_nb.simulator.machine.schedule import run_batch
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, BadLaunch, mistake
from cutegen_nb.simulator.ptx.model import Kernel, Module
from cutegen_nb.simulator.state.batch import POISON, Batch, LaunchSetting
from cutegen_nb.simulator.state.clusters import by_cluster
from cutegen_nb.simulator.state.device import DeviceFacts, sm_count
from cutegen_nb.simulator.state.freed_memory import keep_freed_memory
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch, refusal
from cutegen_nb.simulator.state.printf import Printed
from cutegen_nb.simulator.state.special_registers import special_value

BATCH_LANES = 32_768
"""Most threads of a batch. A 32-bit register of them is 128 KiB, so an instruction stays in the L2 cache."""
_BATCH_BYTES = 256 << 20
"""Bytes of shared and local memory of a batch at most."""
_RUNNING_CLUSTERS = 2
"""Clusters of a batch of a kernel with ``clusterlaunchcontrol``, as if no more fitted the device."""
RERUN_SECONDS = 2.0
"""Seconds that a rerun of a launch may take beside ``RERUN_FACTOR``."""
RERUN_FACTOR = 8.0
"""Multiple of the first run's time that a rerun may take as well; at most half of the time left."""


def run(  # noqa: PLR0913 - a launch has this many parts
    module: Module,
    kernel_name: str,
    launch: Launch,
    parameters: tuple[bytes, ...],
    memory: GlobalMemory,
    *,
    stop_at: float = math.inf,
    max_ctas: int | None = None,
    findings: Findings | None = None,
    device: DeviceFacts | None = None,
    other_contents: bool = False,
    executed: dict[int, int] | None = None,
) -> LaunchProfile:
    """Run a kernel launch to its end.

    Args:
        module: parsed PTX.
        kernel_name: one of its kernels.
        launch: grid, block, dynamic shared memory, cluster.
        parameters: bytes of each kernel parameter, in order.
        memory: global memory of the kernel, read and written in place.
        stop_at: deadline, as a reading of ``time.monotonic``.
        max_ctas: number of CTAs of a larger grid to run; the others write nothing.
        findings: collects what checks find in a launch that goes on.
        device: device whose limits hold; by default those of the kernel's architecture.
        other_contents: True to fill shared and local memory at first with other bytes than usual.
        executed: receives the executions by warps of the instruction that begins in each line of the PTX.

    Returns:
        Counters and launch configuration of the kernel.

    Raises:
        SimulatorFault: the launch cannot go on; its attributes tell if that is the candidate's fault.
    """
    program = ready(module, kernel_name, launch, memory, device)
    kernel = program.kernel
    chosen = sampled_ctas(launch, max_ctas)
    tally = Tally(len(program.segments))
    found = Findings() if findings is None else findings
    sms = sm_count(kernel.architecture) if device is None else device.sm_count
    runner = _Runner(program, launch, packed(kernel, parameters), memory, stop_at, sms)
    memory.begin()
    try:
        with np.errstate(all="ignore"):
            runner.run(chosen, tally, found, FILLING if other_contents else POISON)
            profile = _profile(kernel, launch, chosen, tally, program)
            if executed is not None:
                add_executions(executed, tally, program.tallied())
            settle(found, memory, lambda filling, step: runner.again(chosen, filling, step))
    finally:
        _show(runner.printed)
        for array, _ in program.own_memory:
            memory.forget(int(array.ctypes.data))
    return profile


def ready(
    module: Module, kernel_name: str, launch: Launch, memory: GlobalMemory, device: DeviceFacts | None
) -> Program:
    """Check a launch and return its program, with the tallies cleared and its own variables in memory.

    Raises:
        BadLaunch: there is no such kernel, or a GPU refuses the launch.
    """
    kernel = module.kernels.get(kernel_name)
    if kernel is None:
        raise BadLaunch(
            f"The PTX has no kernel {kernel_name!r}; it has {', '.join(sorted(module.kernels)) or 'none'}."
        )
    _check(kernel, launch, device)
    keep_freed_memory()
    try:
        program = program_of(module, kernel)
    except SIMULATOR_DEFECTS as problem:
        raise mistake(None, problem) from problem
    for array, label in program.own_memory:
        memory.register_own(array, label)
    for segment in program.segments:
        for _, one in segment.instructions:
            one.clear()
    return program


def _show(printed: Printed) -> None:
    """Write ``printf`` output to stdout, as a GPU's driver does when the host waits for a launch."""
    if printed.parts:
        sys.stdout.write(printed.text())
        sys.stdout.flush()


def _profile(
    kernel: Kernel, launch: Launch, chosen: range | Array, tally: Tally, program: Program
) -> LaunchProfile:
    empty = LaunchProfile(
        kernel=kernel.name,
        grid=launch.grid,
        block=launch.block,
        dynamic_smem_bytes=launch.dynamic_smem_bytes,
        static_smem_bytes=kernel.static_smem_bytes,
        counters=Counters(),
        ctas_run=len(chosen) if len(chosen) < launch.ctas else None,
    )
    return profile_of(empty, tally, program.tallied())


def sampled_ctas(launch: Launch, most: int | None) -> range | Array:
    """Numbers of the CTAs to run: all of them, or at most ``most`` of a larger grid.

    The sample has the first, the last and evenly spaced CTAs, and so both edges and the inside of the grid.
    CTAs of a cluster or of a cooperative launch need one another, so such a grid always runs whole.
    """
    ctas = launch.ctas
    if most is None or most >= ctas or launch.cluster != (1, 1, 1) or launch.cooperative:
        return range(ctas)
    return np.unique(np.linspace(0, ctas - 1, max(most, 1)).round().astype(np.int64))


class _Runner:
    """Runner of a launch's batches, for the first run and reruns."""

    def __init__(  # noqa: PLR0913, PLR0917 - a launch has this many parts
        self,
        program: Program,
        launch: Launch,
        parameters: bytes,
        memory: GlobalMemory,
        stop_at: float,
        sms: int,
    ) -> None:
        self._program = program
        self._launch = launch
        self._parameters = parameters
        self._memory = memory
        self._stop_at = stop_at
        self._sms = sms
        self._seconds = 0.0
        self.printed = Printed()
        """Output of ``printf`` in the first run; reruns print nothing."""
        self._cell, self._local_cell = program.cells
        self._together = math.prod(launch.cluster)
        bytes_each = self._shared_bytes + program.local_bytes * launch.threads
        self._size = max(1, min(BATCH_LANES // launch.threads, _BATCH_BYTES // max(1, bytes_each)))
        if launch.cooperative:  # its CTAs may wait for one another, so all of them run side by side
            self._size = launch.ctas
        # A batch holds whole clusters, whose CTAs may wait for one another.
        self._size = max(self._together, self._size // self._together * self._together)
        self._cancels = program.takes_clusters
        if self._cancels:  # clusters that wait, for those that run to take their work
            self._size = min(self._size, _RUNNING_CLUSTERS * self._together)

    @property
    def _shared_bytes(self) -> int:
        return self._program.dynamic_smem_offset + self._launch.dynamic_smem_bytes

    def run(self, chosen: range | Array, tally: Tally, findings: Findings, filling: Array) -> None:
        """Run the launch with race and memory checkers."""
        began = time.monotonic()
        several = not self._program.orders_ctas and len(chosen) > 1
        watch = GlobalWatch(findings, several=several)
        self._program.doubt_registers(findings)
        self._run(chosen, self._size, self._setting(tally, findings, filling, printed=self.printed), watch)
        self._seconds = time.monotonic() - began

    def again(self, chosen: range | Array, filling: Array | None, step: int) -> None:
        """Run the launch once more without checkers.

        A ``step`` of 1 or -1 runs CTAs one by one, forwards or backwards; 0 in batches as before.
        """
        now = time.monotonic()
        seconds = min((self._stop_at - now) / 2, RERUN_SECONDS + RERUN_FACTOR * self._seconds)
        tally = Tally(len(self._program.segments))
        held = POISON if filling is None else filling
        setting = self._setting(tally, Findings(), held, now + seconds)
        size = self._together if step else self._size
        self._run(chosen[::step] if step else chosen, size, setting, None)

    def _setting(
        self,
        tally: Tally,
        findings: Findings,
        filling: Array,
        stop_at: float | None = None,
        *,
        printed: Printed | None = None,
    ) -> LaunchSetting:
        launch = self._launch
        return LaunchSetting(
            grid=launch.grid, block=launch.block, cluster=launch.cluster, memory=self._memory,
            parameters=self._parameters, dynamic_smem_bytes=launch.dynamic_smem_bytes,
            shared_bytes=self._shared_bytes,
            local_bytes=self._program.local_bytes, tally=tally,
            stop_at=self._stop_at if stop_at is None else stop_at, findings=findings, filling=filling,
            printed=Printed() if printed is None else printed, sms=self._sms,
        )  # fmt: skip

    def _run(
        self, chosen: range | Array, size: int, setting: LaunchSetting, global_watch: GlobalWatch | None
    ) -> None:
        program, clock, ended = self._program, 0, 0
        if self._together > 1:  # such a grid always runs whole
            clusters = by_cluster(self._launch.grid, self._launch.cluster)
            chosen = clusters[:: -1 if len(chosen) > 1 and chosen[0] > chosen[1] else 1].ravel()
        left = np.asarray(chosen, np.int64)
        while len(left):
            numbers, left = left[:size], left[size:]
            lanes = Batch(setting, program.registers(setting.filling), numbers)
            lanes.global_watch, lanes.clock = global_watch, clock
            lanes.earlier, lanes.later = ended, len(left)
            if self._cancels:
                waiting = deque(left.reshape(-1, self._together).tolist())
                lanes.take_cluster = partial(_taken, waiting)
            if global_watch is not None and setting.shared_bytes:
                lanes.watch = SharedMemoryChecker(
                    shared_bytes=lanes.shared.shape[1], cell=self._cell, warps=lanes.warps_per_cta,
                    findings=setting.findings,
                )  # fmt: skip
            if global_watch is not None and setting.local_bytes:
                lanes.local_watch = LocalWatch(
                    local_bytes=lanes.local.shape[2], cell=self._local_cell, findings=setting.findings
                )
            for name, slot in program.lowering.specials():
                lanes.registers[slot] = special_value(name, lanes)
            run_batch(program, lanes)
            clock, ended = lanes.clock, ended + len(numbers)
            if self._cancels:
                left = np.array(list(waiting), np.int64).reshape(-1)


def _taken(waiting: deque[list[int]]) -> int | None:
    """Take the first cluster that waits and return the number of its first CTA; None for none."""
    return waiting.popleft()[0] if waiting else None


def _check(kernel: Kernel, launch: Launch, device: DeviceFacts | None) -> None:
    refused = refusal(kernel, launch, device)
    if refused is not None:
        raise BadLaunch(refused.message)
    if kernel.required_threads is not None and kernel.required_threads != launch.block:
        raise BadLaunch(
            f"Kernel {kernel.name} was compiled for blocks of {kernel.required_threads}, launched with "
            f"{launch.block}. Launch it as it was compiled."
        )


def packed(kernel: Kernel, parameters: tuple[bytes, ...]) -> bytes:
    """Parameter buffer of a kernel. Raises BadLaunch if the number or a size of the parameters differs."""
    if len(parameters) != len(kernel.parameters):
        raise BadLaunch(
            f"Kernel {kernel.name} takes {len(kernel.parameters)} parameters, {len(parameters)} were given."
        )
    total = max((one.offset_bytes + one.size_bytes for one in kernel.parameters), default=0)
    data = bytearray(total)
    for one, given in zip(kernel.parameters, parameters, strict=True):
        if len(given) != one.size_bytes:
            raise BadLaunch(
                f"Kernel {kernel.name}: parameter {one.name} has {one.size_bytes} bytes, {len(given)} given."
            )
        data[one.offset_bytes : one.offset_bytes + one.size_bytes] = given
    return bytes(data)

"""The SIMT machine: runs one kernel launch over PTX, launch configuration and memory, and counts what it did.

CTAs run in batches small enough for the cache; within a batch one NumPy operation executes an instruction for
every thread. Nothing here is a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cutegen_nb.core.profile import Counters, LaunchProfile
from cutegen_nb.simulator.counters import Tally, profile_of
from cutegen_nb.simulator.faults import MISTAKES, BadLaunch, mistake
from cutegen_nb.simulator.lanes import Lanes, Setting
from cutegen_nb.simulator.memory import GlobalMemory
from cutegen_nb.simulator.program import Program, program_of
from cutegen_nb.simulator.ptx_model import Kernel, Module
from cutegen_nb.simulator.schedule import run_batch
from cutegen_nb.simulator.special_registers import special_value
from cutegen_nb.simulator.values import Array

BATCH_LANES = 32_768
"""Threads of a batch: a 32-bit register of them is 128 KiB, so an instruction stays in the L2 cache."""
_BATCH_BYTES = 256 << 20
"""Shared and local memory of a batch at most."""
MAX_THREADS = 1024
"""Threads of a CTA at most (CUDA C++ Programming Guide, "Technical Specifications")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a kernel is launched."""

    grid: tuple[int, int, int]
    """CTAs in x, y, z."""
    block: tuple[int, int, int]
    """Threads in x, y, z."""
    dynamic_smem_bytes: int
    """Dynamic shared memory of a CTA."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    """CTAs of a cluster in x, y, z."""


def run(  # noqa: PLR0913 - a launch has this many parts
    module: Module,
    kernel_name: str,
    launch: Launch,
    parameters: tuple[bytes, ...],
    memory: GlobalMemory,
    *,
    stop_at: float = math.inf,
    max_ctas: int | None = None,
) -> LaunchProfile:
    """Run a launch to its end.

    Args:
        module: parsed PTX.
        kernel_name: one of its kernels.
        launch: grid, block, dynamic shared memory, cluster.
        parameters: bytes of each kernel parameter, in order.
        memory: what the kernel may touch; it is read and written in place.
        stop_at: reading of ``time.monotonic`` at which the launch is given up.
        max_ctas: how many CTAs of a larger grid to run; what the others would have written stays unwritten.

    Raises:
        SimulatorFault: the launch cannot go on; the fault says whose fault that is.
    """
    kernel = module.kernels.get(kernel_name)
    if kernel is None:
        raise BadLaunch(
            f"The PTX has no kernel {kernel_name!r}; it has {', '.join(sorted(module.kernels)) or 'none'}."
        )
    _check(kernel, launch)
    try:
        program = program_of(module, kernel)
    except MISTAKES as problem:
        raise mistake(None, problem) from problem
    for array, label in program.own_memory:
        memory.register_own(array, label)
    chosen = sampled_ctas(launch, max_ctas)
    tally = Tally(len(program.segments))
    for segment in program.segments:
        for _, one in segment.instructions:
            one.clear()
    try:
        with np.errstate(all="ignore"):
            _run_batches(program, launch, chosen, _packed(kernel, parameters), memory, tally, stop_at)
    finally:
        for array, _ in program.own_memory:
            memory.forget(int(array.ctypes.data))
    empty = LaunchProfile(
        kernel=kernel_name,
        grid=launch.grid,
        block=launch.block,
        dynamic_smem_bytes=launch.dynamic_smem_bytes,
        static_smem_bytes=kernel.static_smem_bytes,
        counters=Counters(),
        ctas_run=len(chosen) if len(chosen) < _ctas(launch) else None,
    )
    return profile_of(empty, tally, program.tallied())


def sampled_ctas(launch: Launch, most: int | None) -> range | Array:
    """Numbers of the CTAs to run: all of them, or ``most`` of a larger grid.

    The first, the last and evenly spaced ones between, where edges and the bulk of a grid are seen alike.
    CTAs of a cluster need one another, so a grid of clusters always runs whole.
    """
    ctas = _ctas(launch)
    if most is None or most >= ctas or launch.cluster != (1, 1, 1):
        return range(ctas)
    return np.unique(np.linspace(0, ctas - 1, max(most, 1)).round().astype(np.int64))


def _ctas(launch: Launch) -> int:
    return launch.grid[0] * launch.grid[1] * launch.grid[2]


def _run_batches(  # noqa: PLR0913, PLR0917 - once, from run
    program: Program,
    launch: Launch,
    chosen: range | Array,
    parameters: bytes,
    memory: GlobalMemory,
    tally: Tally,
    stop_at: float,
) -> None:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    setting = Setting(
        grid=launch.grid,
        block=launch.block,
        cluster=launch.cluster,
        memory=memory,
        parameters=parameters,
        shared_bytes=program.dynamic_smem_offset + launch.dynamic_smem_bytes,
        local_bytes=program.local_bytes,
        tally=tally,
        stop_at=stop_at,
    )
    room = max(1, _BATCH_BYTES // max(1, setting.shared_bytes + program.local_bytes * threads))
    size = max(1, min(BATCH_LANES // threads, room))
    for first in range(0, len(chosen), size):
        numbers = np.asarray(chosen[first : first + size], np.int64)
        lanes = Lanes(setting, list(program.lowering.initial), numbers)
        for name, slot in program.lowering.specials():
            lanes.registers[slot] = special_value(name, lanes)
        run_batch(program, lanes)


def _check(kernel: Kernel, launch: Launch) -> None:
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    if min(*launch.grid, *launch.block) < 1:
        raise BadLaunch(
            f"Kernel {kernel.name}: grid {launch.grid} and block {launch.block} must have no zero; a GPU "
            "refuses such a launch. Skip the launch when there is nothing to do."
        )
    if threads > MAX_THREADS:
        raise BadLaunch(
            f"Kernel {kernel.name}: {threads} threads in a CTA; a GPU allows {MAX_THREADS}. Use fewer."
        )
    if kernel.required_threads is not None and kernel.required_threads != launch.block:
        raise BadLaunch(
            f"Kernel {kernel.name} was compiled for blocks of {kernel.required_threads}, launched with "
            f"{launch.block}. Launch it as it was compiled."
        )


def _packed(kernel: Kernel, parameters: tuple[bytes, ...]) -> bytes:
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

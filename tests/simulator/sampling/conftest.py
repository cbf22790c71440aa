"""Launches a kernel whole and as a sample, on memory of its own each time."""

import math
import struct
from types import SimpleNamespace

import numpy as np
import pytest

from cutegen_nb.simulator.machine.machine import run
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling.sample import sample_launch
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch


def three(value):
    return value if isinstance(value, tuple) else (value, 1, 1)


def ready(machine, text, sizes, scalars, settings):
    """Parsed kernel, launch, parameters, memory and arrays; the arrays begin with the same numbers each time."""
    module = parse(text)
    kernel = next(iter(module.kernels.values()))
    chance = np.random.default_rng(3)
    arrays = [
        machine.align(chance.standard_normal(one).astype(np.float32) if isinstance(one, int) else one)
        for one in sizes
    ]
    memory = GlobalMemory()
    for index, one in enumerate(arrays):
        memory.register(one.ctypes.data, one.nbytes, f"tensor{index}")
    given = [*(struct.pack("<Q", one.ctypes.data) for one in arrays), *scalars]
    sized = zip(given, kernel.parameters, strict=True)
    launch = Launch(
        grid=three(settings.pop("grid", 1)), block=three(settings.pop("block", 32)),
        dynamic_smem_bytes=settings.pop("smem", 0), **settings,
    )  # fmt: skip
    parameters = tuple(one.ljust(item.size_bytes, b"\0") for one, item in sized)
    return SimpleNamespace(
        module=module, kernel=kernel.name, launch=launch, parameters=parameters, memory=memory, arrays=arrays
    )


@pytest.fixture
def sampled(machine):
    """Function that samples a launch of PTX text."""

    def take(text, sizes=(), scalars=(), *, stop_at=math.inf, **settings):
        one = ready(machine, text, sizes, scalars, settings)
        return sample_launch(one.module, one.kernel, one.launch, one.parameters, one.memory, stop_at=stop_at)

    return take


@pytest.fixture
def whole(machine):
    """Function that runs the same launch whole; its counts are the sample's oracle."""

    def take(text, sizes=(), scalars=(), **settings):
        one = ready(machine, text, sizes, scalars, settings)
        return run(one.module, one.kernel, one.launch, one.parameters, one.memory)

    return take

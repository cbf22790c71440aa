"""Launches PTX on the machine with NumPy arrays as global memory."""

import importlib.util
import math
import struct
from pathlib import Path

import numpy as np
import pytest

from cutegen_nb.simulator.machine.machine import run
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch

DATA = Path(__file__).parent / "data"


def aligned(values, dtype=None):
    """A copy of the values that begins on a multiple of 256 bytes, as torch's and CUDA's storages do."""
    source = np.asarray(values, dtype)
    room = np.zeros(source.nbytes + 256, np.uint8)
    skip = -room.ctypes.data % 256
    copy = room[skip : skip + source.nbytes].view(source.dtype).reshape(source.shape)
    copy[...] = source
    return copy


def launch_text(  # noqa: PLR0913 - a launch has this many parts
    text, *, grid=1, block=32, arrays=(), scalars=(), smem=0, labels=None, kernel=None, findings=None,
    stop_at=math.inf, **more,
):  # fmt: skip
    """Run a kernel whose parameters are the arrays' addresses and then the scalars' bytes."""
    module = parse(text)
    chosen = module.kernels[kernel] if kernel else next(iter(module.kernels.values()))
    memory = GlobalMemory()
    given = []
    for index, array in enumerate(arrays):
        memory.register(array.ctypes.data, array.nbytes, labels[index] if labels else f"tensor{index}")
        given.append(struct.pack("<Q", array.ctypes.data))
    given.extend(scalars)
    sized = [one.ljust(item.size_bytes, b"\0") for one, item in zip(given, chosen.parameters, strict=True)]
    extents = [value if isinstance(value, tuple) else (value, 1, 1) for value in (grid, block)]
    launch = Launch(grid=extents[0], block=extents[1], dynamic_smem_bytes=smem, **more)
    return run(module, chosen.name, launch, tuple(sized), memory, findings=findings, stop_at=stop_at)


def kernel_text(body, *, parameters=0, before=""):
    """A kernel around a body; its parameters p0, p1 … are 64-bit and wait in %rd90, %rd91 …"""
    listed = ", ".join(f".param .u64 p{index}" for index in range(parameters))
    loads = "\n".join(f"ld.param.b64 %rd{90 + index}, [p{index}];" for index in range(parameters))
    return f"""
.version 8.8
.target sm_90a
.address_size 64
{before}
.visible .entry kernel({listed})
{{
.reg .pred %p<100>; .reg .b16 %rs<100>; .reg .b32 %r<100>; .reg .b64 %rd<100>;
.loc 1 10 3
{loads}
mov.u32 %r99, %tid.x;
{body}
ret;
}}
.file 1 "candidate.py"
"""


def _beside(name):
    """A module of this folder that is no test; the folder is no package."""
    spec = importlib.util.spec_from_file_location(f"simulator_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ORACLE = _beside("oracle")


class Machine:
    """What tests need to run PTX."""

    launch = staticmethod(launch_text)
    kernel = staticmethod(kernel_text)
    align = staticmethod(aligned)
    data = DATA


@pytest.fixture
def machine():
    return Machine


@pytest.fixture
def oracle():
    return ORACLE

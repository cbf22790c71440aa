"""Launches PTX on the machine with NumPy arrays as global memory."""

import importlib.util
import json
import math
import os
import struct
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from cutegen_nb.simulator.machine.machine import run
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch

HERE = Path(__file__).parent
DATA = HERE / "data"


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
    """Parts that tests need to run PTX."""

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


class ProgramServer:
    """Programs of this folder on the simulator of one architecture, in forks of one process."""

    def __init__(self, architecture, folder):
        read_end, write_end = os.pipe()
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable, "-W", "ignore", str(HERE / "program_server.py"), architecture, str(write_end)
                ],
                stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, cwd=folder, pass_fds=[write_end],
                env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
            )  # fmt: skip
        os.close(write_end)
        self._answers = os.fdopen(read_end)
        self._known = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._answers.close()
        self._process.wait()

    def told(self, program, *arguments):
        """The server's answer: what the program found, and torch's device outside of it."""
        path = HERE / "programs" / f"{program}.py"
        self._process.stdin.write("\t".join([str(path), *map(str, arguments)]) + "\n")
        self._process.stdin.flush()
        line = self._answers.readline()
        assert line, self.log.read_text()[-4000:]
        return json.loads(line)

    def run(self, program, *arguments):
        """Findings of a program, which is run once for all tests."""
        key = (program, *map(str, arguments))
        if key not in self._known:
            self._known[key] = self.told(program, *arguments)["answer"]
        found = self._known[key]
        assert "error" not in found, found["error"]
        return found


@pytest.fixture(scope="session")
def simulator_on(tmp_path_factory):
    """Function from an architecture to the server of its programs."""
    servers = {}
    with ExitStack() as stack:

        def of(architecture):
            if architecture not in servers:
                folder = tmp_path_factory.mktemp(architecture)
                servers[architecture] = stack.enter_context(ProgramServer(architecture, folder))
            return servers[architecture]

        yield of


def case_names(program):
    """Names of a program's cases, read from its text: importing it needs the simulator."""
    text = (HERE / "programs" / f"{program}.py").read_text()
    listed = text.rpartition("CASES = (")[2].rpartition(")")[0]
    return [name.strip() for name in listed.split(",") if name.strip()]


def pytest_generate_tests(metafunc):
    """Give a test that takes ``outcome`` each case of the program that its module names as PROGRAM."""
    if "outcome" in metafunc.fixturenames:
        metafunc.parametrize("outcome", case_names(metafunc.module.PROGRAM), indirect=True)


@pytest.fixture
def outcome(request, simulator_on):
    """``ok``, or the traceback of one case of a program on an Ampere GPU."""
    program = request.module.PROGRAM
    found = simulator_on("sm_80").run(program)
    assert list(found) == case_names(program)
    return found[request.param]


def pytest_collection_modifyitems(items):
    """Mark the tests that have programs compiled in another process."""
    for item in items:
        if "simulator_on" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)

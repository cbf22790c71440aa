"""Holders of a GPU's memory as NVIDIA's library lists them, in words for a person."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cutegen_nb.evaluator.process import memory_holders
from cutegen_nb.evaluator.process.memory_holders import GpuMemory, Holder

GIB = 1 << 30
TOTAL = 140 * GIB


def memory(used, *holders):
    return GpuMemory(index=0, used_bytes=used, total_bytes=TOTAL, holders=holders)


def holder(process_id, held, name="python train.py"):
    return Holder(process_id=process_id, name=name, held_bytes=held)


USED = "3 GiB (3,221,225,472 bytes) of 140 GiB (150,323,855,360 bytes) in use"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (memory(0), "0 GiB (0 bytes) of 140 GiB (150,323,855,360 bytes) in use, by no process"),
        (
            memory(3 * GIB, holder(7, 2 * GIB), holder(8, GIB, "")),
            (
                f"{USED}: 2 GiB (2,147,483,648 bytes) by process 7 (python train.py); "
                "1 GiB (1,073,741,824 bytes) by process 8 (no name known)"
            ),
        ),
        (
            memory(3 * GIB, holder(5, 3 * GIB)),
            f"{USED}: 3 GiB (3,221,225,472 bytes) by process 5 (python train.py, this process itself)",
        ),
        (
            memory(3 * GIB, holder(7, GIB)),
            (
                f"{USED}: 1 GiB (1,073,741,824 bytes) by process 7 (python train.py); 2 GiB (2,147,483,648 bytes) "
                "by processes that the driver does not name here: a container hides those outside it, so run "
                "nvidia-smi on the host"
            ),
        ),
        (memory(3 * GIB, holder(7, None)), f"{USED}: an unknown amount by process 7 (python train.py)"),
    ],
    ids=["none", "two", "this one", "hidden ones", "no sizes"],
)
def test_each_holder_is_named_with_what_it_holds(found, expected):
    assert memory_holders.sentence(found, process_id=5) == expected


def test_a_long_command_line_is_cut():
    said = memory_holders.sentence(memory(3 * GIB, holder(7, 3 * GIB, "x" * 500)), process_id=5)
    assert f"({'x' * 79}…)" in said


class NVMLError(Exception):
    """As the library's own."""


def nvml(**changed):
    """NVIDIA's library with one GPU on which this process, another's and a hidden one hold memory."""

    def listed(*pairs):
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in pairs]

    def name_of(pid):
        if pid == 4_000_000:
            return b"/opt/other"
        raise NVMLError

    found = ModuleType("pynvml")
    vars(found).update({
        "NVMLError": NVMLError,
        "nvmlMemory_v2": 2,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda _, version: SimpleNamespace(used=3 * GIB, total=TOTAL),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: listed((os.getpid(), GIB), (0, GIB)),
        "nvmlDeviceGetGraphicsRunningProcesses": lambda _: listed((4_000_000, 2 * GIB), (4_000_001, None)),
        "nvmlSystemGetProcessName": name_of,
        **changed,
    })  # fmt: skip
    return found


def test_holders_are_read_from_the_driver_the_largest_first_and_named_by_their_command_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    (found,) = memory_holders.read()
    assert (found.used_bytes, found.total_bytes) == (3 * GIB, TOTAL)
    assert [(item.process_id, item.held_bytes) for item in found.holders] == [
        (4_000_000, 2 * GIB),
        (os.getpid(), GIB),
        (4_000_001, None),
    ]
    names = [item.name for item in found.holders]
    assert names[0] == "/opt/other"
    own = Path("/proc/self/cmdline").read_bytes().replace(b"\0", b" ").decode()
    assert names[1]
    assert own.startswith(names[1])
    assert names[2] == ""


def _raising(*_):
    raise NVMLError


@pytest.mark.parametrize("at", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetMemoryInfo"])
def test_a_driver_that_does_not_answer_is_no_error(monkeypatch, at):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(**{at: lambda *_, **__: _raising()}))
    assert memory_holders.read() is None


def test_without_the_library_nothing_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert memory_holders.read() is None

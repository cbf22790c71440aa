"""Inspection of the machine: what is missing, what needs repair, and what holds a candidate."""

from __future__ import annotations

import asyncio
import importlib.util

import pytest

from cutegen_nb.app import doctor
from cutegen_nb.app.doctor import Line, _gpu, examine, lines_json
from cutegen_nb.wiring import Settings


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Function that puts a program of this name into the path, in place of any other."""

    def put(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    return put


@pytest.mark.parametrize(
    ("script", "mark", "told"),
    [
        ("echo 'NVIDIA H200, 580.1'; echo 'NVIDIA H200, 580.1'", "ok", "2 × NVIDIA H200, driver 580.1"),
        ("echo 'NVIDIA A100, 535'; echo 'NVIDIA L4, 535'", "ok", "2 × NVIDIA A100, NVIDIA L4, driver 535"),
        ("echo 'No devices were found'", "--", "finds no GPU: kernels run on the simulator"),
        ("exit 9", "--", "finds no GPU: kernels run on the simulator"),
    ],
)
def test_gpus_are_told_as_nvidia_smi_lists_them(nvidia_smi, script, mark, told):
    nvidia_smi(script)
    line = asyncio.run(_gpu())

    assert line.mark == mark
    assert told in line.value


def test_without_nvidia_smi_kernels_run_on_the_simulator(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    line = asyncio.run(_gpu())

    assert (line.mark, line.value) == ("--", "none (no nvidia-smi): kernels run on the simulator")


def test_a_gpu_without_the_package_that_calls_kernels_is_told_in_a_sentence(
    tmp_path, nvidia_smi, monkeypatch
):
    nvidia_smi("echo 'NVIDIA H200, 9.0, 580.1, GPU-1'")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    lines = {line.item: line for line in asyncio.run(examine(Settings(folder=tmp_path)))}

    assert lines["kernels"].mark == "!!"
    assert lines["kernels"].value == (
        "apache-tvm-ffi, which calls kernels on a GPU, is not installed; run `pip install apache-tvm-ffi`."
    )


@pytest.mark.parametrize(
    ("version", "mark", "told"), [("0.1.15", "ok", "0.1.15"), (None, "--", "pip install apache-tvm-ffi")]
)
def test_the_package_that_calls_kernels_is_listed(monkeypatch, version, mark, told):
    monkeypatch.setattr(doctor, "_version", {"apache-tvm-ffi": version}.get)
    line = doctor._tvm_ffi()

    assert (line.item, line.mark) == ("TVM-FFI", mark)
    assert told in line.value


def test_every_item_is_told_once_and_a_machine_without_a_gpu_is_fine(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTEGEN_CONFIG", str(tmp_path / "none.toml"))
    lines = asyncio.run(examine(Settings(device="simulator", folder=tmp_path)))
    items = [line.item for line in lines]

    assert len(set(items)) == len(items)
    assert {
        "Python",
        "torch",
        "CuTe DSL",
        "TVM-FFI",
        "GPU",
        "author offline",
        "profiles",
        "sessions",
        "candidates",
        "kernels",
    } <= set(items)
    assert all(line.fine for line in lines), [line for line in lines if not line.fine]
    assert "run on the simulator, times estimated for H200" in lines[-1].value


def test_json_is_fine_only_where_every_line_is():
    good, bad = Line(item="torch", value="2.13"), Line(item="sessions", value="damaged", fine=False)

    assert lines_json((good,)) == {"fine": True, "items": [{"item": "torch", "value": "2.13", "fine": True}]}
    assert lines_json((good, bad))["fine"] is False
    assert (good.mark, bad.mark) == ("ok", "!!")

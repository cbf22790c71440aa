"""Evaluators of this host for a pool: one for each GPU, or one whose workers run side by side."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from cutegen_nb.evaluator.host_members import HostMembers

H200 = ("NVIDIA H200, 9.0, 580.1, GPU-aaaa-1", "NVIDIA H200, 9.0, 580.1, GPU-bbbb-2")
L4 = "NVIDIA L4, 8.9, 580.1, GPU-cccc-3"


def members(workers, device="simulator", say=lambda _: None):
    return HostMembers(workers=workers, device=device, baselines=(), screening=True, say=say)


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Put an nvidia-smi on PATH that lists these GPUs."""

    def put(*lines):
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!{sys.executable}\nprint({chr(10).join(lines)!r})\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return put


@pytest.fixture
def _two_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.mark.parametrize(
    ("gpus", "workers", "bound", "sentence"),
    [
        (H200, 2, ["GPU-aaaa-1", "GPU-bbbb-2"], ""),
        ((*H200, L4), 1, ["GPU-aaaa-1"], ""),
        (
            (*H200, L4), 3, ["GPU-aaaa-1", "GPU-bbbb-2"],
            "--workers 3: 2 × NVIDIA H200 here (1 of another model left out); a GPU times one kernel at a time.",
        ),
    ],
    ids=["one each", "fewer than there are", "more than there are"],
)  # fmt: skip
def test_each_gpu_of_one_model_gets_an_evaluator_that_sees_no_other(listed, gpus, workers, bound, sentence):
    listed(*gpus)
    said = []

    async def run():
        found = await members(workers, "cuda", said.append).open()
        devices = [await item.evaluator._workers.choice() for item in found]
        return [(item.places, device.uuid) for item, device in zip(found, devices, strict=True)], [
            item.evaluator._workers.variables(device) for item, device in zip(found, devices, strict=True)
        ]

    places, variables = asyncio.run(run())
    assert places == [(1, uuid) for uuid in bound]
    assert variables == [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in bound]
    assert said == ([sentence] if sentence else [])


@pytest.mark.usefixtures("_two_cores")
@pytest.mark.parametrize(("workers", "places"), [(1, 1), (2, 2), (5, 2)])
def test_the_simulator_has_a_place_for_each_core_in_one_evaluator(listed, workers, places):
    listed(*H200)  # which a person who asks for the simulator does not want
    said = []
    (found,) = asyncio.run(members(workers, say=said.append).open())
    assert found.places == places
    assert found.evaluator._workers.server is None, "no process is started before the first evaluation"
    assert [
        text.startswith("--workers 5: this machine has 2 CPU cores, so 2 evaluations") for text in said
    ] == ([True] if workers > places else [])

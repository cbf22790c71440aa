"""Choice of the device, and the ceilings drawn for it."""

from __future__ import annotations

import dataclasses
import os

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, UsageError
from cutegen_nb.evaluator.process import device
from cutegen_nb.evaluator.process import stored_ceilings as measured


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [("8.0", "sm_80"), ("8.9", "sm_89"), ("9.0", "sm_90a"), ("10.0", "sm_100a"), ("12.0", "sm_120a")],
)
def test_a_compute_capability_becomes_the_compilers_architecture(capability, architecture):
    assert device.architecture_of(capability) == architecture


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("NVIDIA H200", 4.8e12),
        ("NVIDIA H100 PCIe", 2.0e12),
        ("NVIDIA H100 80GB HBM3", 3.35e12),
        ("NVIDIA A100-SXM4-80GB", 2.039e12),
        ("NVIDIA A100-SXM4-40GB", 1.555e12),
        ("NVIDIA L4", 3.0e11),
        ("NVIDIA GeForce RTX 4090", 1.008e12),
    ],
)
def test_a_gpu_finds_its_own_data_sheet(name, bandwidth):
    found, peaks, source = device.ceilings(name)
    assert found == bandwidth
    assert peaks["cuda.f32"] > 1e12
    assert "NVIDIA" in source


@pytest.mark.parametrize("name", ["NVIDIA L40S", "NVIDIA Graphics"])
def test_an_unknown_gpu_has_no_ceilings_and_says_so(name):
    assert device.ceilings(name)[:2] == (0.0, {})
    assert name in device.ceilings(name)[2]


def test_the_simulator_states_the_gpu_whose_ceilings_are_drawn():
    chosen = device.choose("simulator", "sm_90a")
    assert chosen.kind is DeviceKind.SIMULATOR
    assert chosen.name == "H200 (simulated)"
    assert device.choose("simulator", None).architecture == "sm_80"


def test_an_unknown_word_or_architecture_is_refused_with_the_choices():
    with pytest.raises(UsageError, match="auto, cuda or simulator"):
        device.choose("tpu", None)
    with pytest.raises(UsageError, match="sm_80"):
        device.choose("simulator", "sm_20")


def test_without_a_driver_auto_means_the_simulator_and_cuda_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert device.choose("auto", None).kind is DeviceKind.SIMULATOR
    with pytest.raises(DeviceUnavailable, match="simulator"):
        device.choose("cuda", None)


@pytest.fixture
def h200(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return dataclasses.replace(
        device.choose("simulator", "sm_90a"), name="NVIDIA H200", uuid="GPU-1", driver="1"
    )


FOUND = {
    "bandwidth": 4e12, "peak_flops": {"tensor.f16": 7e14}, "sm_count": 132, "l2_bytes": 1, "memory_bytes": 1,
    "date": "d",
}  # fmt: skip
FOUND["confined"] = True


def test_what_was_measured_on_a_device_is_recalled_for_it_alone(h200):
    assert measured.recall(h200) is None
    measured.keep(h200, FOUND)
    assert measured.recall(h200)["peak_flops"] == {"tensor.f16": 7e14}
    assert measured.recall(dataclasses.replace(h200, uuid="GPU-2")) is None
    assert measured.recall(dataclasses.replace(h200, driver="2")) is None
    assert measured.recall(dataclasses.replace(h200, uuid="")) is None


def test_a_broken_or_unwritable_cache_measures_again(h200, tmp_path):
    measured.keep(h200, FOUND)
    (path,) = (tmp_path / "cutegen_nb").iterdir()
    for text in ("", "[]", "{", '{"of": 1}'):
        path.write_text(text)
        assert measured.recall(h200) is None
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")
    measured.keep(h200, FOUND)
    assert measured.recall(h200) is None


GPUS = (
    "NVIDIA H200, 9.0, 580.1, GPU-aaaa-1\n"
    "NVIDIA L4, 8.9, 580.1, GPU-bbbb-2\n"
)  # fmt: skip


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{GPUS}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("visible", "name"),
    [
        (None, "NVIDIA H200"),
        ("1", "NVIDIA L4"),
        ("1,0", "NVIDIA L4"),
        ("GPU-bbbb", "NVIDIA L4"),
        ("MIG-1234", "NVIDIA H200"),
        ("", None),
        ("-1", None),
        ("7", None),
    ],
)
def test_the_gpu_is_the_one_that_cuda_takes_first_and_not_the_first_that_there_is(visible, name):
    found = device.find_gpu({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})
    assert (found and found.name) == name


@pytest.mark.usefixtures("two_gpus")
def test_of_several_gpus_a_candidate_sees_one():
    found = device.find_gpu({"CUDA_VISIBLE_DEVICES": "1,0"})
    assert device.single_gpu_environment(found) == {"CUDA_VISIBLE_DEVICES": "GPU-bbbb-2"}


def test_one_gpu_alone_is_left_as_it_is(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 9.0, 580.1, GPU-aaaa-1'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert device.single_gpu_environment(device.find_gpu({})) == {}

"""Facts on problem and device as a prompt tells them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.graph import TensorSpec, Value
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.prompting.facts import device_text, library_parts, tensor_text, work_text, workload_text
from cutegen_nb.testing import examples

GPU = Device(
    kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a", bandwidth_bytes_per_s=4.8e12, peak_flops={},
    source="NVIDIA H200 data sheet", sm_count=132, l2_bytes=50 << 20,
)  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "strides", "text"),
    [
        ((4, 8), (8, 1), "float32 (4, 8)"),
        ((4, 8), (1, 4), "float32 (4, 8), strides (1, 4)"),
        ((5,), (1,), "float32 (5,)"),
        ((5,), (2,), "float32 (5,), strides (2,)"),
        ((), (), "float32 ()"),
    ],
)
def test_a_tensor_shows_its_strides_only_where_they_are_not_contiguous(shape, strides, text):
    assert tensor_text(TensorSpec(shape=shape, dtype="float32", strides=strides)) == text


def test_parameters_numbers_and_warnings_of_a_workload_are_told():
    facts = examples.relu_facts()
    weight = Value(name="w", spec=TensorSpec(shape=(3,), dtype="float16", strides=(1,)), path="norm.weight")
    graph = replace(facts.full.graph, parameters=(weight,), scalars=((1, 0.5),))
    told = workload_text(
        replace(facts, full=replace(facts.full, graph=graph), warnings=("It is random.",)), GPU
    )
    assert told == (
        "- input 0: float32 (1048576,)\n"
        "- input 1: the number 0.5\n"
        "- parameter `norm.weight`: float16 (3,)\n"
        "- output 0: float32 (1048576,)\n"
        "The parameters are made by `__init__` as in the reference.\n"
        "Note: It is random.\n"
    )


def test_a_problem_that_is_not_scaled_has_one_size_on_the_simulator_too():
    facts = examples.relu_facts()
    whole = replace(facts, scaled=facts.full)
    assert "smaller size" not in workload_text(whole, examples.simulated_device())
    assert "smaller size" in workload_text(facts, examples.simulated_device())


def test_a_device_names_its_figures_and_their_source():
    assert device_text(GPU, ("tensor cores, tf32: 494 TFLOP/s dense",)) == (
        "NVIDIA H200, sm_90a.\n"
        "- DRAM 4.80 TB/s, read and write together; 132 SMs; L2 50 MiB\n"
        "- tensor cores, tf32: 494 TFLOP/s dense\n"
        "- from: NVIDIA H200 data sheet\n"
    )


def test_the_work_is_told_with_its_parts_and_floors():
    facts = replace(
        examples.relu_facts(),
        workload_class=WorkloadClass.FUSED,
        parts=(WorkloadClass.MATMUL, WorkloadClass.SOFTMAX),
    )
    assert work_text(facts, ("no kernel can take less than 0.005 ms",)).splitlines() == [
        "- class: fused (matrix product, softmax); computed in float32",
        "- 1,048,576 FLOPs in the reference's own operations, at least 8,388,608 bytes: 0.125 FLOP/byte at full size",
        "- no kernel can take less than 0.005 ms",
    ]


def test_every_family_of_a_library_policy_has_words_with_an_operator():
    assert library_parts(()) == ""
    for family in LibraryFamily:
        assert "`torch.nn" in library_parts((family,)), family
    assert library_parts((LibraryFamily.NORM, LibraryFamily.POOL)).count(" and ") == 1

"""Each reason for which there are no counters has a sentence and a cure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.tools import ncu as nsight
from cutegen_nb.evaluator.tools.ncu_errors import PERMISSION_PAGE, NoCounters, no_counters_error

HERE = Path(__file__).parents[1]
KERNEL = (HERE / "candidates" / "relu.py").read_text()


def order(**changed):
    problem = Problem(
        name="relu", source=(HERE / "problems" / "relu.py").read_text(), form=ProblemForm.KERNELBENCH
    )
    return nsight.ProfileRequest(
        **{"problem": problem, "candidate": Candidate(source=KERNEL, author="test"), **changed}
    )


def counted(**changed):
    return asyncio.run(nsight.collect_counters(order(**changed), lambda _: None))


def test_without_ncu_the_message_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(NoCounters, match=r"`ncu` was not found.*nsight-compute"):
        counted()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters.",
            PERMISSION_PAGE,
        ),
        ("==ERROR== Profiling is not supported on vGPU without it being enabled.", "virtual one"),
        ("==ERROR== Metrics of MIG instances that share units cannot be collected.", "nvidia-smi -mig 0"),
        (
            "==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) …",
            "dcgmi profiling --pause",
        ),
        ("==ERROR== Profiling is not supported on this device.", "does not know the GPU"),
        ("==ERROR== The application returned an error code (3).", "returned an error code"),
        ("", "it said nothing"),
    ],
)
def test_each_reason_has_a_sentence_of_its_own_with_a_cure(said, expected):
    message = str(no_counters_error(said, code=1, matching="x"))
    assert expected in message
    assert message.endswith((".", "nothing")) or "error code" in message


def test_kernels_that_ran_under_other_names_are_named():
    """The text is what ncu 2025.3 printed on the H200 for a filter that nothing matched."""
    log = (
        "==PROF== Connected to process 3417 (/usr/bin/python3.12)\n==PROF== Disconnected from process 3417\n"
        "==WARNING== No kernels were profiled.\nAvailable Kernels:\n1. vectorized_elementwise_kernel\n"
    )
    message = str(no_counters_error(log, code=0, matching="^kernel_cutlass_(mine)_"))
    assert "no kernel named ^kernel_cutlass_(mine)_" in message
    assert "vectorized_elementwise_kernel" in message

"""Evaluation on a real GPU: verdicts, times against eager, and the faults a GPU reports."""

from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict
from cutegen_nb.core.layout import LayoutKind
from cutegen_nb.evaluator.process.device import find_gpu

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_gpu() is None, reason="nvidia-smi names no GPU on this machine"),
]

LARGE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(4096, 65536) - 0.5]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def gpu(judge_class):
    made = judge_class(device="cuda", deadline_s=120.0, baselines=("eager", "torch.compile"))
    yield made
    made.close()


CONVOLUTION = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(64, 64, 3)

    def forward(self, x):
        return self.convolution(x)

def get_inputs():
    return [torch.rand(8, 64, 64, 64)]

def get_init_inputs():
    return []
"""


def test_tolerances_come_from_convolutions_in_float32_not_in_tf32(gpu):
    known = asyncio.run(gpu.evaluator.known(gpu.problem(CONVOLUTION), lambda _: None))
    assert known.tolerances[0].reference_l2 < 1e-5  # TF32 has 1e-4 and more


def test_the_device_is_named_with_its_ceilings(gpu):
    device = asyncio.run(gpu.evaluator.device())
    assert device.kind is DeviceKind.GPU
    assert device.architecture.startswith("sm_")
    assert device.driver


def test_a_right_kernel_passes_with_times_against_eager(gpu):
    evaluation = gpu("relu", "relu")
    assert evaluation.passed, evaluation.summary
    assert len(evaluation.correctness.seeds) == 5
    timing = evaluation.timing
    assert timing.median_ms > 0
    assert {item.name for item in timing.baselines} >= {"eager"}
    for item in timing.baselines:
        assert item.speedup_low <= item.speedup <= item.speedup_high
    assert timing.bandwidth_bytes_per_s > 1e11


def test_a_kernel_called_through_tvm_ffi_is_seen_in_every_tier_and_held_by_a_graph(gpu):
    evaluation = gpu("relu", "relu_by_tvm_ffi", Tier.C)
    assert evaluation.passed, evaluation.summary
    assert not evaluation.exhibits
    assert not evaluation.timing.not_by_graph


def test_layouts_are_read_on_a_gpu_too_with_their_lines(gpu):
    """The trace has places only where line information is asked for."""
    found = gpu("relu", "through_shared").layouts
    (shared,) = [item for item in found if item.kind is LayoutKind.SHARED]
    assert (shared.name, shared.text, shared.element) == ("shared", "256:1", "f32")
    assert shared.line == gpu.line("through_shared", "shared = smem.allocate_tensor")


def test_at_full_size_the_time_stands_in_a_possible_relation_to_memory(gpu):
    evaluation = gpu(LARGE, "relu")
    assert evaluation.passed, evaluation.summary
    floor_ms = 2 * 4096 * 65536 * 4 / evaluation.timing.bandwidth_bytes_per_s * 1e3
    assert evaluation.timing.median_ms > 0.85 * floor_ms


def test_a_second_verdict_comes_from_the_same_template_with_the_compiled_baseline_of_the_first(gpu):
    assert gpu("relu", "relu").passed
    template = gpu.template
    evaluation = gpu("relu", "relu")
    assert {item.name for item in evaluation.timing.baselines} >= {"eager", "torch.compile"}
    assert gpu.template == template


@pytest.mark.parametrize(("problem", "seeds"), [("relu", 10), (LARGE, 5)], ids=["small", "full size"])
def test_every_tier_passes_a_right_kernel_and_says_what_ran(gpu, problem, seeds):
    evaluation = gpu(problem, "relu", Tier.C)
    assert evaluation.passed, evaluation.summary
    assert not evaluation.exhibits
    states = {item.name: item.state for item in evaluation.checks}
    for name in (
        "stress inputs",
        "exact integer inputs",
        "many calls",
        "physical floor",
        "problem admission",
    ):
        assert states[name] is CheckState.RAN, [item for item in evaluation.checks if item.name == name]
    assert states["second process, other seeds"] is CheckState.RAN
    assert len(evaluation.correctness.seeds) == seeds


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("off_by_one_tail", Verdict.WRONG_VALUES),
        ("zeros", Verdict.WRONG_VALUES),
        ("unwritten", Verdict.WRONG_VALUES),
        ("torch_relu", Verdict.NOT_OWN_WORK),
        ("hard_exit", Verdict.EXITED),
        ("segfault", Verdict.CRASHED),
        ("raises", Verdict.CRASHED),
        ("modifies_input", Verdict.INPUT_MODIFIED),
        ("wrong_dtype", Verdict.WRONG_DTYPE),
        ("wrong_shape", Verdict.WRONG_SHAPE),
        ("compile_error", Verdict.COMPILE_FAILED),
        ("differs_each_call", Verdict.NONDETERMINISTIC),
        ("far_out_of_range", Verdict.OUT_OF_BOUNDS),
    ],
)
def test_each_fault_has_its_verdict(gpu, name, verdict):
    evaluation = gpu("relu", name)
    assert evaluation.outcome == Judged(verdict=verdict), evaluation.summary


@pytest.mark.parametrize("calls", [5, 15, 40])
def test_a_fault_in_a_later_call_is_the_candidates_whatever_reports_it(gpu, calls):
    source = gpu.source("faults_later").replace("RIGHT_CALLS = 40", f"RIGHT_CALLS = {calls}")
    evaluation = gpu("relu", source)
    assert evaluation.outcome == Judged(verdict=Verdict.OUT_OF_BOUNDS), evaluation.summary
    assert "\n" not in evaluation.summary


def test_a_fault_does_not_reach_the_next_candidate(gpu):
    gpu("relu", "far_out_of_range")
    assert gpu("relu", "relu").passed


def test_a_short_kernels_latency_holds_nothing_of_the_host(gpu):
    timing = gpu("relu", "relu").timing
    assert timing.host_ms > 0.005  # two tensors through DLPack
    assert timing.median_ms < 0.5 * timing.host_ms
    assert not timing.host_included
    assert timing.method == "graph" or timing.not_by_graph


def test_a_call_that_waits_for_the_device_says_that_its_latency_holds_host_time(gpu):
    source = gpu.source("relu").replace("return y", "torch.cuda.synchronize(); return y")
    evaluation = gpu("relu", source)
    assert evaluation.passed, evaluation.summary
    assert evaluation.timing.host_included


def test_the_best_before_is_timed_in_the_same_turns_and_is_no_faster_than_itself(gpu):
    source = gpu.source("relu")
    judged = gpu.evaluator.evaluate(
        gpu.problem(LARGE), gpu.candidate(source + "\n"), lambda _: None, rival=gpu.candidate(source)
    )
    timing = asyncio.run(judged).timing
    assert timing.rival_digest == gpu.candidate(source).digest
    assert timing.rival.speedup == pytest.approx(1.0, abs=0.01)


def test_in_timed_calls_too_the_judge_is_out_of_sight(gpu):
    look = "import sys\n        assert not any(name.startswith('cutegen') for name in sys.modules)\n        return y"
    evaluation = gpu("relu", gpu.source("relu").replace("return y", look))
    assert evaluation.passed, evaluation.summary
    assert evaluation.timing is not None

"""Each way a candidate can go wrong has its own verdict, with its line where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import LibraryFamily, library_words
from cutegen_nb.core.profile import ProfileSource
from cutegen_nb.evaluator import evaluation_case, evaluator

pytestmark = pytest.mark.slow
UNKNOWN_NAME = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(y)

def get_inputs():
    return [torch.randn(4)]
"""


def _decisive(evaluation):
    return next(item for item in evaluation.findings if item.severity is Severity.DECIDES)


@pytest.mark.parametrize("candidate", ["relu", "relu_by_tvm_ffi"])
def test_a_right_kernel_passes_with_counts_and_checks(judge, candidate):
    evaluation = judge("relu", candidate)
    assert evaluation.passed, evaluation.summary
    assert evaluation.device == "simulator (sm_80)"
    assert evaluation.timing is None
    profile = evaluation.profile
    assert profile.source is ProfileSource.SIMULATED
    assert [launch.grid for launch in profile.launches] == [(9, 1, 1)]
    assert {line.file for line in profile.launches[0].lines} == {"candidate.py"}
    assert profile.counters.gmem_load_bytes == 37 * 61 * 4
    correctness = evaluation.correctness
    assert len(set(correctness.seeds)) == 3
    assert correctness.outputs[0].matches
    assert "outputs poisoned" in correctness.checks
    assert "importing the candidate" in judge.stages


@pytest.mark.long
def test_seeds_are_fresh_each_time(judge):
    assert judge("relu", "relu").correctness.seeds != judge("relu", "relu").correctness.seeds


@pytest.mark.parametrize(
    ("name", "verdict", "kind", "line_of"),
    [
        ("off_by_one_tail", Verdict.WRONG_VALUES, "wrong-values", None),
        ("out_of_range", Verdict.OUT_OF_BOUNDS, None, "index + 1"),
        pytest.param(
            "far_out_of_range", Verdict.OUT_OF_BOUNDS, "out-of-bounds", "1 << 32", marks=pytest.mark.long
        ),
        ("shared_race", Verdict.RACE, "race", "value + 1.0"),
        pytest.param("zeros", Verdict.WRONG_VALUES, "wrong-values", None, marks=pytest.mark.long),
        pytest.param("unwritten", Verdict.WRONG_VALUES, "wrong-values", None, marks=pytest.mark.long),
        ("torch_relu", Verdict.NOT_OWN_WORK, "torch-compute", "torch.relu"),
        pytest.param("numpy_relu", Verdict.NOT_OWN_WORK, "host-work", "np.maximum", marks=pytest.mark.long),
        ("hidden_relu", Verdict.CHEATED, "no-kernel", None),
        pytest.param(
            "replaces_comparison", Verdict.CHEATED, "harness-replaced", None, marks=pytest.mark.long
        ),
        ("exit_at_import", Verdict.EXITED, "exited", "raise SystemExit"),
        ("hard_exit", Verdict.EXITED, "exited", None),
        pytest.param("segfault", Verdict.CRASHED, "signal", "string_at", marks=pytest.mark.long),
        ("raises", Verdict.CRASHED, "exception", "raise ValueError"),
        ("eats_memory", Verdict.OUT_OF_MEMORY, "out-of-memory", "hoard.append"),
        pytest.param("fork_bomb", Verdict.CRASHED, "too-many-processes", None, marks=pytest.mark.long),
        ("modifies_input", Verdict.INPUT_MODIFIED, "input-modified", None),
        ("wrong_dtype", Verdict.WRONG_DTYPE, "wrong-dtype", None),
        ("wrong_shape", Verdict.WRONG_SHAPE, "wrong-shape", None),
        pytest.param("wrong_number", Verdict.WRONG_SHAPE, "wrong-number", None, marks=pytest.mark.long),
        ("differs_each_call", Verdict.NONDETERMINISTIC, "nondeterministic", None),
        ("compile_error", Verdict.COMPILE_FAILED, "compile-error", "no_such_function"),
    ],
)
def test_each_fault_has_its_verdict_and_line(judge, name, verdict, kind, line_of):
    evaluation = judge("relu", name)
    assert evaluation.outcome == Judged(verdict=verdict), evaluation.summary
    finding = _decisive(evaluation)
    assert kind is None or finding.kind == kind
    if line_of is not None:
        assert finding.line == judge.line(name, line_of)
    assert evaluation.summary


@pytest.mark.long
def test_an_endless_loop_times_out_with_its_line(judge, monkeypatch):
    monkeypatch.setattr(judge.evaluator._workers, "_deadline_s", 5.0)
    evaluation = judge("relu", "endless_host_loop")
    assert evaluation.outcome == Judged(verdict=Verdict.TIMED_OUT)
    assert "5 s" in evaluation.summary
    first = judge.line("endless_host_loop", "while True")
    assert _decisive(evaluation).line in {first, first + 1}


def test_an_endless_loop_in_a_kernel_names_the_kernels_line_before_the_deadline(judge, monkeypatch):
    monkeypatch.setattr(judge.evaluator._workers, "_deadline_s", 8.0)
    evaluation = judge("relu", "endless_kernel_loop")
    assert evaluation.outcome == Judged(verdict=Verdict.TIMED_OUT)
    first = judge.line("endless_kernel_loop", "while ")
    assert first <= _decisive(evaluation).line <= first + 2
    # The simulator's own words: a worker that had to be ended says only which step it was at.
    assert evaluation.summary.startswith(
        "Time was up while the kernel still ran: thread (0, 0, 0) of CTA (0, 0, 0)"
    )


@pytest.mark.long
def test_the_pattern_of_wrong_values_is_named(judge):
    assert "1 element was never written, at the end" in judge("relu", "off_by_one_tail").summary
    assert "all zeros" in judge("relu", "zeros").summary
    assert "no element was ever written" in judge("relu", "unwritten").summary


@pytest.mark.parametrize(
    ("source", "kind"),
    [("def broken(:\n", "syntax-error"), ("import cutlass\nx = 1\n", "no-model")],
)
def test_screening_decides_before_anything_runs(judge, source, kind):
    evaluation = judge("relu", source)
    assert evaluation.outcome == Judged(verdict=Verdict.SCREENED_OUT)
    assert evaluation.findings[0].kind == kind
    assert judge.stages == []


@pytest.mark.long
def test_what_a_candidate_prints_is_kept_only_at_its_tail(judge):
    evaluation = judge("relu", "prints_much")
    assert evaluation.passed, evaluation.summary
    assert 0 < len(evaluation.log) <= 8000


@pytest.mark.long
def test_a_parameter_that_a_kernel_ignores_is_noticed(judge):
    passed = judge("scale", "scale")
    assert passed.passed, passed.summary
    assert "constant parameters redrawn" in passed.correctness.checks
    assert judge("scale", "scale_ignored").outcome == Judged(verdict=Verdict.WRONG_VALUES)


@pytest.mark.long
def test_a_parameter_under_another_name_is_taken_for_the_models(judge):
    evaluation = judge("scale", "scale_renamed")
    assert evaluation.passed, evaluation.summary
    (check,) = [item for item in evaluation.checks if item.name == "constant parameters redrawn"]
    assert (check.state, check.note) == (CheckState.RAN, "its 'weight' is taken for Model's 'scale'")


def test_a_parameter_that_is_left_out_is_named_before_anything_runs(judge):
    folded = judge.source("scale_renamed").replace(
        "torch.nn.Parameter(torch.ones(width))", "torch.ones(width)"
    )
    evaluation = judge("scale", folded)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES)
    assert evaluation.summary.startswith(
        "ModelNew has no parameter 'scale' of shape (61,); Model's is redrawn, so that its answer depends on it: "
        "keep Model's parameters by name."
    )
    assert _decisive(evaluation).kind == "missing-parameter"


def test_flags_of_the_text_come_with_the_verdict(judge):
    evaluation = judge("relu", "segfault")
    assert any(f.kind == "inside-python" and f.severity is Severity.FLAG for f in evaluation.findings)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import torch\n", "Model"),
        ("def broken(:\n", "parse"),
        ("raise RuntimeError('out of ideas')\n", "out of ideas"),
        ("import os\nos._exit(0)\n", "status 0"),
        (UNKNOWN_NAME, "y"),
    ],
)
def test_an_unusable_problem_is_a_sentence_and_not_a_verdict(judge, source, words):
    with pytest.raises(ProblemError, match=words):
        judge.facts(source)


def test_the_evaluator_imports_neither_torch_nor_the_dsl():
    code = (
        "import sys, cutegen_nb.evaluator.evaluator; "
        "print(sorted({'torch', 'cutlass', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


BROKEN_MACHINE = """
import sys

def broken(*_, **__):
    raise KeyError("r7")

class Broken(ModelNew):
    def forward(self, x):
        # Out of sys.modules while this runs, and put back after each turn.
        sys.meta_path[0].kept["cutegen_nb.simulator.machine.machine"].run = broken
        {call}

ModelNew = Broken
"""
RAISED = "return super().forward(x)"
SWALLOWED = "try: return super().forward(x)\n        except KeyError: return x"


@pytest.mark.first(1)
@pytest.mark.parametrize("call", [RAISED, SWALLOWED], ids=["raised", "swallowed"])
def test_a_failing_simulator_is_our_fault_and_never_a_verdict(judge, call):
    with pytest.raises(EvaluatorError, match=r"The simulator failed in kernel .*relu"):
        judge("relu", judge.source("relu") + BROKEN_MACHINE.format(call=call))


def test_a_compile_error_names_the_file_and_not_the_scratch_folder(judge):
    undefined = judge.source("relu").replace("value = x[index]", "value = x[index] + nothing")
    evaluation = judge("relu", undefined)
    assert "--> candidate.py:" in evaluation.summary
    assert "/kernels-" not in evaluation.summary + evaluation.findings[0].message


@pytest.mark.long
def test_an_oracle_of_another_shape_is_not_used_and_the_report_says_so(judge):
    plain = judge("relu", "relu").correctness
    assert not any(item.startswith("float64 oracle") for item in plain.checks_not_run)
    problem = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return y.reshape(-1) if y.dtype == torch.float64 else y

def get_inputs():
    return [torch.randn(37, 61)]

def get_init_inputs():
    return []
"""
    evaluation = judge(problem, "relu")
    assert evaluation.passed, evaluation.summary
    reason = next(item for item in evaluation.correctness.checks_not_run if "oracle" in item)
    assert reason == "float64 oracle: it gives shapes [(2257,)], the reference [(37, 61)]"


BIG = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(16384, 16384)]

def get_init_inputs():
    return []
"""


@pytest.mark.long
def test_a_pass_at_a_smaller_size_stores_a_sample_at_full_size_that_gives_an_estimate(judge):
    evaluation = judge(BIG, "relu")
    assert evaluation.passed, evaluation.summary
    assert evaluation.profile.launches[0].grid[0] < 2000
    sample = evaluation.full_size
    assert sample.missing == ""
    (launch,) = sample.launches
    assert launch.profile.grid == (16384 * 16384 // 256, 1, 1)
    assert launch.ctas < 50
    assert launch.profile.counters.gmem_load_bytes == 16384 * 16384 * 4
    assert launch.first_touch_sectors == 16384 * 16384 * 4 // 32
    assert decode(Evaluation, encode(evaluation)).full_size == sample
    guess = estimate(sample, find_target("h200"))
    # 2 GiB read and written; the memory of an H200 gives 4.8 TB/s at best.
    least_s = 2 * 2**30 / 4.8e12
    assert guess.target == "NVIDIA H200"
    assert next(term.seconds for term in guess.terms if term.name == "DRAM") == pytest.approx(
        least_s, rel=0.3
    )
    assert least_s < guess.seconds < 5 * least_s


@pytest.mark.long
def test_a_kernel_that_does_not_run_at_full_size_passes_with_the_reason_for_no_sample(judge):
    refuses = "        if x.numel() > 1_000_000:\n            raise ValueError('too large')\n        y = torch.empty_like"
    evaluation = judge(BIG, judge.source("relu").replace("        y = torch.empty_like", refuses))
    assert evaluation.passed, evaluation.summary
    assert evaluation.full_size.missing == "It raised ValueError while in forward: too large"
    assert evaluation.full_size.launches == ()


LAYER = """
import torch

class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(48, 64)]

def get_init_inputs():
    return [64]
"""


@pytest.fixture
def layer(judge):
    """The candidate `relu` for a linear layer, with a first line of forward."""

    def make(line):
        source = judge.source("relu").replace(
            "(self):\n        super().__init__()\n",
            "(self, width):\n        super().__init__()\n        self.linear = torch.nn.Linear(width, width)\n",
        )
        return source.replace(
            "        y = torch.empty_like(x)\n", f"        {line}\n        y = torch.empty_like(x)\n"
        )

    return make


PRODUCT = "x = self.linear(x)"


@pytest.mark.first(1)
@pytest.mark.parametrize("library", ["conv,matmul", "matmul"])
def test_a_product_left_to_pytorch_beside_a_kernel_passes_and_is_named(judge, layer, library):
    evaluation = judge(LAYER, layer(PRODUCT), library=library)
    assert evaluation.passed, evaluation.summary
    assert evaluation.library == (LibraryFamily.MATMUL,)
    assert (evaluation.label, library_words(evaluation.library)) == ("PASSED", "with PyTorch's matmul")


BY_ADDMM = (
    "PyTorch's aten.addmm.default ran inside forward in line {} on 10304 elements (168% of the problem's inputs "
    "and outputs); write it in a kernel, or allow PyTorch's with --library matmul."
)
BY_RELU = (
    "PyTorch's aten.relu.default ran inside forward in line {} on 6144 elements (100% of the problem's inputs and "
    "outputs); write it in a kernel."
)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("library", "line", "summary"),
    [
        ("", PRODUCT, BY_ADDMM),
        ("conv", PRODUCT, BY_ADDMM),
        ("matmul", "return torch.relu(self.linear(x))", BY_RELU),
    ],
    ids=["no policy", "another family", "the rest too"],
)
def test_work_of_pytorchs_is_named_by_operator_line_and_next_step(judge, layer, library, line, summary):
    source = layer(line)
    evaluation = judge(LAYER, source, library=library)
    assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK)
    number = next(n for n, text in enumerate(source.splitlines(), 1) if text.strip() == line)
    assert evaluation.summary == summary.format(number)
    assert _decisive(evaluation).line == number


def test_a_policy_that_leaves_nothing_to_a_kernel_says_so(judge, layer):
    product = LAYER.replace("torch.relu(self.linear(x))", "self.linear(x)")
    evaluation = judge(product, layer("return self.linear(x)"), library="matmul")
    assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK)
    assert "no kernel did a part of the work" in evaluation.summary
    assert "The policy --library matmul leaves nothing of this problem to a kernel" in evaluation.summary


@pytest.mark.long
def test_a_copy_by_pytorch_is_a_flag_and_accuses_nobody(judge):
    source = judge.source("relu").replace("return y", "return y.clone()")
    evaluation = judge("relu", source)
    assert evaluation.passed, evaluation.summary
    (flag,) = evaluation.findings
    assert (flag.kind, flag.severity) == ("torch-movement", Severity.FLAG)
    assert evaluation.exhibits == ()


@pytest.mark.long
def test_work_says_whose_work_a_call_was(judge, layer):
    alone = judge("relu", "relu").work
    assert (alone.own_fraction, alone.library_fraction, alone.host_fraction) == (1.0, 0.0, 0.0)
    shared = judge(LAYER, layer(PRODUCT), library="matmul").work
    assert shared.own_fraction + shared.library_fraction == pytest.approx(1.0)
    assert 0.2 < shared.library_fraction < 0.8


WRITTEN = """
import torch

class Model(torch.nn.Module):
    def __init__(self, *given):
        super().__init__()

    def forward(self, {names}):
        return {answer}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{given}]
"""


FOR_MODELS = {
    "matmul": {
        "names": "a, b",
        "answer": "a @ b",
        "inputs": "torch.rand(37, 45), torch.rand(45, 50)",
        "given": "",
    },
    "rmsnorm": {
        "names": "x",
        "answer": "x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-5)",
        "inputs": "torch.rand(2, 16, 9, 9)",
        "given": "16",
    },
    "swish": {"names": "x", "answer": "x * torch.sigmoid(x)", "inputs": "torch.rand(40, 261)", "given": ""},
}


@pytest.mark.long
@pytest.mark.first(1)
@pytest.mark.parametrize("name", FOR_MODELS)
def test_kernels_that_a_model_wrote_for_a_gpu_pass(judge, name):
    source = (Path(__file__).parent / "model_written" / f"{name}.py").read_text()
    evaluation = judge(WRITTEN.format(**FOR_MODELS[name]), source)
    assert evaluation.passed, evaluation.summary
    assert not evaluation.findings


@pytest.mark.long
def test_time_that_is_up_before_a_deciding_check_makes_a_pass_provisional(judge, monkeypatch):
    monkeypatch.setattr(evaluation_case, "HIGHER_TIERS_ON_SIMULATOR_S", dict.fromkeys(Tier, 1e-3))
    evaluation = judge("relu", "relu", Tier.B)
    assert evaluation.passed, evaluation.summary
    assert "many calls: no time was left for it" in evaluation.provisional
    assert "stress inputs: no time was left for it" in evaluation.provisional


def test_a_pass_beside_a_finding_that_decides_is_no_pass():
    good = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right.", device="simulator (sm_80)")
    assert evaluator._consistent(good) is good
    forged = SimpleNamespace(passed=True, findings=(Finding(kind="race", message="a race"),))
    with pytest.raises(ValueError, match="PASSED beside a finding that decides"):
        evaluator._consistent(forged)

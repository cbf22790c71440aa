"""Each way a candidate can go wrong has its own verdict, with its line where there is one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cutegen_nb.core.errors import EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.profile import ProfileSource

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


def test_a_right_kernel_passes_with_counts_and_checks(judge):
    evaluation = judge("relu", "relu")
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


def test_seeds_are_fresh_each_time(judge):
    assert judge("relu", "relu").correctness.seeds != judge("relu", "relu").correctness.seeds


@pytest.mark.parametrize(
    ("name", "verdict", "kind", "line_of"),
    [
        ("off_by_one_tail", Verdict.WRONG_VALUES, "wrong-values", None),
        ("out_of_range", Verdict.OUT_OF_BOUNDS, None, "index + 1"),
        ("zeros", Verdict.WRONG_VALUES, "wrong-values", None),
        ("unwritten", Verdict.WRONG_VALUES, "wrong-values", None),
        ("torch_relu", Verdict.CHEATED, "torch-compute", "torch.relu"),
        ("numpy_relu", Verdict.CHEATED, "no-kernel", None),
        ("replaces_comparison", Verdict.CHEATED, "harness-replaced", None),
        ("exit_at_import", Verdict.EXITED, "exited", "raise SystemExit"),
        ("hard_exit", Verdict.EXITED, "exited", None),
        ("segfault", Verdict.CRASHED, "signal", "string_at"),
        ("raises", Verdict.CRASHED, "exception", "raise ValueError"),
        ("eats_memory", Verdict.OUT_OF_MEMORY, "out-of-memory", "hoard.append"),
        ("fork_bomb", Verdict.CRASHED, "too-many-processes", None),
        ("modifies_input", Verdict.INPUT_MODIFIED, "input-modified", None),
        ("wrong_dtype", Verdict.WRONG_DTYPE, "wrong-dtype", None),
        ("wrong_shape", Verdict.WRONG_SHAPE, "wrong-shape", None),
        ("wrong_number", Verdict.WRONG_SHAPE, "wrong-number", None),
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


def test_an_endless_loop_times_out_with_its_line(judge, monkeypatch):
    monkeypatch.setattr(judge.evaluator._workers, "_deadline_s", 5.0)
    evaluation = judge("relu", "endless_host_loop")
    assert evaluation.outcome == Judged(verdict=Verdict.TIMED_OUT)
    assert "5 s" in evaluation.summary
    first = judge.line("endless_host_loop", "while True")
    assert _decisive(evaluation).line in {first, first + 1}
    assert evaluation.duration_s < 15.0


def test_an_endless_loop_in_a_kernel_names_the_kernels_line_before_the_deadline(judge, monkeypatch):
    monkeypatch.setattr(judge.evaluator._workers, "_deadline_s", 8.0)
    evaluation = judge("relu", "endless_kernel_loop")
    assert evaluation.outcome == Judged(verdict=Verdict.TIMED_OUT)
    first = judge.line("endless_kernel_loop", "while ")
    assert first <= _decisive(evaluation).line <= first + 2
    assert evaluation.duration_s < 8.0


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


def test_what_a_candidate_prints_is_kept_only_at_its_tail(judge):
    evaluation = judge("relu", "prints_much")
    assert evaluation.passed, evaluation.summary
    assert 0 < len(evaluation.log) <= 8000


def test_a_parameter_that_a_kernel_ignores_is_noticed(judge):
    passed = judge("scale", "scale")
    assert passed.passed, passed.summary
    assert "constant parameters redrawn" in passed.correctness.checks
    assert judge("scale", "scale_ignored").outcome == Judged(verdict=Verdict.WRONG_VALUES)


def test_a_parameter_under_another_name_keeps_its_initial_value(judge):
    evaluation = judge("scale", "scale_renamed")
    assert evaluation.passed, evaluation.summary
    assert any("constant parameters redrawn" in item for item in evaluation.correctness.checks_not_run)


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


@pytest.mark.parametrize("call", [RAISED, SWALLOWED], ids=["raised", "swallowed"])
def test_a_failing_simulator_is_our_fault_and_never_a_verdict(judge, call):
    with pytest.raises(EvaluatorError, match=r"The simulator failed in kernel .*relu"):
        judge("relu", judge.source("relu") + BROKEN_MACHINE.format(call=call))


def test_a_compile_error_names_the_file_and_not_the_scratch_folder(judge):
    undefined = judge.source("relu").replace("value = x[index]", "value = x[index] + nothing")
    evaluation = judge("relu", undefined)
    assert "--> candidate.py:" in evaluation.summary
    assert "/kernels-" not in evaluation.summary + evaluation.findings[0].message


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

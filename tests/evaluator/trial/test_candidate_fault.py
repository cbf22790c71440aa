"""An exception of a candidate becomes a verdict with the line that it points at."""

from __future__ import annotations

import importlib.util
import linecache

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.trial.candidate_fault import (
    CONSTRUCTING,
    IMPORTING,
    RUNNING,
    CandidateFault,
    blamed,
    blaming,
    classify,
)


@pytest.fixture
def raised(tmp_path):
    """The fault that these lines of a candidate's file become, and the file."""

    def run(lines, phase=RUNNING):
        path = tmp_path / "candidate.py"
        path.write_text(lines)
        linecache.clearcache()
        spec = importlib.util.spec_from_file_location("some_candidate", path)
        with pytest.raises(CandidateFault) as caught, blamed(phase, path):
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
        return caught.value

    return run


@pytest.mark.parametrize(
    "case",
    [
        ("x = 1\nraise ValueError('no')", RUNNING, Verdict.CRASHED, "exception",
         "It raised ValueError while in forward: no", 2),
        ("raise ValueError", CONSTRUCTING, Verdict.CRASHED, "exception",
         "It raised ValueError while constructing ModelNew: (no message)", 1),
        ("x = 1\n\ndef f(:\n  pass", IMPORTING, Verdict.COMPILE_FAILED, "import-error",
         "The file did not import: SyntaxError: invalid syntax (candidate.py, line 3)", 3),
        ("import nowhere_to_be_found", IMPORTING, Verdict.COMPILE_FAILED, "import-error",
         "The file did not import: ModuleNotFoundError: No module named 'nowhere_to_be_found'", 1),
        ("import sys\nsys.exit('bye')", RUNNING, Verdict.EXITED, "exited",
         "The candidate called exit('bye') while in forward.", 2),
        ("raise KeyboardInterrupt", RUNNING, Verdict.CRASHED, "exception",
         "It raised KeyboardInterrupt while in forward: (no message)", 1),
        ("raise MemoryError('of 9 GiB')", RUNNING, Verdict.OUT_OF_MEMORY, "out-of-memory",
         "Memory ran out while in forward: MemoryError: of 9 GiB", 1),
        ("raise RuntimeError('CUDA error: an illegal memory access was encountered')", RUNNING,
         Verdict.OUT_OF_BOUNDS, "out-of-bounds",
         "The GPU reported a fault while in forward: CUDA error: an illegal memory access was encountered", 1),
        ("raise RuntimeError('cuLaunchKernel failed\\nCUDA error: misaligned address\\nFor debugging, see …')", RUNNING,
         Verdict.MISALIGNED, "misaligned",
         "The GPU reported a fault while in forward: CUDA error: misaligned address", 1),
        ("raise RuntimeError('the launch timed out and was terminated')", RUNNING, Verdict.TIMED_OUT, "timed-out",
         "The GPU reported a fault while in forward: the launch timed out and was terminated", 1),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise OSError('\\x1b[31mred\\x1b[0m') from error",
         RUNNING, Verdict.CRASHED, "exception", "It raised OSError while in forward: red", 4),
    ],
    ids=[
        "exception", "without words", "syntax", "import", "exit", "interrupt", "memory", "illegal access",
        "misaligned", "launch timed out", "colours",
    ],
)  # fmt: skip
def test_each_exception_has_its_verdict_sentence_and_line(raised, case):
    lines, phase, verdict, kind, message, line = case
    fault = raised(lines, phase)
    assert fault.outcome == Judged(verdict=verdict)
    assert (fault.finding.kind, fault.finding.message, fault.finding.line) == (kind, message, line)


def test_a_message_loses_the_scratch_folder_and_what_is_too_long(raised):
    fault = raised("raise ValueError(__file__ + ':7:5: ' + 'x' * 5000)")
    assert fault.finding.message.startswith("It raised ValueError while in forward: candidate.py:7:5: xxx")
    assert fault.finding.message.endswith("x …")
    assert len(fault.finding.message) < 1700
    assert (fault.finding.line, fault.finding.column) == (7, 5), (
        "a message that names a line is believed first"
    )


def test_whatever_the_dsl_raises_did_not_compile(tmp_path):
    error = type("DSLRuntimeError", (Exception,), {"__module__": "cutlass.base_dsl"})("type mismatch")
    fault = classify(error, RUNNING, tmp_path / "candidate.py")
    assert fault.outcome == Judged(verdict=Verdict.COMPILE_FAILED)
    assert fault.finding.message == "The DSL did not compile it: DSLRuntimeError: type mismatch"
    error = type("MLIRError", (Exception,), {"__module__": "cutlass.base_dsl"})(
        'Operation creation failed:\nerror: "y[i] = x[i, 0]"("candidate.py":9:13): expects one index'
    )
    fault = classify(error, RUNNING, tmp_path / "candidate.py")
    assert fault.finding.message.endswith("MLIRError: Operation creation failed: expects one index")
    memory = torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20 GiB. GPU 0 has a total capacity of 79.18 GiB of which 8.49 GiB "
        "is free. Including non-PyTorch memory, this process has 70.68 GiB memory in use. If reserved but "
        "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    )
    fault = classify(memory, RUNNING, tmp_path / "x")
    assert fault.outcome == Judged(verdict=Verdict.OUT_OF_MEMORY)
    cublas = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    assert classify(cublas, RUNNING, tmp_path / "x").finding.kind == "out-of-memory"
    # No advice on settings that are the judge's own.
    assert fault.finding.message.endswith("of which 8.49 GiB is free.")


def test_a_name_that_a_module_lacks_is_told_with_those_like_it(raised):
    told = "module 'linecache' has no attribute 'getlin'. Names like it there: getline, getlines"
    assert told in raised("import linecache\nlinecache.getlin").finding.message
    assert "Names like it" not in raised("import linecache\nlinecache.zzzzzzzzzz").finding.message
    assert "Names like it" not in raised("'text'.uper").finding.message


def test_a_fault_within_a_fault_stays_as_it_is(tmp_path):
    inner = classify(ValueError("inner"), CONSTRUCTING, tmp_path / "candidate.py")
    with pytest.raises(CandidateFault) as caught, blamed(RUNNING, tmp_path / "candidate.py"):
        raise inner
    assert caught.value is inner


def test_a_call_that_is_wrapped_once_is_blamed_each_time(tmp_path):
    half = blaming(lambda given: 1 / given, RUNNING, tmp_path / "candidate.py")
    assert half(2) == 0.5
    for _ in range(2):
        with pytest.raises(CandidateFault, match="It raised ZeroDivisionError while in forward"):
            half(0)

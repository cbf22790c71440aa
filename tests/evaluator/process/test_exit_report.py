"""Verdicts and errors from the end of a worker: the candidate's fault, the problem's or ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.errors import EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.process import exit_report
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, WorkerRun

LIMITS = ProcessLimits(deadline_s=20.0)
STAGE = "running seed 1 of 3"
TRACE = """Current thread 0x1 (most recent call first):
  File "/site/torch/nn/modules/module.py", line 1778 in _call_impl
  File "/scratch/run-1/candidate.py", line 31 in forward
  File "/scratch/run-1/candidate.py", line 40 in helper
"""


def run(how="exited", code=0, log="", malformed="", **more):
    end = {"how": how, "code": code, "log": log, "processes": 1, "peak_bytes": 0, "left": 0, **more}
    return WorkerRun(end=end, malformed=malformed)


@pytest.mark.parametrize(
    ("ended", "verdict", "kind", "summary"),
    [
        (run("deadline", None, TRACE), Verdict.TIMED_OUT, "timed-out",
         "Not finished after 20 s; it was still running seed 1 of 3 (line 31)."),
        (run("processes", None, processes=99), Verdict.CRASHED, "too-many-processes",
         "The candidate had 99 processes while running seed 1 of 3, and"),
        (run("memory", None, peak_bytes=3 << 30), Verdict.OUT_OF_MEMORY, "out-of-memory",
         "The candidate held 3.0 GiB of memory while running seed 1 of 3, more than is allowed."),
        (run("signalled", -11, TRACE), Verdict.CRASHED, "signal",
         "While running seed 1 of 3 the candidate was ended by SIGSEGV (line 31)."),
        (run("signalled", -9), Verdict.CRASHED, "signal",
         "While running seed 1 of 3 the candidate was ended by SIGKILL, which the system sends when memory runs out."),
        (run("signalled", -6, "terminate called after throwing an instance of 'std::bad_alloc'"),
         Verdict.OUT_OF_MEMORY, "out-of-memory", "Memory ran out while running seed 1 of 3."),
        (run(code=3), Verdict.EXITED, "exited",
         "The process ended with status 3 and no result while running seed 1 of 3."),
        (run(malformed="b'{}\\n' is\nnot JSON"), Verdict.CHEATED, "forged-result",
         "The candidate tampered with the channel that carries its result: b'{}\\n' is\n    not JSON."),
        (WorkerRun(end=None), Verdict.CRASHED, "supervisor-killed",
         "The process that watches the candidate was killed or stopped while running seed 1 of 3."),
    ],
    ids=lambda item: item if isinstance(item, str) and "-" in item else "",
)  # fmt: skip
def test_each_end_without_a_result_has_its_verdict_and_sentence(ended, verdict, kind, summary):
    found = exit_report.verdict_without_result(ended, LIMITS, STAGE, "simulator")
    assert found.outcome == Judged(verdict=verdict)
    assert found.findings[0].kind == kind
    assert found.summary.startswith(summary)
    assert bool(found.exhibits) is (verdict is Verdict.CHEATED)


def test_a_limit_of_memory_that_was_exceeded_is_named():
    limits = replace(LIMITS, resident_bytes=2 << 30)
    found = exit_report.verdict_without_result(run("memory", None, peak_bytes=3 << 30), limits, STAGE, "GPU")
    assert found.summary.endswith("held 3.0 GiB of memory while running seed 1 of 3; the limit is 2.0 GiB.")


def test_a_kernel_that_is_not_compiled_in_time_is_told_of_loops_that_never_end():
    found = exit_report.verdict_without_result(
        run("deadline", None), LIMITS, f"{STAGE}, compiling", "simulator"
    )
    assert "one over a tensor (`sum(x)`, `for v in x`) has no end" in found.summary


def test_the_end_of_the_output_is_kept():
    found = exit_report.verdict_without_result(run(log="a" * 9000 + "end"), LIMITS, STAGE, "simulator")
    assert len(found.log) == exit_report.LOG_CHARACTERS
    assert found.log.endswith("end")


def test_processes_that_outlived_the_candidate_are_flagged():
    assert exit_report.leftovers(run()) == ()
    (flag,) = exit_report.leftovers(run(left=2))
    assert (flag.kind, flag.severity) == ("left-processes", Severity.FLAG)
    assert flag.message.startswith("2 process(es)")


def test_a_fault_of_ours_says_where_and_asks_for_a_report():
    heard = RecordHandler(lambda _: None, stage="comparing")
    heard({"kind": "fault", "message": "KeyError: 'x'", "trace": "line one\nline two"})
    with pytest.raises(EvaluatorError) as raised:
        exit_report.raise_reported_error(heard)
    said = str(raised.value)
    assert said.startswith("The worker failed while comparing: KeyError: 'x'. This is a fault of cutegen_nb;")
    assert said.endswith("    line one\n    line two")


def test_without_an_error_nothing_is_raised():
    heard = RecordHandler(lambda _: None)
    exit_report.raise_reported_error(heard)
    heard({"kind": "result", "evaluation": {}})
    exit_report.raise_reported_error(heard)


def test_a_problem_that_ends_its_worker_is_told_so():
    error = exit_report.unusable_problem_error(run(code=1), LIMITS, "tracing the problem")
    assert isinstance(error, ProblemError)
    assert str(error).startswith("The problem cannot be traced. The process ended with status 1")


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (None, "ended before it ran the candidate (no report says why); evaluate again."),
        (
            {"how": "exited", "code": 1, "log": ""},
            "ended before it ran the candidate (status 1); evaluate again.",
        ),
        (
            {"how": "signalled", "code": -9, "log": "a\n\nb\nc\nd\n"},
            "(SIGKILL, which the system sends when memory runs out); evaluate again. It printed at the end: b | c | d",
        ),
    ],
)
def test_a_worker_that_never_began_is_our_fault_with_what_it_printed(end, words):
    assert str(exit_report.never_started_error(end)).endswith(words)

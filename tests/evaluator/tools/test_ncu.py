"""Nsight Compute around a candidate: what it is asked, what comes back, and what is said where nothing does.

The tool itself is a program of NVIDIA's that needs a GPU: here a program of its name stands in for it and hands
out what the real one gave on an H200.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import lzma
import math
import os
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.profile import Metric, ProfileSource
from cutegen_nb.evaluator.tools import ncu as nsight
from cutegen_nb.evaluator.tools.ncu_errors import PERMISSION_PAGE, NoCounters, no_counters_error
from cutegen_nb.evaluator.tools.ncu_import import import_report
from cutegen_nb.evaluator.tools.ncu_profile import SHARED_UNITS, profile_of
from cutegen_nb.evaluator.tools.ncu_rep_file import read_report
from cutegen_nb.evaluator.tools.ncu_report import UnreadableReport

HERE = Path(__file__).parents[1]
DATA = HERE.parent / "hardware" / "data" / "nsight"
KERNEL = (HERE / "candidates" / "relu.py").read_text()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "small.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "small.ncu-rep.xz").read_bytes()))
    return path


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts a program called ncu before all others; `ncu(body)` writes it in Python."""

    def put(body):
        path = tmp_path / "bin" / "ncu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\nimport os, shutil, sys, time\nargs = sys.argv[1:]\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return path

    return put


def order(**changed):
    problem = Problem(
        name="relu", source=(HERE / "problems" / "relu.py").read_text(), form=ProblemForm.KERNELBENCH
    )
    return nsight.ProfileRequest(
        **{"problem": problem, "candidate": Candidate(source=KERNEL, author="test"), **changed}
    )


def counted(**changed):
    return asyncio.run(nsight.collect_counters(order(**changed), lambda _: None))


# --- what is asked -------------------------------------------------------------------------------------------------


def test_only_kernels_compiled_from_the_candidate_are_looked_at():
    assert nsight.kernel_filter(KERNEL) == "regex:^kernel_cutlass_(relu_kernel)_"
    two = "@cute.kernel\ndef a(x): ...\n@cute.kernel(device=1)\ndef b_1(x): ...\n@cute.jit\ndef host(): ...\n"
    assert nsight.kernel_filter(two) == "regex:^kernel_cutlass_(a|b_1)_"
    assert nsight.kernel_filter("x = 1") == "regex:^kernel_cutlass_"


def test_clocks_are_left_alone_and_launches_are_bounded(tmp_path):
    asked = nsight.arguments(nsight.Detail.TUNING, "regex:x", tmp_path / "r")
    pairs = list(itertools.pairwise(asked))
    assert ("--clock-control", "none") in pairs
    assert ("--launch-count", str(nsight.MOST_LAUNCHES)) in pairs
    assert ("--kernel-name", "regex:x") in pairs
    assert ("--section", "SourceCounters") in pairs


def test_a_structure_is_told_by_fewer_sections_than_numbers_are_tuned_by(tmp_path):
    few = nsight.SECTIONS[nsight.Detail.STRUCTURE]
    assert set(few) < set(nsight.SECTIONS[nsight.Detail.TUNING])
    assert "SourceCounters" not in nsight.arguments(nsight.Detail.STRUCTURE, "x", tmp_path / "r")


# --- what comes back ------------------------------------------------------------------------------------------------

_HANDS_OUT = 'shutil.copy({report!r}, args[args.index("--export") + 1])'


def test_the_profile_says_tool_device_driver_day_and_clocks(ncu, report):
    ncu(_HANDS_OUT.format(report=str(report)))
    found = counted(driver="580.159.04")
    assert found.source is ProfileSource.NSIGHT
    assert len(found.launches) == 20
    for part in (
        "Nsight Compute 2025.3.1",
        "NVIDIA H200",
        "driver 580.159.04",
        "2026-11-21",
        "clocks not locked",
    ):
        assert part in found.made_by


def test_the_program_under_the_tool_is_the_candidates_one_run_with_lines_in_its_code(ncu, report, tmp_path):
    told = tmp_path / "told"
    ncu(
        f"open({str(told)!r}, 'w').write(repr((args, dict(os.environ))))\n"
        + _HANDS_OUT.format(report=str(report))
    )
    counted(variables={"CUDA_VISIBLE_DEVICES": "GPU-aaaa-1"})
    arguments, environment = eval(told.read_text(), {})
    assert environment["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa-1", "the GPU that the evaluator is bound to"
    assert arguments[arguments.index("-m") + 1] == "cutegen_nb.evaluator.worker.run_once"
    assert "--watched" in arguments
    assert "--unconfined" not in arguments
    assert environment["CUTE_DSL_LINEINFO"] == "1"
    assert "OPENAI_API_KEY" not in environment


def test_units_that_a_split_gpu_shares_are_left_out_and_said_so(report):
    """CUPTI's documentation: metrics of shared units of a MIG instance come as NaN."""
    recorded = read_report(report)
    first = recorded.kernels[0]
    shared = {names.DRAM_SHARE: Metric(value=math.nan), names.L2_SHARE: Metric(value=math.nan)}
    split = replace(recorded, kernels=(replace(first, metrics=first.metrics | shared),))
    found = profile_of(split)
    assert SHARED_UNITS in found.made_by
    assert names.DRAM_SHARE not in found.launches[0].metrics
    assert SHARED_UNITS not in profile_of(recorded).made_by
    json.dumps(encode(found), allow_nan=False)


# --- what is said where nothing does --------------------------------------------------------------------------------


def test_without_ncu_the_message_names_the_package(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    with pytest.raises(NoCounters, match=r"`ncu` was not found.*nsight-compute"):
        counted()


def test_a_tool_that_hangs_is_ended_at_the_deadline_with_all_it_started(ncu, tmp_path):
    sign = tmp_path / "sign"
    ncu(f"if os.fork() == 0:\n    time.sleep(2)\n    open({str(sign)!r}, 'w')\ntime.sleep(60)")
    with pytest.raises(NoCounters, match="not finished after 1 s"):
        counted(deadline_s=1.0)
    time.sleep(2.5)  # by when the child would have left it
    assert not sign.exists()


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


def test_the_reason_is_flagged_once_and_the_evaluation_stands(ncu):
    ncu("print('==ERROR== ERR_NVGPUCTRPERM - no'); sys.exit(1)")
    counting, heard = nsight.CounterCollector(), []
    passed = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="", device="NVIDIA H200")
    first, second = (asyncio.run(counting.with_counters(passed, order(), heard.append)) for _ in range(2))
    assert first.passed
    assert second == passed
    (flag,) = first.findings
    assert (flag.kind, flag.severity) == ("no-counters", Severity.FLAG)
    assert PERMISSION_PAGE in flag.message
    assert sum("no counters" in word for word in heard) == 2


# --- reports of other versions --------------------------------------------------------------------------------------


def test_a_report_that_our_reader_does_not_know_is_read_through_ncu(ncu, tmp_path):
    for page, file in (("raw", "large_raw.csv"), ("source", "large_source.csv")):
        (tmp_path / page).write_bytes(lzma.decompress((DATA / f"{file}.xz").read_bytes()))
    ncu(
        f"page = args[args.index('--page') + 1]\nsys.stdout.write(open({str(tmp_path)!r} + '/' + page).read())"
    )
    strange = tmp_path / "strange.ncu-rep"
    strange.write_bytes(b"NVR\0" + b"\xff" * 64)
    found = import_report(strange)
    assert len(found.kernels) == 20
    assert found.device == "NVIDIA H200"
    assert any(one.line for one in found.kernels[0].instructions)


def test_a_file_that_nobody_can_read_says_what_could(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    other = tmp_path / "other.ncu-rep"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match=r"does not begin with NVR.*ncu_report.*ncu on PATH"):
        import_report(other)
    with pytest.raises(UsageError, match="cannot be opened: No such file"):
        import_report(tmp_path / "missing.ncu-rep")


def test_cut_and_damaged_reports_are_refused_and_nothing_worse(report, tmp_path):
    data = report.read_bytes()[:200_000]
    damaged = tmp_path / "damaged.ncu-rep"
    step = len(data) // 25
    for at in range(5, len(data), step):
        for text in (data[:at], data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]):
            damaged.write_bytes(text)
            with contextlib.suppress(UnreadableReport):
                read_report(damaged)
    damaged.write_bytes(data)
    with pytest.raises(UnreadableReport, match=r"damaged\.ncu-rep cannot be read"):
        read_report(damaged)

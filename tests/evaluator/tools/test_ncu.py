"""Nsight Compute around a candidate: what it is asked, what comes back, and what is said where nothing does.

The tool itself is a program of NVIDIA's that needs a GPU: here a program of its name stands in for it and hands
out what the real one gave on an H200.
"""

from __future__ import annotations

import asyncio
import itertools
import lzma
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.profile import ProfileSource
from cutegen_nb.evaluator.tools import ncu as nsight
from cutegen_nb.evaluator.tools.ncu_errors import PERMISSION_PAGE, NoCounters

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


@pytest.mark.long
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


@pytest.mark.long
def test_a_tool_that_hangs_is_ended_at_the_deadline_with_all_it_started(ncu, tmp_path):
    sign = tmp_path / "sign"
    ncu(f"if os.fork() == 0:\n    time.sleep(2)\n    open({str(sign)!r}, 'w')\ntime.sleep(60)")
    with pytest.raises(NoCounters, match="not finished after 1 s"):
        counted(deadline_s=1.0)
    time.sleep(2.5)  # by when the child would have left it
    assert not sign.exists()


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

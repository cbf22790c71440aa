"""Reports of the tools become findings on a candidate's lines; a tool without a result accuses nobody.

The tool is a program on PATH that prints what the real one printed on an H200; the evaluation goes through real
processes.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.graph import Graph, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemForm, Rewrite, Workload
from cutegen_nb.evaluator.tools import sanitizer as sanitizing
from cutegen_nb.evaluator.tools import sanitizer_checks as sanitizer
from cutegen_nb.evaluator.tools.sanitizer_report import read_report

HERE = Path(__file__).parents[1]
DATA = HERE / "data" / "sanitizer"
TOOLS = {tool.name: tool for tool in sanitizer.TOOLS}
NAMES = [tool.check.name for tool in sanitizer.TOOLS]
FAKE = """#!{python}
import json, os, pathlib, subprocess, sys, time
given = sys.argv[1:]
tool, log = (given[given.index(name) + 1] for name in ("--tool", "--log-file"))
program = given[given.index("-P") - 1 :]
order = json.loads(pathlib.Path(program[-3]).read_text())
size = "full" if not order["rewrites"] else "small"
folder = pathlib.Path({folder!r})
(folder / f"seen-{{tool}}-{{size}}.json").write_text(json.dumps(
    {{"given": given, "kernel": pathlib.Path(program[-2]).read_text(), "environment": dict(os.environ),
      "temporary": os.path.isdir(os.environ["TMPDIR"])}}))
plan = json.loads((folder / "plan.json").read_text())
clean = "racecheck_clean" if tool == "racecheck" else "memcheck_clean"
doing = plan.get(f"{{tool}} {{size}}") or plan.get(tool) or clean
if doing == "hangs":
    time.sleep(60)
if doing == "raises":
    print("Traceback (most recent call last):\\nValueError: the rows must be a multiple of 1,024")
    pathlib.Path(log).write_text("========= COMPUTE-SANITIZER\\n========= Error: process didn't terminate "
        "successfully\\n========= Target application returned an error\\n========= ERROR SUMMARY: 0 errors\\n")
    sys.exit(1)
text = (pathlib.Path({data!r}) / f"{{doing}}.txt").read_text()
pathlib.Path(log).write_text(text)
print("what the program prints")
sys.exit(6 if "didn't terminate" in text else 0)
"""


def workload(rows, *rewrites):
    spec = TensorSpec(shape=(rows, 61), dtype="float32", strides=(61, 1))
    graph = Graph(inputs=(Value(name="x", spec=spec),), parameters=(), nodes=(), outputs=())
    return Workload(graph=graph, flops=1, least_bytes=1, rewrites=rewrites)


FULL = workload(4096)
SMALL = workload(37, Rewrite(line=10, column=24, full=4096, scaled=37))
PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right.", device="GPU", tier=Tier.C)


@pytest.fixture
def under(tmp_path, monkeypatch):
    """Run a candidate that passed under the tools; `plan` says what each prints, by tool or tool and size."""
    tool = tmp_path / "bin" / "compute-sanitizer"
    tool.parent.mkdir()
    tool.write_text(FAKE.format(python=sys.executable, folder=str(tmp_path), data=str(DATA)))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("A_KEY", "secret")

    def run(plan=None, *, kernel="shared_race", sizes=(FULL,), deadline_s=30.0):
        (tmp_path / "plan.json").write_text(json.dumps(plan or {}))
        order = sanitizing.SanitizerRequest(
            problem=Problem(
                name="relu",
                source=(HERE / "problems" / "relu.py").read_text(),
                form=ProblemForm.KERNELBENCH,
            ),
            candidate=Candidate(source=(HERE / "candidates" / f"{kernel}.py").read_text(), author="test"),
            sizes=sizes,
            confine_files=True,
            deadline_s=deadline_s,
        )
        return asyncio.run(sanitizing.through_tools(PASSED, order, lambda _: None))

    run.seen = lambda name: json.loads((tmp_path / f"seen-{name}.json").read_text())
    return run


def states(evaluation):
    return [item.state for item in evaluation.checks]


def test_a_candidate_in_which_no_tool_finds_anything_stays_passed(under):
    evaluation = under()
    assert evaluation.passed
    assert [item.name for item in evaluation.checks] == NAMES
    assert states(evaluation) == [CheckState.RAN] * 4
    assert evaluation.checks[0].note == "with float32 (4096, 61)"
    assert not evaluation.findings


def test_each_tool_is_started_around_one_run_of_the_candidate_and_told_where_to_write(under):
    under()
    seen = under.seen("memcheck-full")
    given = seen["given"]
    assert given[: given.index("--log-file")] == [
        "--tool", "memcheck", "--print-limit", "50", "--show-backtrace", "device", "--strip-paths", "no",
    ]  # fmt: skip
    assert given[given.index("--report-api-errors") + 1] == "no"
    assert given[given.index("-P") + 1 :][:2] == ["-m", "cutegen_nb.evaluator.worker.run_once"]
    assert "shared[thread]" in seen["kernel"]
    assert seen["environment"]["CUTE_DSL_LINEINFO"] == "1"
    assert seen["environment"]["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"
    assert "A_KEY" not in seen["environment"]
    assert seen["temporary"], "the tool needs its TMPDIR"
    assert "--report-api-errors" not in under.seen("racecheck-full")["given"]


@pytest.mark.parametrize(
    ("printed", "verdict", "line", "words"),
    [
        ("memcheck_read", Verdict.OUT_OF_BOUNDS, 18, "1 bytes after the nearest allocation"),
        ("memcheck_write", Verdict.OUT_OF_BOUNDS, 20, "Invalid __global__ write of size 4 bytes"),
        ("racecheck_race", Verdict.RACE, 23, "A read and a write of the same shared memory"),
    ],
)
def test_what_decides_on_the_simulator_decides_here(under, printed, verdict, line, words):
    tool = printed.partition("_")[0]
    evaluation = under({tool: printed})
    assert evaluation.outcome == Judged(verdict=verdict)
    finding = evaluation.findings[0]
    assert (finding.severity, finding.line) == (Severity.DECIDES, line)
    assert evaluation.summary == finding.message
    assert words in finding.message
    assert f"candidate.py:{line}" in finding.message
    assert evaluation.exhibits[0].statement.startswith(f"compute-sanitizer {tool} reports: ")
    assert evaluation.exhibits[0].trace
    ran = NAMES.index(TOOLS[tool].check.name) + 1
    assert [item.name for item in evaluation.checks] == NAMES[:ran]
    assert evaluation.checks[-1].state is CheckState.FOUND


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("tool", "printed", "kind", "line"),
    [
        ("initcheck", "initcheck_unwritten", "uninitialised-read", 18),
        ("synccheck", "synccheck_divergent", "divergent-barrier", 23),
    ],
)
def test_what_only_informs_on_the_simulator_only_informs_here(under, tool, printed, kind, line):
    evaluation = under({tool: printed})
    assert evaluation.passed
    finding = evaluation.findings[0]
    assert (finding.kind, finding.line, finding.severity) == (kind, line, Severity.FLAG)
    assert states(evaluation).count(CheckState.FOUND) == 1
    assert len(evaluation.findings) == 1, "threads on one line are one finding"


@pytest.mark.long
@pytest.mark.parametrize(
    ("doing", "why"),
    [
        ("hangs", "not finished after 1 s"),
        ("not_attached", "it gave up: Error: No attachable process found. compute-sanitizer timed-out."),
        (
            "raises",
            "the program under it ended with status 1: ValueError: the rows must be a multiple of 1,024",
        ),
    ],
)
def test_a_tool_that_comes_to_nothing_accuses_nobody_and_says_why(under, doing, why):
    evaluation = under({"memcheck": doing}, deadline_s=1.0 if doing == "hangs" else 30.0)
    assert evaluation.passed
    assert evaluation.checks[0].state is CheckState.NOT_RUN
    assert why in evaluation.checks[0].note
    assert evaluation.checks[1].state is CheckState.RAN


@pytest.mark.long
def test_the_small_size_is_looked_at_alone_where_nothing_is_found(under):
    evaluation = under(sizes=(SMALL, FULL))
    assert evaluation.checks[0].note == "with float32 (37, 61)"
    with pytest.raises(FileNotFoundError):
        under.seen("memcheck-full")


@pytest.mark.long
def test_a_fault_at_the_small_size_counts_when_the_problems_own_shows_it_too(under):
    evaluation = under({"memcheck": "memcheck_read"}, sizes=(SMALL, FULL))
    assert evaluation.outcome == Judged(verdict=Verdict.OUT_OF_BOUNDS)


@pytest.mark.long
def test_a_fault_at_the_small_size_only_is_a_flag(under):
    evaluation = under({"memcheck small": "memcheck_read"}, sizes=(SMALL, FULL))
    assert evaluation.passed
    finding = evaluation.findings[0]
    assert finding.severity is Severity.FLAG
    assert finding.message.endswith("At the problem's own size it finds nothing.")


@pytest.mark.long
def test_a_fault_that_could_not_be_tried_at_the_problems_own_size_is_a_flag(under):
    evaluation = under(
        {"memcheck small": "memcheck_read", "memcheck full": "not_attached"}, sizes=(SMALL, FULL)
    )
    assert evaluation.passed
    assert "At the problem's own size: it gave up" in evaluation.findings[0].message


@pytest.mark.long
def test_a_kernel_for_the_problems_own_size_only_is_looked_at_there(under):
    evaluation = under({"memcheck small": "raises"}, sizes=(SMALL, FULL))
    assert evaluation.checks[0].state is CheckState.RAN
    assert evaluation.checks[0].note == "with float32 (4096, 61)"


def judged(tool, text, source="x"):
    return sanitizer.judged(TOOLS[tool], read_report(text), source)


def test_reads_of_pytorchs_own_kernels_accuse_nobody():
    text = (DATA / "initcheck_unwritten.txt").read_text()
    library = text.replace("kernel_cutlass_relu_kernel", "at::native::elementwise_kernel")
    assert judged("initcheck", text)
    assert not judged("initcheck", library)


def test_a_race_beside_copies_that_racecheck_cannot_follow_is_a_flag():
    race = (DATA / "racecheck_race.txt").read_text()
    assert judged("racecheck", race)[0].verdict is Verdict.RACE
    assert judged("racecheck", race, "softmax")[0].verdict is Verdict.RACE
    found = judged("racecheck", race, "atom = cpasync.CopyBulkG2SOp()")[0]
    assert found.verdict is None
    assert found.finding.message.endswith("it may be no race.")


def test_a_warning_of_racecheck_is_a_flag():
    race = (DATA / "racecheck_race.txt").read_text().replace("Error: Race", "Warning: Race")
    assert judged("racecheck", race)[0].finding.severity is Severity.FLAG


def test_a_place_in_the_dsls_own_files_names_the_kernel_and_no_line():
    text = (
        (DATA / "memcheck_read.txt")
        .read_text()
        .replace("/tmp/kernels/candidate.py", "/site/cutlass/cute/math.py")
    )
    found = judged("memcheck", text)[0]
    assert found.finding.line == 0
    assert "in kernel_cutlass_relu_kernel" in found.finding.message

"""NVIDIA's tools are found where the toolkit is."""

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
from cutegen_nb.core.graph import Graph, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemForm, Workload
from cutegen_nb.evaluator.tools import sanitizer as sanitizing
from cutegen_nb.evaluator.tools import sanitizer_checks as sanitizer
from cutegen_nb.evaluator.tools.tool_run import locate

HERE = Path(__file__).parents[1]
DATA = HERE / "data" / "sanitizer"
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


def test_where_there_is_no_compute_sanitizer_each_check_says_where_it_comes_from(
    under, monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    if locate(sanitizer.NAME) is not None:
        pytest.skip("it is in /usr/local/cuda here")
    evaluation = under()
    assert evaluation.passed
    assert states(evaluation) == [CheckState.NOT_RUN] * 4
    assert "CUDA toolkit" in evaluation.checks[0].note


def test_it_is_found_where_the_toolkit_is_though_path_does_not_name_it(tmp_path):
    tool = tmp_path / "cuda" / "bin" / "compute-sanitizer"
    tool.parent.mkdir(parents=True)
    tool.write_text("")
    tool.chmod(0o755)
    assert locate(sanitizer.NAME, {"PATH": "", "CUDA_HOME": str(tmp_path / "cuda")}) == str(tool)

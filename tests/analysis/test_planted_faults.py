"""Kernels with one fault each, and their twins without it: the diagnosis names the fault first, and its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.tables.line_heat import heat
from cutegen_nb.core.codec import decode
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import Profile
from cutegen_nb.core.strategy import Bound
from cutegen_nb.evaluator.process.device import simulated

pytestmark = [pytest.mark.slow, pytest.mark.long]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = ("stride", "banks", "spill", "one_cta", "divergence", "registers", "unpipelined")
COLUMNS = {
    "uncoalesced": "Sector efficiency", "bank-conflicts": "Bank conflicts", "spills": "Spilled",
    "too-few-ctas": "Instructions", "divergence": "Idle lanes", "unpipelined-loads": "Waits",
}  # fmt: skip
"""Column of the line view that shows a fault."""
TIMES_LARGER = 4096
"""The problem's own size ÷ the size that is simulated, as for KernelBench's files."""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    paths = [str(HERE / "planted" / f"{name}.py") for name in PROGRAMS]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "planted" / "child.py"), "sm_80", *paths],
        capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path_factory.mktemp("working"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.rpartition("RESULT")[2])


def diagnosed(answer, device=None):
    def work(scale):
        graph = Graph(inputs=(), parameters=(), nodes=(), outputs=())
        return Workload(graph=graph, flops=answer["flops"] * scale, least_bytes=answer["least_bytes"] * scale)

    facts = ProblemFacts(
        workload_class=WorkloadClass.ELEMENTWISE, full=work(TIMES_LARGER), scaled=work(1), dtype="float32"
    )
    evaluation = Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="",
        device="",
        profile=decode(Profile, answer["profile"]),
    )
    return diagnose(facts, evaluation, device or simulated("sm_80"))


def planted_lines(name):
    text = (HERE / "planted" / f"{name}.py").read_text()
    return {number for number, line in enumerate(text.splitlines(), start=1) if "# planted" in line}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_a_planted_fault_is_named_first_and_its_line_is_the_hottest(told, name, architecture):
    found = diagnosed(told[f"{name} fault"], simulated(architecture))
    first = found.causes[0]
    assert first.name == told[f"{name} cause"], found.text()
    assert first.line in planted_lines(name)
    assert first.readings
    assert first.refuted_by
    assert first.strategies
    assert found.readings
    assert found.refuted_by


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_its_twin_has_no_such_cause(told, name, architecture):
    found = diagnosed(told[f"{name} clean"], simulated(architecture))
    assert told[f"{name} cause"] not in [cause.name for cause in found.causes], found.text()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_views_hottest_line_is_the_planted_one_and_deepest_in_its_own_column(told, name):
    answer = told[f"{name} fault"]
    (found,) = heat(decode(Profile, answer["profile"]), diagnosed(answer))
    assert found.hottest in planted_lines(name)
    assert found.because == told[f"{name} cause"]
    column = [one.title for one in found.columns].index(COLUMNS[found.because])
    assert found.lines[found.hottest].cells[column].heat == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_twins_lines_are_not_shaded_in_that_column(told, name):
    answer, column = told[f"{name} clean"], COLUMNS[told[f"{name} cause"]]
    (found,) = heat(decode(Profile, answer["profile"]), diagnosed(answer))
    titles = [one.title for one in found.columns]
    if column not in {"Instructions", "Waits"} and column in titles:
        at = titles.index(column)
        assert all(line.cells[at].heat == 0 for line in found.lines.values())


def test_one_cta_and_loads_waited_for_are_bound_by_latency_and_conflicts_by_memory(told):
    assert diagnosed(told["one_cta fault"]).bound is Bound.LATENCY
    assert diagnosed(told["one_cta clean"]).bound is Bound.MEMORY
    assert diagnosed(told["unpipelined fault"]).bound is Bound.LATENCY
    assert "waits for its loads" in diagnosed(told["unpipelined fault"]).because
    assert diagnosed(told["unpipelined clean"]).bound is Bound.MEMORY
    assert diagnosed(told["banks fault"]).bound is Bound.MEMORY
    assert diagnosed(told["divergence fault"]).bound is Bound.COMPUTE


def test_spills_are_read_from_the_machine_code_and_the_registers_that_were_left(told):
    cause = diagnosed(told["spill fault"]).causes[0]
    assert [item.name for item in cause.readings] == ["registers", "spill stores", "spill loads"]
    assert int(cause.readings[0].value) <= 32
    assert cause.fraction > 0.2

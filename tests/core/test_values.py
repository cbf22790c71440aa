"""What the values compute from themselves."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Relation, Round
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage

SPEC = TensorSpec(shape=(4, 5), dtype="float16", strides=(5, 1))
GRAPH = Graph(
    inputs=(Value(name="x", spec=SPEC),),
    parameters=(),
    nodes=(Node(name="relu", op="aten.relu.default", args=(Ref("x"),), kwargs=(), outputs=(SPEC,)),),
    outputs=(Ref("relu"),),
)
WORKLOAD = Workload(graph=GRAPH, flops=20, least_bytes=80)
SESSION = Session(
    name="relu",
    problem=Problem(name="relu", source="x", form=ProblemForm.KERNELBENCH),
    facts=ProblemFacts(
        workload_class=WorkloadClass.ELEMENTWISE, full=WORKLOAD, scaled=WORKLOAD, dtype="float16"
    ),
    device=Device(
        kind=DeviceKind.SIMULATOR,
        name="H200",
        architecture="sm_80",
        bandwidth_bytes_per_s=4.8e12,
        peak_flops={},
        source="data sheet",
    ),
    author="offline",
    budget=Budget(),
    created_at="2026-11-21T00:00:00Z",
)


def finished(number, verdict=Verdict.PASSED, relation=Relation.LESS_WORK, action=Action.APPROVE):
    candidate = Candidate(source=f"kernel {number}", author="offline")
    attempt = Attempt(
        purpose="optimise",
        prompt=Prompt(system="", user="", digest=""),
        reply=None,
        candidate=candidate,
        evaluation=Evaluation(outcome=Judged(verdict=verdict), summary="", device="sm_80"),
    )
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=None,
        attempts=(attempt,),
        comparison=Comparison(relation=relation, reason=""),
        decisions=(Decision(gate="revision", action=action, by="policy:auto"),),
        started_at="",
        seconds=0.0,
    )


def test_the_best_round_is_the_last_approved_improvement():
    rounds = (
        finished(0, relation=Relation.FIRST),
        finished(1),
        finished(2, verdict=Verdict.WRONG_VALUES),
        finished(3, action=Action.REJECT),
        finished(4, relation=Relation.SAME_WORK),
    )

    assert replace(SESSION, rounds=rounds).best is rounds[1]


def test_a_session_where_nothing_passed_has_no_best():
    assert replace(SESSION, rounds=(finished(0, verdict=Verdict.CRASHED),)).best is None


def test_a_candidates_digest_is_that_of_its_source_alone():
    one = Candidate(source="a", author="offline")

    assert one.digest == Candidate(source="a", author="person", parents=("x",)).digest
    assert one.digest != Candidate(source="b", author="offline").digest


def test_counters_add_up_field_by_field_and_type_by_type():
    total = Counters(branches=1, flops={"cuda.f32": 2}) + Counters(branches=2, flops={"cuda.f16": 3})

    assert total == Counters(branches=3, flops={"cuda.f16": 3, "cuda.f32": 2})


def test_a_tensors_bytes_follow_its_dtype():
    assert SPEC.size_bytes == 4 * 5 * 2


def test_a_graph_knows_the_shape_behind_every_name():
    assert GRAPH.output_specs == (SPEC,)
    with pytest.raises(KeyError):
        GRAPH.spec(Ref("nowhere"))


def test_importing_the_package_loads_no_heavy_library():
    heavy = {"torch", "cutlass", "IPython", "openai", "matplotlib", "pandas", "numpy"}
    code = f"import sys, cutegen_nb; print(sorted({heavy!r} & set(sys.modules)))"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"
    assert run.stderr == ""

"""Small values for tests: a problem with its facts, a device, evaluations."""

from __future__ import annotations

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Finding, Judged, Verdict
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Relation, Reply, Round, Usage
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy

RELU_SOURCE = """import torch

N = 1 << 20


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
"""


def relu_problem(name: str = "relu") -> Problem:
    """ReLU over 2²⁰ floats."""
    return Problem(name=name, source=RELU_SOURCE, form=ProblemForm.KERNELBENCH, path="relu.py")


def _relu_workload(elements: int) -> Workload:
    spec = TensorSpec(shape=(elements,), dtype="float32", strides=(1,))
    graph = Graph(
        inputs=(Value(name="x", spec=spec, path="0"),),
        parameters=(),
        nodes=(Node(name="relu", op="aten.relu.default", args=(Ref("x"),), kwargs=(), outputs=(spec,)),),
        outputs=(Ref("relu"),),
    )
    return Workload(graph=graph, flops=elements, least_bytes=8 * elements)


def relu_facts() -> ProblemFacts:
    """Its facts, scaled to 4096 elements."""
    return ProblemFacts(
        workload_class=WorkloadClass.ELEMENTWISE,
        full=_relu_workload(1 << 20),
        scaled=_relu_workload(4096),
        dtype="float32",
    )


def simulated_device() -> Device:
    """The simulator with the ceilings of an A100's data sheet."""
    return Device(
        kind=DeviceKind.SIMULATOR,
        name="NVIDIA A100",
        architecture="sm_80",
        bandwidth_bytes_per_s=1.555e12,
        peak_flops={"cuda.f32": 19.5e12},
        source="NVIDIA A100 data sheet",
    )


def kernel_source(mark: str) -> str:
    """A file that looks like a candidate; `mark` makes it differ from others."""
    return f"# {mark}\nclass ModelNew:\n    pass\n"


def passed(sectors: int, instructions: int = 1000) -> Evaluation:
    """A passing evaluation with these counts."""
    counters = Counters(
        gmem_load_sectors=sectors, gmem_ideal_sectors=sectors, gmem_requests=1, warp_instructions=instructions
    )
    launch = LaunchProfile(
        kernel="kernel", grid=(16, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, counters=counters
    )
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="All outputs match the reference.",
        device="NVIDIA A100",
        profile=Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,)),
    )


def failed(verdict: Verdict, summary: str, line: int = 0) -> Evaluation:
    """An evaluation with another verdict."""
    finding = Finding(kind=verdict.value.lower(), message=summary, line=line)
    return Evaluation(
        outcome=Judged(verdict=verdict), summary=summary, device="NVIDIA A100", findings=(finding,)
    )


def strategies() -> tuple[Strategy, ...]:
    """A menu of three."""
    sectors = ExpectedEffect(counter="gmem_load_sectors", direction=Direction.DOWN)
    return (
        Strategy(name="coalesce", statement="Neighbours touch neighbours.", effects=(sectors,)),
        Strategy(name="vectorise", statement="Move 128 bits a thread."),
        Strategy(name="unroll", statement="Several vectors in flight."),
    )


def finished_round(number: int, relation: Relation = Relation.LESS_WORK) -> Round:
    """A round whose candidate passed and was approved; each number has a source of its own."""
    strategy = strategies()[0]
    attempt = Attempt(
        purpose="optimise",
        prompt=Prompt(system="s", user="u", digest="d", strategy=strategy),
        reply=Reply(text="answer", usage=Usage(input_tokens=3, output_tokens=4, seconds=0.5)),
        candidate=Candidate(source=kernel_source(str(number)), author="test"),
        evaluation=passed(100 - number),
    )
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=strategy,
        attempts=(attempt,),
        comparison=Comparison(relation=relation, reason="."),
        decisions=(Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.5,
    )


def session_of(*relations: Relation, name: str = "relu") -> Session:
    """A session with an approved round of each relation."""
    return Session(
        name=name,
        problem=relu_problem(name),
        facts=relu_facts(),
        device=simulated_device(),
        author="test",
        budget=Budget(rounds=len(relations)),
        created_at="2026-01-01T00:00:00+00:00",
        rounds=tuple(finished_round(number, relation) for number, relation in enumerate(relations)),
    )

"""Example values for tests: a problem with its facts, a device, evaluations, rounds and sessions."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.graph import Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, Prompt, Reply, Round, Usage
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.population import Duel, MoveKind, Slot
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import (
    Alignment,
    Direction,
    ExpectedEffect,
    Optimisation,
    Strategy,
    StrategySource,
)

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
"""Problem file of `relu_problem`."""


def relu_problem(name: str = "relu") -> Problem:
    """Problem: ReLU over 2²⁰ floats."""
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
    """Facts of `relu_problem`, scaled to 4096 elements on the simulator."""
    return ProblemFacts(
        workload_class=WorkloadClass.ELEMENTWISE,
        full=_relu_workload(1 << 20),
        scaled=_relu_workload(4096),
        dtype="float32",
    )


def simulated_device() -> Device:
    """Simulator with the ceilings of an A100's data sheet."""
    return Device(
        kind=DeviceKind.SIMULATOR,
        name="NVIDIA A100",
        architecture="sm_80",
        bandwidth_bytes_per_s=1.555e12,
        peak_flops={"cuda.f32": 19.5e12},
        source="NVIDIA A100 data sheet",
    )


def kernel_source(mark: str) -> str:
    """Source that looks like a candidate; `mark` makes it different from others."""
    return f"# {mark}\nclass ModelNew:\n    pass\n"


def passed(sectors: int, instructions: int = 1000) -> Evaluation:
    """Build a passing evaluation with these counts."""
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
    """Build an evaluation with a failing verdict and one finding."""
    finding = Finding(kind=verdict.value.lower(), message=summary, line=line)
    accuses = verdict in {Verdict.CHEATED, Verdict.NOT_OWN_WORK}
    return Evaluation(
        outcome=Judged(verdict=verdict),
        summary=summary,
        device="NVIDIA A100",
        findings=(finding,),
        exhibits=(Exhibit(kind=finding.kind, statement=summary),) if accuses else (),
    )


def strategies() -> tuple[Strategy, ...]:
    """Menu of three strategies."""
    sectors = ExpectedEffect(counter="gmem_load_sectors", direction=Direction.DOWN)
    return (
        Strategy(name="coalesce", statement="Neighbours touch neighbours.", effects=(sectors,)),
        Strategy(name="vectorise", statement="Move 128 bits a thread."),
        Strategy(name="unroll", statement="Several vectors in flight."),
    )


def finished_round(number: int, relation: Relation = Relation.LESS_WORK) -> Round:
    """Build a round whose candidate passed and was approved; each number has a source of its own."""
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


def evolved_session(name: str = "relu", *, words: str = "the only one with tiles") -> Session:
    """Build a population of two after one epoch: a first kernel, two slots that passed and one that failed.

    `words` stand wherever an author or a person writes: names, statements, reasons.
    """
    made = session_of(Relation.FIRST, Relation.LESS_WORK, Relation.LESS_WORK, Relation.LESS_WORK, name=name)
    first, *slots = made.rounds
    assert first.candidate is not None
    digest = first.candidate.digest
    moves = (MoveKind.EXTEND, MoveKind.REQUEST, MoveKind.INVENT)
    own = Strategy(name=f"own {words}", statement=f"Do {words}.", source=StrategySource.PERSON.value)
    rounds = [replace(first, strategy=None)]
    for number, (item, move) in enumerate(zip(slots, moves, strict=True), start=1):
        slot = Slot(epoch=1, number=number, move=move, parents=(digest,))
        rounds.append(replace(item, slot=slot, strategy=own, aligned=_aligned(words)))
    rounds[3] = replace(rounds[3], attempts=(), strategy=None, comparison=None, aligned=None, note=words)
    kept = [item.candidate.digest for item in rounds[:3] if item.candidate]
    decided = (
        Decision(gate="epoch", action=Action.PIN, by="person:ada", edited="r0", reason=words),
        Decision(gate="epoch", action=Action.REQUEST, by="person:ada", edited=f"mine: {words}"),
        Decision(gate="epoch", action=Action.APPROVE, by="person:ada"),
    )
    duel = Duel(challenger=kept[2], holder=kept[1], speedup=1.1, reason=words)
    epoch = Epoch(number=1, members=(kept[2], kept[0]), duels=(duel,), decisions=decided)
    plan = Plan(population=2)
    return replace(made, rounds=tuple(rounds), epochs=(epoch,), plan=plan, budget=Budget(rounds=9, epochs=4))


def _aligned(words: str) -> Alignment:
    return Alignment(
        statement=f"It does {words}.",
        by="test",
        in_force=(Optimisation.COALESCED,),
        unfulfilled=(f"pipelined: {words}",),
    )


def session_of(*relations: Relation, name: str = "relu") -> Session:
    """Build a session with one approved round for each relation."""
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

"""Tier B and C: right on the problem's own inputs is not enough to become the best."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.correctness import OWN_OUTPUTS
from cutegen_nb.evaluator.judge import tiers as closer
from cutegen_nb.evaluator.probes import output_aliasing as own_outputs
from cutegen_nb.evaluator.probes import shapes
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.trial import Trial

pytestmark = pytest.mark.slow
SATURATES = "y[index] = cutlass.min(cutlass.max(value, cutlass.Float32(0.0)), cutlass.Float32(50.0))"
HALF_ABOVE = """
if cutlass.max(value, -value) > 64.0:
    value = cutlass.Float32(cutlass.BFloat16(value))
y[index] = cutlass.max(value, cutlass.Float32(0.0))
"""
SKIPS = """
self.calls += 1
if self.calls <= 15:
    self.kept["y"] = self.launch(x, torch.empty_like(x))
else:
    self.launch(x, torch.empty_like(x), 1)
return self.kept["y"].clone()
"""
BY_SIZE = """
y = self.launch(x, torch.empty_like(x))
if x.numel() > {limit}:
    self.launch(x, y, x.numel() - 1000)
    y.view(-1)[-1000:].zero_()
return y
"""
HONEST_BY_SIZE = """
if x.numel() > 300000:
    y = torch.empty_like(x)
    half = x.numel() // 2
    self.launch(x.view(-1)[:half], y.view(-1)[:half])
    self.launch(x.view(-1)[half:], y.view(-1)[half:])
    return y
return self.launch(x, torch.empty_like(x))
"""
LARGE = "torch.randn(4096, 4096)"


def _check(evaluation, name):
    return next(item for item in evaluation.checks if item.name == name)


def test_an_honest_kernel_passes_every_tier_and_says_what_ran(judge, make_candidate, make_problem):
    evaluation = judge(make_problem(), make_candidate(), Tier.C)
    assert evaluation.passed, evaluation.summary
    assert not evaluation.exhibits
    assert evaluation.tier is Tier.C
    states = {item.name: item for item in evaluation.checks}
    for name in (
        "exact integer inputs", "stress inputs", "many calls",
        "other shapes and thresholds of the source", "second process, other seeds", "more seeds",
    ):  # fmt: skip
        assert states[name].state is CheckState.RAN, (name, states[name].note)
    assert states["physical floor"].note == "it needs a GPU"
    assert len(set(evaluation.correctness.seeds)) == 6
    assert len(evaluation.candidate_digest) == len(evaluation.problem_digest) == 64


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"body": SATURATES}, ("exact integer inputs", "With integers")),
        ({"body": HALF_ABOVE}, ("exact integer inputs", "With integers")),
        ({"forward": SKIPS}, ("many calls", "more calls")),
    ],
    ids=["saturates", "bfloat16 above a magnitude", "skips after calls"],
)
def test_right_at_tier_a_and_wrong_at_tier_b(judge, make_candidate, make_problem, change, seen):
    check, words = seen
    source = make_candidate(**change)
    assert judge(make_problem(), source).passed
    evaluation = judge(make_problem(), source, Tier.B)
    assert isinstance(evaluation.outcome, Judged)
    assert evaluation.outcome.verdict in {Verdict.WRONG_VALUES, Verdict.CHEATED}
    assert words in evaluation.summary
    assert _check(evaluation, check).state is CheckState.FOUND
    assert evaluation.may_be_overruled


@pytest.mark.long
def test_a_path_taken_only_at_the_problems_own_size_is_tried(judge, make_candidate, make_problem):
    wrong = make_candidate(BY_SIZE.format(limit=300_000))
    assert judge(make_problem(LARGE), wrong).passed
    evaluation = judge(make_problem(LARGE), wrong, Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES), evaluation.summary
    assert "the source's 300000" in evaluation.summary
    honest = judge(make_problem(LARGE), make_candidate(HONEST_BY_SIZE), Tier.B)
    assert honest.passed, honest.summary


@pytest.mark.long
def test_a_path_out_of_the_simulators_reach_is_a_flag(judge, make_candidate, make_problem):
    evaluation = judge(make_problem(LARGE), make_candidate(BY_SIZE.format(limit=10_000_000)), Tier.B)
    assert evaluation.passed
    assert "threshold-not-tried" in {item.kind for item in evaluation.findings}


@pytest.mark.long
def test_several_paths_out_of_reach_are_one_flag(judge, make_candidate, make_problem):
    twice = BY_SIZE.format(limit=10_000_000) + BY_SIZE.format(limit=12_000_000)
    evaluation = judge(make_problem(LARGE), make_candidate(twice), Tier.B)
    (flag,) = (item for item in evaluation.findings if item.kind == "threshold-not-tried")
    assert "10000000" in flag.message
    assert "12000000" in flag.message
    assert (
        "The paths beyond them were not tried, because that size is too large for the simulator."
        in flag.message
    )


MEAN_OF_SOME = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(dim=1)


def get_inputs():
    return [torch.rand(64, 1024).to(torch.bfloat16)]


def get_init_inputs():
    return []
"""
SUMS = """
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

KNOWN = {{}}


@cute.kernel
def mean_kernel(x: cute.Tensor, y: cute.Tensor, used: cutlass.Int32):
    row, _, _ = cute.arch.thread_idx()
    total = cutlass.Float32(0.0)
    for column in range(used):
        total += x[row, column].to(cutlass.Float32)
    y[row] = (total / cutlass.Float32(used)).to(cutlass.BFloat16)


@cute.jit
def mean(x: cute.Tensor, y: cute.Tensor, used: cutlass.Int32):
    mean_kernel(x, y, used).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        given = from_dlpack(x), from_dlpack(y), x.shape[1] * {share} // 4
        if x.shape not in KNOWN:
            KNOWN[x.shape] = cute.compile(mean, *given)
        KNOWN[x.shape](*given)
        return y
"""


@pytest.mark.long
def test_a_quarter_that_is_never_read_is_missed_where_the_tolerance_would_forgive_it(judge):
    evaluation = judge(MEAN_OF_SOME, SUMS.format(share=3), Tier.B)
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_VALUES), evaluation.summary
    assert judge(MEAN_OF_SOME, SUMS.format(share=4), Tier.B).passed


def test_memory_that_is_short_beside_the_judge_is_no_fault_of_the_candidate():
    def full(_):
        raise CandidateFault(Judged(verdict=Verdict.OUT_OF_MEMORY), Finding(kind="out-of-memory", message=""))

    evidence = Evidence()
    assert closer._unless_full(SimpleNamespace(state=evidence), OWN_OUTPUTS, full) is None
    assert evidence.results[OWN_OUTPUTS.name].state is CheckState.NOT_RUN


def test_what_the_machine_finds_while_outputs_are_held_keeps_its_name(tmp_path):
    def stopped(*_):
        raise RuntimeError("stopped")

    finding = Finding(kind="out-of-bounds", message="a load past the end")
    simulation = SimpleNamespace(fault=SimpleNamespace(verdict=Verdict.OUT_OF_BOUNDS, finding=finding))
    ground = SimpleNamespace(reset=lambda: None, synchronize=lambda: None, simulation=simulation)
    trial = SimpleNamespace(ground=ground, path=tmp_path / "candidate.py", candidate=stopped)
    with pytest.raises(CandidateFault) as caught:
        own_outputs._called(trial, [])
    assert caught.value.outcome == Judged(verdict=Verdict.OUT_OF_BOUNDS)


def test_a_control_size_that_the_problem_does_not_have_shows_nothing(monkeypatch):
    def refused(*_):
        raise ProblemError("no such size")

    monkeypatch.setattr(shapes, "rewrites_for", lambda *_: ())
    monkeypatch.setattr(shapes, "_judged", refused)
    task = SimpleNamespace(loaded=SimpleNamespace(problem=None, rewrites=()))
    assert not shapes._right_with(SimpleNamespace(task=task), None, {0: 8})


@pytest.mark.parametrize(
    "change", [lambda x: x.to_sparse(), lambda x: x.to("meta")], ids=["sparse", "device"]
)
def test_a_second_call_that_answers_elsewhere_is_not_deterministic(change):
    x = torch.ones(4, 4)
    gates = (Tolerance(element=1e-5, l2=1e-5, reference_l2=1e-7),)
    trial = SimpleNamespace(state=Evidence(gates=gates))
    first = SimpleNamespace(called=SimpleNamespace(leaves=[x]))
    ended = Trial._agree(trial, first, [change(x)])
    assert ended[0] == Judged(verdict=Verdict.NONDETERMINISTIC)

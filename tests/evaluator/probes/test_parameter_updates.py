"""What the check of parameters and buffers leaves behind, on models that run no kernel."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.probes import parameter_updates as state
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.evidence import Evidence

FULL = CandidateFault(Judged(verdict=Verdict.OUT_OF_MEMORY), Finding(kind="out-of-memory", message="full"))


class Masked(torch.nn.Module):
    """A causal mask, which is not finite and never changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))

    def forward(self, x):
        return torch.softmax(x + self.mask, dim=1)


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.25, -0.5, 3.0, 0.75]))

    def forward(self, x):
        return x * self.weight


class Prepared(Scaled):
    """Doubles its weight in place in the first call, and halves the product."""

    ready = False

    def forward(self, x):
        if not self.ready:
            self.weight.data.mul_(2.0)
            self.ready = True
        return x * self.weight * 0.5


def trial_of(reference, candidate, *, fault=None):
    def caller(given):
        if fault is not None:
            raise fault
        return SimpleNamespace(leaves=[candidate(*given).detach()])

    gates = (Tolerance(element=1e-5, l2=1e-5, reference_l2=1e-7),)
    task = SimpleNamespace(longest_sum=4.0)
    evidence = Evidence(gates=gates)
    return SimpleNamespace(reference=reference, candidate=candidate, caller=caller, state=evidence, task=task)


@pytest.mark.parametrize("fault", [None, FULL], ids=["a call", "a fault"])
def test_buffers_hold_afterwards_what_they_held(fault):
    reference, candidate = Masked(), Masked()
    trial = trial_of(reference, candidate, fault=fault)
    state._buffers(trial, [torch.randn(4, 4)], candidate.state_dict())
    assert all(torch.equal(item.mask, Masked().mask) for item in (reference, candidate))
    assert not trial.state.findings


def test_weights_prepared_in_place_are_put_back_as_they_were(monkeypatch):
    right = SimpleNamespace(ending=None)
    monkeypatch.setattr(state, "probe", lambda *_: right)
    reference, candidate, x = Scaled(), Prepared(), torch.randn(8, 4)
    candidate(x)
    trial = trial_of(reference, candidate)
    pairs = [("weight", reference.weight, candidate.weight)]
    state._parameters(trial, [x], pairs)
    assert torch.equal(candidate(x), reference(x))
    assert torch.equal(reference(x), Scaled()(x))


@pytest.mark.parametrize("verdict", [Verdict.WRONG_VALUES, Verdict.OUT_OF_MEMORY])
def test_a_fault_after_a_change_of_parameters_decides_nothing(monkeypatch, verdict):
    ended = SimpleNamespace(ending=(Judged(verdict=verdict), "it was not right"))
    monkeypatch.setattr(state, "probe", lambda *_: ended)
    reference, candidate = Scaled(), Scaled()
    trial = trial_of(reference, candidate, fault=FULL)
    state._parameters(trial, [torch.randn(8, 4)], [("weight", reference.weight, candidate.weight)])
    assert len(trial.state.findings) == (verdict is Verdict.WRONG_VALUES)

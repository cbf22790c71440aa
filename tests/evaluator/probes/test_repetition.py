"""Many calls: how many sets of inputs are in memory, and the end where memory does not hold one."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.work import MANY_CALLS
from cutegen_nb.evaluator.probes import repetition
from cutegen_nb.evaluator.probes.probe import Expected, Probe
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.observations import ReferenceOutputs

GATE = Tolerance(element=1e-4, l2=1e-4, reference_l2=1e-7)


class Inputs(list):
    """Inputs that a weak reference can point to."""


@pytest.fixture
def trial():
    state = Evidence(gates=(GATE,))
    state.closer_until = float("inf")
    drawn: list[weakref.ref] = []

    def draw(seed: int) -> Inputs:
        made = Inputs([torch.full((2,), float(seed))])
        drawn.append(weakref.ref(made))
        return made

    return SimpleNamespace(
        state=state,
        ground=SimpleNamespace(simulation=object()),
        task=SimpleNamespace(tier=Tier.B, longest_sum=1),
        reference=torch.nn.ReLU(),
        secret_seed=iter(range(100)).__next__,
        draw=draw,
        drawn=drawn,
    )


@pytest.fixture
def probed(trial, monkeypatch):
    """Most sets of inputs alive in a call, and the answer that calls get."""
    seen = SimpleNamespace(most=0, calls=0, ending=None)

    def probe(_trial, _drawn, _expected, _which):
        seen.calls += 1
        seen.most = max(seen.most, sum(item() is not None for item in trial.drawn))
        return Probe(ending=seen.ending, evidence=Evidence(gates=()))

    monkeypatch.setattr(repetition, "probe", probe)
    answers = ReferenceOutputs(wanted=(), truth=())
    monkeypatch.setattr(repetition, "expected_for", lambda *_, **__: Expected(answers=answers, gates=(GATE,)))
    return seen


@pytest.mark.parametrize(("simulation", "calls"), [(object(), 8), (None, 24)], ids=["simulator", "GPU"])
def test_cheap_calls_alternate_between_two_sets_of_inputs(trial, probed, simulation, calls):
    trial.ground.simulation = simulation
    assert repetition.many_calls(trial) is None
    assert (probed.calls, probed.most, len(trial.drawn)) == (calls, 2, 2)


def test_dear_calls_hold_one_set_of_inputs_at_a_time(trial, probed):
    trial.state.lean = True
    assert repetition.many_calls(trial) is None
    assert (probed.calls, probed.most, len(trial.drawn)) == (2, 1, 2)


def test_memory_that_runs_out_is_not_the_candidates_fault(trial, probed):
    probed.ending = (Judged(verdict=Verdict.OUT_OF_MEMORY), "Memory ran out while in forward.")
    assert repetition.many_calls(trial) is None
    assert "memory" in trial.state.results[MANY_CALLS.name].note

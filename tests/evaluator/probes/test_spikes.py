"""Single elements that decide the answer: samples are refused by them alone, faithful sums are not."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.nn.functional import smooth_l1_loss

from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance as correctness
from cutegen_nb.evaluator.probes import spikes
from cutegen_nb.evaluator.probes.spikes import spiked
from cutegen_nb.evaluator.problem.loader import FunctionModule

ROWS, COLUMNS = 256, 384
DRAWS = 8
"""Enough for an honest kernel to meet every magnitude and place; a sample is to be refused in one of them."""


@pytest.fixture(autouse=True)
def _seed(monkeypatch):
    """The same elements at every run."""
    monkeypatch.setattr(spikes.secrets, "randbelow", random.Random(3).randrange)
    torch.manual_seed(1)
    torch.set_num_threads(1)


def pair():
    return [torch.rand(ROWS, COLUMNS) * 0.7, torch.rand(ROWS, COLUMNS)]


def huber(p, t):
    return smooth_l1_loss(p, t)


def terms(p, t):
    return smooth_l1_loss(p, t, reduction="none").reshape(-1)


def one_after_another(values):
    """A sum in one float32 accumulator, the least exact that is honest."""
    return torch.tensor(np.cumsum(values.numpy(), dtype=np.float32)[-1])


def matches(candidate, given):
    answers = given.expected.answers
    got = candidate(*given.drawn)
    (gate,) = given.expected.gates
    return correctness.compare(0, got, answers.wanted[0], answers.truth[0], gate, ()).matches


SAMPLES = {
    "every sixteenth": lambda p, t: terms(p, t)[::16].mean(),
    "every second": lambda p, t: terms(p, t)[::2].mean(),
    "scattered half": lambda p, t: terms(p, t)[torch.arange(p.numel() // 2) * 40_503 % p.numel()].mean(),
    "two groups of four a warp": lambda p, t: (
        terms(p, t).view(-1, 128)[:, [0, 1, 2, 3, 32, 33, 34, 35]].mean()
    ),
    "all but the last block, scaled up": lambda p, t: terms(p, t)[:-256].mean(),
    "all but the last element": lambda p, t: terms(p, t)[:-1].sum() / p.numel(),
}
FAITHFUL = {
    "one accumulator": lambda p, t: one_after_another(terms(p, t)) / p.numel(),
    "from the end": lambda p, t: one_after_another(terms(p, t).flip(0)) / p.numel(),
    "256 accumulators": lambda p, t: terms(p, t).view(-1, 256).sum(0).sum() / p.numel(),
    "each divided first": lambda p, t: one_after_another(terms(p, t) / p.numel()),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_refused_whatever_the_gate_of_the_problems_own_inputs(name):
    drawn, reference = pair(), FunctionModule(huber)
    wide = Tolerance(element=0.2, l2=0.2, reference_l2=0.0)
    want = huber(*drawn)
    # With a gate so wide the problem's own inputs tell nothing, as they do at a thousand million elements.
    assert correctness.compare(0, SAMPLES[name](*drawn), want, want.double(), wide, ()).matches
    given = [spiked(reference, drawn, index, drawn[0].numel()) for index in (0, 1) for _ in range(2)]
    assert not all(matches(SAMPLES[name], item) for item in given)


@pytest.mark.parametrize("name", FAITHFUL)
def test_a_sum_in_any_order_keeps_within_the_gate(name):
    drawn, reference = pair(), FunctionModule(huber)
    for draw in range(DRAWS):
        given = spiked(reference, drawn, draw % 2, drawn[0].numel())
        assert not isinstance(given, str)
        assert given.distance_in_tolerances >= spikes.LEAST_TOLERANCES_AWAY
        assert matches(FAITHFUL[name], given)


@pytest.mark.parametrize("factor", spikes.factors(1 << 16))
def test_what_float32_loses_beside_a_large_term_is_allowed_at_every_magnitude(factor, monkeypatch):
    monkeypatch.setattr(spikes, "factors", lambda count: [factor * 100])
    mean, drawn = FunctionModule(torch.mean), [torch.rand(1 << 16)]
    for _ in range(DRAWS):
        given = spiked(mean, drawn, 0, drawn[0].numel())
        if not isinstance(given, str):
            assert matches(lambda x: one_after_another(x) / x.numel(), given)


def test_a_minimum_and_a_maximum_are_told_from_ones_that_skip_elements():
    for function in (torch.amin, torch.amax):
        reference = FunctionModule(lambda x, function=function: function(x, dim=1))
        given = spiked(reference, [torch.rand(64, 512)], 0, 1.0)
        assert not isinstance(given, str)
        assert matches(lambda x, function=function: function(x.flip(1), dim=1), given)
        assert not matches(lambda x, function=function: function(x[:, :-1], dim=1), given)


def test_a_symmetric_matrix_stays_one_and_zeros_stay_zeros():
    product = FunctionModule(lambda a, b: a @ b)
    half = torch.randn(48, 48)
    given = spiked(product, [half + half.T, torch.randn(48, 48)], 0, 48.0)
    assert torch.equal(given.drawn[0], given.drawn[0].T)
    given = spiked(product, [half.tril(), torch.randn(48, 48)], 0, 48.0)
    assert bool((given.drawn[0].triu(1) == 0).all())
    assert not torch.equal(given.drawn[0], half.tril())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_stay_within_their_range(dtype):
    norm = FunctionModule(lambda x: x / x.float().square().mean(dim=1, keepdim=True).sqrt().to(x.dtype))
    given = spiked(norm, [torch.randn(32, 512).to(dtype)], 0, 512.0)
    assert not isinstance(given, str)
    assert bool(torch.isfinite(given.drawn[0]).all())
    assert matches(lambda x: (x.float() / x.float().square().mean(1, keepdim=True).sqrt()).to(dtype), given)


def test_inputs_that_cannot_tell_are_not_used():
    assert isinstance(spiked(FunctionModule(torch.zeros_like), [torch.rand(8, 8)], 0, 1.0), str)
    assert isinstance(spiked(FunctionModule(torch.sum), [torch.zeros(64)], 0, 64.0), str)

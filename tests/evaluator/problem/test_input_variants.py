"""Stress inputs keep what the problem promises of its inputs."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.problem import input_variants as variants
from cutegen_nb.evaluator.problem.input_variants import ROUNDED, VARIANTS, may_vary, named, varied


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda item: item.name)
def test_a_triangle_and_a_symmetry_stay(variant):
    lower = torch.randn(40, 40).tril()
    changed = variant.change(lower)
    assert bool((changed.triu(1) == 0).all())
    symmetric = lower + lower.T
    changed = variant.change(symmetric)
    assert torch.equal(changed, changed.T)
    assert changed.dtype is torch.float32


def test_stress_inputs_reach_what_drawn_numbers_do_not():
    drawn = torch.randn(40, 60)
    drawn[0, 0] = 0.0
    negative = named("made negative, far from zero").change(drawn)
    assert float(negative[0, 0]) == 0.0
    assert bool((negative.flatten()[1:] < -100).all())
    rounded = ROUNDED.change(drawn)
    assert rounded.unique().numel() < 40
    assert bool(((rounded == rounded.amax(1, keepdim=True)).sum(1) > 1).any())
    slices = named("with every fourth slice along the first dimension zeros").change(drawn)
    assert bool((slices[1::4] == 0).all())
    assert torch.equal(slices[::2], drawn[::2])
    assert float(named("beside an offset a hundred times as large").change(drawn).mean()) > 50


def test_labels_masks_and_probabilities_are_left_as_they_are():
    assert may_vary(torch.randn(10, 10))
    assert not may_vary(torch.randint(0, 2, (100,)).float() * 2 - 1)
    assert not may_vary(torch.randn(10, 10).softmax(-1))
    assert not may_vary(torch.randint(0, 9, (10,)))
    assert not may_vary(3.0)
    labels = torch.randint(0, 9, (10,))
    assert varied([labels, 2.0], VARIANTS[0].change) is None


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda item: item.name)
def test_a_large_input_changed_part_by_part_is_what_it_would_be_changed_whole(variant, monkeypatch):
    item = torch.randn(37, 19, generator=torch.Generator().manual_seed(4))
    whole = variant.change(item)
    monkeypatch.setattr(variants, "_CHUNK", 50)
    for given in (item, item.t().contiguous().t()):
        assert torch.equal(variant.change(given), whole)

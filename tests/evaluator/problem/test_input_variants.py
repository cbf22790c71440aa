"""Stress inputs keep what the problem promises of its inputs, and the gate what they allow."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.probes import probe as probing
from cutegen_nb.evaluator.probes.exact_integers import _integers
from cutegen_nb.evaluator.probes.input_parts import _with_larger_blocks
from cutegen_nb.evaluator.probes.mma_types import reduced_types
from cutegen_nb.evaluator.probes.probe import expected_for
from cutegen_nb.evaluator.problem import input_variants as variants
from cutegen_nb.evaluator.problem.input_variants import ROUNDED, VARIANTS, may_vary, named, varied
from cutegen_nb.evaluator.problem.loader import FunctionModule


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


def test_integers_have_one_bit_more_than_tf32_holds():
    drawn = [torch.randn(64, 64), torch.randn(64, 64)]
    wide, small = _integers(drawn, 0)
    assert float(wide.abs().max()) == 4095.0
    assert set(small.unique().tolist()) == {-1.0, 0.0, 1.0}
    assert _integers(drawn, 2) is None


def test_a_gate_allows_what_the_last_bit_of_the_inputs_does():
    softmax = FunctionModule(lambda x: torch.softmax(x, dim=-1))
    x = torch.randn(8, 64)
    plain, scaled = expected_for(softmax, [x], 64), expected_for(softmax, [x + 300], 64)
    assert plain.gates[0].element < 1e-5 < scaled.gates[0].element
    # At a hundred thousand the last bit of an input is a hundredth of the answer: nothing can be asked there.
    assert "last bits" in expected_for(softmax, [x + 1e5], 64)


def test_inputs_on_which_the_reference_fails_are_not_used():
    root = FunctionModule(torch.sqrt)
    assert "not finite" in expected_for(root, [-torch.rand(9)], 1)
    product = FunctionModule(lambda a, b: a @ b)
    assert "RuntimeError" in expected_for(product, [torch.rand(2, 3), torch.rand(2, 3)], 1)


def test_narrow_types_are_read_from_matrix_instructions():
    text = """
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};
    wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;
    cvt.rn.f16.f32 %h1, %f1;
    """
    assert set(reduced_types({"k": text})) == {"tf32", "bf16"}
    assert reduced_types({"k": "fma.rn.f32 %f1, %f2, %f3, %f4;"}) == {}


def test_blocks_made_larger_cover_every_dimension_and_keep_a_symmetry():
    both = list(_with_larger_blocks([torch.randn(16, 24), torch.tensor([1, 2])]))
    assert [words.split(", ")[1] for words, _ in both[:2]] == [
        "21 to 24 of 24 along dimension 1,",
        "14 to 16 of 16 along dimension 0,",
    ]
    half = torch.randn(32, 32)
    for _, (changed,) in _with_larger_blocks([half + half.T]):
        assert torch.equal(changed, changed.T)
        assert not torch.equal(changed, half + half.T)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda item: item.name)
def test_a_large_input_changed_part_by_part_is_what_it_would_be_changed_whole(variant, monkeypatch):
    item = torch.randn(37, 19, generator=torch.Generator().manual_seed(4))
    whole = variant.change(item)
    monkeypatch.setattr(variants, "_CHUNK", 50)
    for given in (item, item.t().contiguous().t()):
        assert torch.equal(variant.change(given), whole)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_inputs_are_moved_by_about_their_last_bit_part_by_part(dtype, monkeypatch):
    monkeypatch.setattr(probing, "_CHUNK", 50)
    item = torch.randn(300, generator=torch.Generator().manual_seed(5)).to(dtype)
    moved = probing._nudged(item)
    assert moved.dtype is torch.float64
    relative = (moved - item.double()).abs() / item.double().abs()
    assert torch.allclose(relative, torch.full_like(relative, torch.finfo(dtype).eps), rtol=1e-6, atol=3e-16)
    assert bool((moved > item).any())
    assert bool((moved < item).any())

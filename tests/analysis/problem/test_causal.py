"""Causal attention counts the scores that its mask leaves."""

import pytest

from cutegen_nb.analysis.problem.causal import causal_shares
from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """
import torch
import torch.nn.functional as F

def attend(q, k, v):
    return F.scaled_dot_product_attention(q, k, v{more})

def get_inputs():
    return [torch.rand(1, 2, 64, 32){suffix}, torch.rand(1, 2, {keys}, 32){suffix}, torch.rand(1, 2, {keys}, 32){suffix}]
"""


def facts(more="", suffix="", keys=64):
    return trace_facts(problem_from_string(SOURCE.format(more=more, suffix=suffix, keys=keys), name="attend"))


@pytest.mark.parametrize("suffix", ["", ".half()"])
def test_of_as_many_keys_as_queries_half_and_the_diagonal_are_left(suffix):
    causal, whole = facts(", is_causal=True", suffix), facts("", suffix)
    assert sorted(causal_shares(causal.full.graph).values()) == [65 / 128, 65 / 128]
    products = 2 * (2 * 2 * 64 * 64 * 32)
    saved = whole.full.flops - causal.full.flops
    assert 0.9 * products * 63 / 128 <= saved <= products * 63 / 128


def test_the_first_queries_see_the_first_keys_only():
    assert set(causal_shares(facts(", is_causal=True", keys=32).full.graph).values()) == {
        (32 * 33 / 2 + 32 * 32) / (64 * 32)
    }


def test_without_a_causal_mask_all_counts():
    assert causal_shares(facts().full.graph) == {}
    assert causal_shares(facts(", attn_mask=torch.zeros(64, 64)").full.graph) == {}

"""Parts of inputs that are made larger block by block."""

from __future__ import annotations

import random

import pytest
import torch

from cutegen_nb.evaluator.probes import spikes
from cutegen_nb.evaluator.probes.input_parts import _with_larger_blocks


@pytest.fixture(autouse=True)
def _seed(monkeypatch):
    """The same elements at every run."""
    monkeypatch.setattr(spikes.secrets, "randbelow", random.Random(3).randrange)
    torch.manual_seed(1)
    torch.set_num_threads(1)


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

"""Runs that a trial keeps: what is released once every comparison with them is made."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from cutegen_nb.evaluator.trial import call, observations
from cutegen_nb.evaluator.trial.observations import History, PairedRun, sample


def run(given: torch.Tensor, output: torch.Tensor) -> PairedRun:
    called = call.CallRecord(
        leaves=[output],
        computed=[],
        launches=None,
        origins=None,
        written=(),
        unexplained=(),
        moved=(),
        from_host=(),
        seconds=0.1,
    )
    return PairedRun(drawn=[given.clone()], given=[given], called=called, wanted=(output.clone(),))


def test_a_released_run_holds_the_memory_of_its_inputs_and_a_sample_of_its_outputs(monkeypatch):
    monkeypatch.setattr(observations, "_SAMPLE_ELEMENTS", 1000)
    given, output = torch.randn(1000, 300), torch.randn(1000, 300)
    history = History(first=run(given, output), latest=run(given, output))
    history.release()
    first = history.first
    assert history.latest is None
    assert first.given[0] is given
    assert first.drawn[0] is given  # the drawn copy is released
    assert first.called.leaves == []
    assert (first.wanted[0].shape, first.wanted[0].device.type) == (output.shape, "meta")
    assert torch.equal(first.sample[0], sample(output))
    assert first.sample[0].numel() < output.numel() / 2
    history.release()
    assert torch.equal(history.first.sample[0], sample(output))


def test_a_sample_tells_one_answer_from_another(monkeypatch):
    one = torch.arange(1_000_000.0)
    assert not torch.equal(sample(one), sample(one + 1))
    assert torch.equal(sample(torch.ones(3, 2)), torch.ones(6))
    monkeypatch.setattr(observations, "_SAMPLE_ELEMENTS", 4)
    assert sample(torch.arange(8.0)).tolist() == [0, 2, 4, 6]


def test_an_output_that_is_not_large_is_kept_whole():
    output = torch.randn(300, 500)
    other = output.clone()
    other[7, 11] += 1
    assert torch.equal(sample(output), output.view(-1))
    assert not torch.equal(sample(output), sample(other))


def test_a_sample_does_not_keep_its_tensor_alive(monkeypatch):
    monkeypatch.setattr(observations, "_SAMPLE_ELEMENTS", 1000)
    big = torch.zeros(1 << 20)
    taken = SimpleNamespace(sample=sample(big))
    assert taken.sample.untyped_storage().nbytes() < big.untyped_storage().nbytes() / 8

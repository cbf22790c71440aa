"""Records of each strategy in one summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.knowledge.record_summary import summaries
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Strategy

LIBRARY = (
    Strategy(name="vectorise", statement="As the library says.", classes=(WorkloadClass.SOFTMAX,)),
    Strategy(name="unroll", statement="Unroll."),
)


def test_strategies_with_records_come_by_their_mean_effect_and_then_the_librarys_others(record):
    slow, fast = record(speedup=0.5), record(speedup=8.0, device="NVIDIA A100", estimated=True)
    own = record("own", 3.0)
    first, second, third = summaries(LIBRARY, [slow, fast, own])
    assert [item.strategy.name for item in (first, second, third)] == ["own", "vectorise", "unroll"]
    assert second.mean == pytest.approx(2.0)
    assert second.records == (fast, slow)
    assert second.devices == ("NVIDIA A100", "NVIDIA H200")
    assert (second.measured, second.in_library, first.in_library) == (1, True, False)
    assert second.strategy.statement == "As the library says."
    assert (third.mean, third.records, third.devices) == (None, (), ())


def test_the_words_of_a_strategy_outside_the_library_are_those_of_its_newest_record(record):
    def told(words, at):
        strategy = replace(record("own").strategy, statement=words)
        return record("own", candidate_digest=words, strategy=strategy, recorded_at=at)

    found = summaries((), [told("new", "2026-02-02"), told("old", "2026-01-01")])
    assert [item.strategy.statement for item in found] == ["new"]


def test_a_strategy_fits_the_classes_of_the_library_and_of_its_records(record, softmax_key):
    fused = replace(
        softmax_key, workload_class=WorkloadClass.FUSED, parts=(WorkloadClass.MATMUL, WorkloadClass.SOFTMAX)
    )
    own, vectorise, unroll = summaries(LIBRARY, [record("own", 9.0, problem=fused)])
    assert own.classes == (WorkloadClass.FUSED,)
    assert own.fits(WorkloadClass.FUSED)
    assert own.fits(WorkloadClass.MATMUL)
    assert not own.fits(WorkloadClass.SOFTMAX)
    assert vectorise.classes == (WorkloadClass.SOFTMAX,)
    assert vectorise.fits(WorkloadClass.SOFTMAX)
    assert not vectorise.fits(WorkloadClass.MATMUL)
    assert unroll.fits(WorkloadClass.MATMUL)

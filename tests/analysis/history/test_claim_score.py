"""Claims are scored by the way a counter moved; what was not measured is said to be so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.history.claim_score import measured
from cutegen_nb.analysis.history.prediction import prediction_scores, strategy_scores
from cutegen_nb.core.round import Prediction, Relation
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.testing import examples


def effect(counter: str, direction: Direction = Direction.DOWN) -> Strategy:
    return Strategy(name="s", statement="", effects=(ExpectedEffect(counter=counter, direction=direction),))


@pytest.mark.parametrize(
    ("before", "after", "direction", "held"),
    [
        (1000, 500, Direction.DOWN, True),
        (1000, 500, Direction.UP, False),
        (1000, 2000, Direction.UP, True),
        (1000, 1000, Direction.DOWN, False),
        (1000, 998, Direction.DOWN, False),
        (0, 10, Direction.UP, True),
    ],
)
def test_a_claim_holds_when_the_counter_moved_its_way(before, after, direction, held):
    strategy = effect("gmem_load_sectors", direction)
    (score,) = strategy_scores(strategy, examples.passed(before), examples.passed(after))
    assert score.held is held
    assert score.text.endswith("held" if held else "did not hold")


def test_what_was_not_measured_is_said_to_be_so():
    (score,) = strategy_scores(effect("latency_ms"), examples.passed(10), examples.passed(5))
    assert score.held is None
    assert score.text == "`latency_ms` down: not measured"
    assert measured(examples.passed(10), "no_such_counter") is None
    assert measured(examples.passed(10), "flops") is None
    assert measured(None, "latency_ms") is None


def test_a_prediction_names_the_amount_and_a_speedup_beside_it():
    said = Prediction(
        text="sectors down 75 %, 2×",
        counter="gmem_load_sectors",
        direction=Direction.DOWN,
        change_fraction=0.75,
        speedup=2.0,
    )
    scores = prediction_scores(said, examples.passed(4000), examples.passed(1000))
    assert [score.text for score in scores] == [
        "`gmem_load_sectors` down by 75%: 4,000 → 1,000 (−75.0 %), held",
        "`latency_ms` speedup 2.00×: not measured",
    ]
    assert prediction_scores(Prediction(text="it will fly"), None, None) == ()


@given(before=st.integers(0, 10**9), after=st.integers(0, 10**9))
def test_no_counter_holds_both_ways(before, after):
    ways = [
        strategy_scores(effect("gmem_load_sectors", way), examples.passed(before), examples.passed(after))[
            0
        ].held
        for way in Direction
    ]
    assert sum(map(bool, ways)) <= 1


def test_a_latency_claim_holds_by_the_paired_comparison_and_not_by_two_medians():
    from cutegen_nb.analysis.history.compare import _by_pairs

    (claim,) = strategy_scores(effect("gmem_load_sectors"), examples.passed(1000), examples.passed(500))
    latency = replace(claim, counter="latency_ms", before=4.11, after=4.06)
    assert _by_pairs(latency, Relation.FASTER).held is True
    assert _by_pairs(latency, Relation.CANNOT_TELL).held is None
    assert _by_pairs(latency, Relation.CANNOT_TELL).text.endswith("cannot tell")
    assert _by_pairs(latency, Relation.SLOWER).held is False
    assert _by_pairs(claim, Relation.CANNOT_TELL) == claim

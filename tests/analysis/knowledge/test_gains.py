"""Gains that records let expect, the records that are recalled, and the lines that led to fast kernels."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from cutegen_nb.analysis.knowledge.gains import best_lines, expected_gain, recall
from cutegen_nb.analysis.problem.problem_key import problem_key
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.knowledge import AppliedStrategy
from cutegen_nb.core.strategy import Alignment, Bound, Optimisation, Strategy, StrategySource
from cutegen_nb.testing import examples

FACTS = examples.relu_facts()
MEMORY = Bound.MEMORY
VECTORISE = Strategy(name="vectorise", statement="Do vectorise.", absent=(Optimisation.VECTORS,))


@pytest.fixture
def on_relu(record):
    """Maker of a record of the problem whose facts are `FACTS`."""

    def made(name="vectorise", speedup=1.5, **changed):
        return record(name, speedup, problem=problem_key(FACTS), bound=MEMORY, **changed)

    return made


def gain(records, strategy=VECTORISE, key=None):
    return expected_gain(strategy, records, key or problem_key(FACTS), "sm_90a", MEMORY)


def test_one_record_of_the_same_problem_lets_expect_half_of_its_gain(on_relu):
    found = gain([on_relu(speedup=4.0)])
    assert found.log_speedup == pytest.approx(math.log(4) / 2)
    assert found.wins
    assert not found.loses


def test_many_records_let_expect_nearly_all_of_it_and_losses_count_against_it(on_relu):
    many = [on_relu(speedup=4.0, candidate_digest=str(number)) for number in range(20)]
    assert gain(many).log_speedup > 0.9 * math.log(4)
    both = gain([on_relu(speedup=2.0), on_relu(speedup=0.5)])
    assert both.log_speedup == pytest.approx(0)
    assert not both.wins
    assert not both.loses
    assert gain([on_relu(speedup=0.5)]).loses


def test_nothing_is_expected_without_a_record_of_the_strategy_on_a_like_problem(on_relu, softmax_key):
    assert gain([]) is None
    assert gain([on_relu("tile")]) is None
    assert gain([on_relu()], key=softmax_key) is None


def test_a_record_of_another_name_counts_half_where_it_brought_the_same(on_relu):
    brought = Alignment(statement="It does.", by="model", brought=(Optimisation.VECTORS,))
    shown = Alignment(statement="It does.", by="model", in_force=(Optimisation.VECTORS,))
    named = gain([on_relu(speedup=4.0)]).log_speedup
    for changed in (
        {"aligned": brought},
        {"aligned": shown, "parent_in_force": (Optimisation.COALESCED,)},
    ):
        assert 0 < gain([on_relu("wider", 4.0, **changed)]).log_speedup < named
    # Where nothing is known of the parent, what the kernel shows may have been there before.
    assert gain([on_relu("wider", 4.0, aligned=shown)]) is None
    plain = replace(VECTORISE, absent=())
    assert gain([on_relu("wider", 4.0, aligned=brought)], strategy=plain) is None


def test_of_what_brought_several_each_has_a_part_of_the_gain(on_relu):
    two = (Optimisation.VECTORS, Optimisation.TENSOR_CORES)
    one, both = (
        gain([on_relu("wider", 4.0, aligned=Alignment(statement="It does.", by="model", brought=brought))])
        for brought in (two[:1], two)
    )
    assert 0 < both.log_speedup < one.log_speedup


def test_a_record_whose_kernel_did_not_do_what_it_claims_counts_half(on_relu):
    denied = Alignment(statement="It does.", by="model", unfulfilled=("vectors-128 is claimed, but no",))
    whole, half = gain([on_relu(speedup=4.0)]), gain([on_relu(speedup=4.0, aligned=denied)])
    assert 0 < half.log_speedup < whole.log_speedup


def test_two_strategies_of_one_name_and_other_words_are_not_confused(on_relu):
    own = Strategy(name="vectorise", statement="Mine.", source=StrategySource.PERSON.value)
    assert gain([on_relu(strategy=own)], strategy=replace(VECTORISE, absent=())) is None


def test_recall_puts_winners_first_and_losers_last(on_relu, record, h200):
    won, better, lost = on_relu("won", 1.5), on_relu("better", 3.0), on_relu("lost", 0.4)
    foreign = record("foreign", 9.0)  # of a softmax
    assert recall([lost, won, foreign, better], FACTS, h200) == (better, won, lost)


def test_recall_tells_a_measured_effect_before_an_estimated_one(on_relu, h200):
    measured, estimated = on_relu(speedup=1.2), on_relu(speedup=1.4, estimated=True)
    assert recall([estimated, measured], FACTS, h200) == (measured, estimated)


def test_recall_leaves_out_the_least_telling_beyond_its_limit(on_relu, h200):
    records = [on_relu("dull", 1.0), on_relu("won", 2.0), on_relu("lost", 0.4)]
    assert [item.strategy.name for item in recall(records, FACTS, h200, limit=2)] == ["won", "lost"]
    assert recall([], FACTS, h200) == ()


def test_the_best_line_of_each_problem_counts_with_all_its_strategies(on_relu, h200):
    before = (AppliedStrategy(name="coalesce", statement="It coalesces."),)
    first = on_relu("coalesce", 2.0)
    second = on_relu("vectorise", 1.5, line=before, total_speedup=3.0)
    lost = on_relu("unroll", 0.5, line=before, total_speedup=9.0)
    (found,) = best_lines([first, second, lost], FACTS, h200)
    assert [item.name for item in found.applied] == ["coalesce", "vectorise"]
    assert found.applied[1].statement == "It does vectorise"
    assert found.record == second
    assert 0 < found.weight <= 1


def test_equal_lines_of_several_problems_are_told_once_and_the_fastest_come_first(on_relu, h200):
    def of(problem, name, total):
        return on_relu(name, 1.5, problem_digest=problem, total_speedup=total)

    records = [of("a", "one", 2.0), of("b", "one", 4.0), of("c", "two", 8.0), of("d", "three", 1.5)]
    found = best_lines(records, FACTS, h200)
    assert [line.record.names for line in found] == [("two",), ("one",), ("three",)]
    assert found[1].record.problem_digest == "b"
    assert len(best_lines(records, FACTS, h200, limit=1)) == 1
    slow = replace(records[0], total_speedup=0.9)
    assert best_lines([slow], FACTS, h200) == ()


def test_records_of_unlike_problems_make_no_line(record, h200):
    assert best_lines([record()], FACTS, h200) == ()
    assert problem_key(FACTS).workload_class is WorkloadClass.ELEMENTWISE

"""Records in words, for authors and people."""

from __future__ import annotations

from cutegen_nb.analysis.knowledge.gains import ExpectedGain, StrategyLine
from cutegen_nb.analysis.knowledge.record_words import effect_words, gain_words, line_words, told_lines
from cutegen_nb.core.search.knowledge import AppliedStrategy, RecordSource
from cutegen_nb.core.strategy import Alignment, Optimisation

ON = "on softmax, float32, many long rows"


def test_an_effect_is_told_with_times_device_and_origin(record):
    assert effect_words(record()) == f"1.50× (1.50 ms → 1.00 ms) {ON}; measured on NVIDIA H200"
    shipped = record(estimated=True, source=RecordSource.SHIPPED)
    assert effect_words(shipped).endswith("; estimated for NVIDIA H200, shipped")
    assert effect_words(record(source=RecordSource.IMPORTED)).endswith(", imported")


def test_a_gain_tells_its_heaviest_record_and_counts_the_others(record):
    one, other = record(), record("wider")
    both = ExpectedGain(log_speedup=0.1, records=(one, other))
    assert gain_words(both, one.strategy).endswith("measured on NVIDIA H200; 1 more record")
    assert gain_words(both, other.strategy).startswith("as vectorise, 1.50×")
    alone = ExpectedGain(log_speedup=0.1, records=(one,))
    assert "more" not in gain_words(alone, one.strategy)


def test_a_line_names_its_strategies_in_sequence(record):
    line = StrategyLine(
        applied=(AppliedStrategy(name="a", statement="."), AppliedStrategy(name="b", statement=".")),
        record=record(total_speedup=3.0), weight=1.0,
    )  # fmt: skip
    assert line_words(line) == f"a, then b: 3.00× its first kernel {ON}; measured on NVIDIA H200"


def test_five_strategies_are_told_and_the_last_place_is_kept_for_a_loss(record):
    records = [record(f"s{number}", 3.0 - number / 4) for number in range(9)]
    told = told_lines([records[0], records[0], *records])
    names = ["s0", "s1", "s2", "s3", "s8"]
    assert [line.partition(".")[0] for line in told] == [f"It does {name}" for name in names]
    assert told[0].startswith("It does s0. 3.00×"), "the author does not know the name"
    assert len(told_lines(records[:5])) == 5
    assert told_lines(()) == ()


def test_lines_come_before_single_strategies_and_count_among_the_five(record):
    steps = (AppliedStrategy(name="a", statement="Do one."), AppliedStrategy(name="b", statement="Do two."))
    line = StrategyLine(applied=steps, record=record(), weight=1.0)
    told = told_lines([record(f"s{number}") for number in range(9)], (line, line))
    assert len(told) == 5
    assert told[0].startswith("the fastest kernel known came from these steps, ")
    assert told[0].endswith(": (1) Do one. (2) Do two.")
    assert told[2].startswith("It does s0.")
    assert told[4].startswith("It does s8.")


def test_a_strategy_that_nobody_restated_is_told_in_its_own_words(record):
    derived = "The kernel carries out the same optimisations as its parent: coalesced (…)."
    same = Alignment(statement=derived, by="features")
    [told] = told_lines([record("row-in-cluster", 14.1, aligned=same)])
    assert told.startswith("Do row-in-cluster. 14.1×"), "the traits of a kernel name no idea"

    changed = "The kernel now carries out split-reduction (CTAs share sums)."
    brought = Alignment(statement=changed, by="features", brought=(Optimisation.SPLIT,))
    [told] = told_lines([record("split", aligned=brought)])
    assert told.startswith(f"Do split. {changed} 1.50×")

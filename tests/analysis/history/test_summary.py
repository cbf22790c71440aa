"""Sessions in rows and sentences, one row a round."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.history import row_figures, summary
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.graph import Value
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.round import Action, Decision, EndedStrategy, StrategyEnd
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing import examples

FIRST, LESS = Relation.FIRST, Relation.LESS_WORK
SESSION = examples.session_of(FIRST, LESS)
NO_COMPILER = Finding(
    kind="no-baseline", severity=Severity.FLAG,
    message="Baseline torch.compile could not be made: out of memory.",
)  # fmt: skip


def evaluated(number, evaluation, session=SESSION, **changed):
    """The session with another evaluation, and more, of one round."""
    rounds = list(session.rounds)
    attempt = replace(rounds[number].attempts[0], evaluation=evaluation)
    rounds[number] = replace(rounds[number], attempts=(attempt,), **changed)
    return replace(session, rounds=tuple(rounds))


def timed(**changed):
    over = [
        BaselineTiming(name=name, median_ms=2.0, speedup=2.0, speedup_low=1.9, speedup_high=2.1)
        for name in ("eager", "torch.compile")
    ]
    timing = Timing(median_ms=1.0, samples_ms=(), baselines=tuple(over), bandwidth_bytes_per_s=1e12)
    return replace(examples.passed(10), timing=timing, **changed)


def test_a_row_holds_verdict_relation_decision_and_counts():
    first, second = summary.rows(SESSION)
    assert (first.revision, first.verdict, first.relation, first.best) == ("r0", "PASSED", "first", False)
    assert (second.strategy, second.decision, second.decided_by) == ("coalesce", "approved", "policy:auto")
    assert (second.best, second.passed, second.attempts) == (True, True, 1)
    assert (second.gmem_sectors, second.warp_instructions) == (99, 1000)
    # 99 sectors of 32 bytes, of 8 bytes for each of 4,096 elements.
    assert second.moved_over_least == pytest.approx(99 * 32 / (8 * 4096))
    assert row_figures.counted_figures(second) == ("–", "99", "1,000", "0.10×")
    assert row_figures.timed_figures(second) == ("–", "–", "–")


def test_a_timed_row_holds_latency_and_every_baseline():
    gpu = replace(SESSION, device=replace(SESSION.device, kind=DeviceKind.GPU))
    row = summary.rows(evaluated(1, timed(findings=(NO_COMPILER,), library=(LibraryFamily.CONV,)), gpu))[1]
    assert (row.median_ms, row.speedup, row.baseline, len(row.baselines)) == (1.0, 2.0, "eager", 2)
    assert row.missing == ("torch.compile",)
    assert row.verdict_words == "PASSED with PyTorch's conv"
    latency, gained, roof = row_figures.timed_figures(row, "over eager")
    assert (latency, gained) == ("1.00 ms", "2.00× (1.90–2.10) over eager")
    assert roof.endswith(" %")


def test_the_reason_of_a_row_is_the_comparison_the_summary_or_the_problem():
    compared = Comparison(relation=LESS, reason="fewer")
    failed = examples.failed(Verdict.CRASHED, "It crashed.")
    assert summary.rows(evaluated(1, examples.passed(1), comparison=compared))[1].reason == "fewer"
    assert summary.rows(evaluated(1, failed, comparison=None))[1].reason == "It crashed."
    silent = replace(SESSION.rounds[1].attempts[0], candidate=None, evaluation=None, problem="no code")
    empty = replace(SESSION.rounds[1], attempts=(silent,), comparison=None)
    row = summary.rows(replace(SESSION, rounds=(SESSION.rounds[0], empty)))[1]
    assert (row.reason, row.verdict, row.passed) == ("no code", "no candidate", False)
    noted = replace(SESSION, rounds=(replace(empty, note="The author gave up."),))
    assert summary.rows(noted)[0].reason == "The author gave up."


def test_a_row_of_a_population_names_epoch_move_and_unstated_strategies():
    rows = summary.rows(examples.evolved_session())
    assert [(row.epoch, row.move) for row in rows] == [
        (None, ""), (1, "extend"), (1, "request"), (1, "invent"),
    ]  # fmt: skip
    assert rows[3].strategy == "no strategy stated"
    assert rows[0].strategy == ""


def test_strategies_that_the_author_ended_are_in_the_row():
    ended = EndedStrategy(
        strategy=examples.strategies()[1], end=StrategyEnd.CANNOT_APPLY, reason="Odd extents."
    )
    attempt = replace(SESSION.rounds[1].attempts[0], candidate=None, evaluation=None, ended=ended)
    first, second = SESSION.rounds
    told = replace(SESSION, rounds=(first, replace(second, attempts=(attempt, *second.attempts))))
    assert summary.rows(told)[1].ended == ("vectorise: cannot apply (Odd extents)",)


@pytest.mark.parametrize(
    ("relation", "kind"),
    [
        (FIRST, "good"), (LESS, "good"), (Relation.FASTER, "good"), (Relation.ESTIMATED_FASTER, "good"),
        (Relation.SLOWER, "bad"), (Relation.ESTIMATED_SLOWER, "bad"), (Relation.MORE_WORK, "bad"),
        (Relation.CANNOT_TELL, "neutral"), (Relation.SAME_WORK, "neutral"),
    ],
)  # fmt: skip
def test_a_relation_is_good_bad_or_neutral(relation, kind):
    made = evaluated(1, examples.passed(1), comparison=Comparison(relation=relation, reason="."))
    assert summary.relation_kind(summary.rows(made)[1]) == kind


def test_every_action_has_its_word_and_every_decider_a_name():
    for action in Action:
        assert summary.decision_word(Decision(gate="revision", action=action, by="")) != ""
    assert summary.decision_word(None) == ""
    assert [summary.who(by) for by in ("person:ada", "policy:auto", "policy:", "someone")] == [
        "ada", "policy auto", "policy:", "someone",
    ]  # fmt: skip


def test_the_last_decision_at_the_revision_gate_counts():
    made = [Decision(gate=gate, action=Action.STEER, by="", reason=gate) for gate in ("revision", "prompt")]
    later = Decision(gate="revision", action=Action.REJECT, by="")
    item = replace(SESSION.rounds[0], decisions=(made[0], later, made[1]))
    assert summary.decision(item) is later
    assert summary.decision(replace(item, decisions=(made[1],))) is None


def test_a_round_that_was_stopped_before_a_reply_is_not_counted():
    stopped = replace(SESSION.rounds[-1], number=2, attempts=())
    session = replace(SESSION, rounds=(*SESSION.rounds, stopped))
    assert summary.outcome(session).startswith("r1 (coalesce) is the best of 2 rounds. ")


def test_the_outcome_names_the_best_and_what_it_gained():
    assert summary.outcome(SESSION) == (
        "r1 (coalesce) is the best of 2 rounds. Since r0, global sectors went 100 → 99 (−1.0 %), "
        "0.10× the least bytes; warp instructions 1,000 → 1,000 (0 %)."
    )
    one = examples.session_of(FIRST)
    assert summary.outcome(one) == (
        "r0 (coalesce) is the best of 1 round. It touches 100 global sectors, 0.10× the least bytes."
    )


def test_the_outcome_tells_estimates_before_counts_and_times_instead_of_both():
    first, second = SESSION.rounds
    estimated = replace(SESSION, rounds=(
        replace(first, comparison=replace(first.comparison, estimated_s=2e-3)),
        replace(second, comparison=replace(second.comparison, estimated_s=1e-3)),
    ))  # fmt: skip
    assert "Its estimated time is 1.00 ms, that of r0 2.00 ms (2.00×). Since r0, " in summary.outcome(
        estimated
    )
    assert summary.outcome(evaluated(1, timed())) == (
        "r1 (coalesce) is the best of 2 rounds. It takes 1 ms, 2.00× (1.90–2.10) over eager, "
        "2.00× (1.90–2.10) over torch.compile."
    )


def test_the_outcome_says_where_nothing_was_reached():
    assert summary.outcome(replace(SESSION, rounds=(), stopped="")) == "No round has finished yet."
    assert summary.outcome(replace(SESSION, rounds=(), stopped="declined")) == "No round was finished."
    reject = Decision(gate="revision", action=Action.REJECT, by="person:ada")
    rejected = replace(SESSION, rounds=tuple(replace(one, decisions=(reject,)) for one in SESSION.rounds))
    assert summary.outcome(rejected) == "2 of 2 rounds passed, but none was approved."
    failed = evaluated(0, examples.failed(Verdict.CRASHED, "It crashed."), examples.session_of(FIRST))
    assert summary.outcome(failed) == "None of 1 round passed."


def test_a_baseline_that_could_not_be_made_is_told_once_with_its_rounds_and_reason():
    both = evaluated(0, timed(findings=(NO_COMPILER,)), evaluated(1, timed(findings=(NO_COMPILER,))))
    said = "Not compared with torch.compile in {}: out of memory."
    assert summary.missing_words(both) == said.format("r0, r1")
    assert summary.missing_words(both, told=both.rounds[1]) == said.format("r0")
    assert summary.outcome(both).endswith(said.format("r0, r1"))
    assert summary.missing_words(SESSION) == ""


def test_the_best_names_what_pytorch_computed():
    with_conv = evaluated(1, replace(examples.passed(1), library=(LibraryFamily.CONV,)))
    assert summary.best_words(with_conv, with_conv.rounds[1]) == (
        "r1 (coalesce) is the best of 2 rounds, with PyTorch's conv."
    )


def test_the_parent_is_what_a_candidate_was_compared_with_made_from_or_asked_with():
    first, second = SESSION.rounds
    digest = first.candidate.digest
    assert summary.parent_round(SESSION, first) is None
    assert summary.parent_round(SESSION, second) is None
    compared = replace(second, comparison=replace(second.comparison, against=digest))
    child = Candidate(source="child", author="x", parents=(digest,))
    made = replace(second, attempts=(replace(second.attempts[0], candidate=child),))
    prompt = replace(second.attempts[0].prompt, parent=first.candidate)
    asked = replace(second, attempts=(replace(second.attempts[0], prompt=prompt),))
    for item in (compared, made, asked):
        assert summary.parent_round(SESSION, item) is first
        assert summary.parent_candidate(SESSION, item) == first.candidate
    assert summary.parent_candidate(SESSION, replace(second, attempts=())) is None


def test_the_reduced_size_is_told_on_the_simulator_only():
    assert summary.size_words(SESSION) == (
        "Runs at 4,096 instead of 1,048,576: errors and counts are of this size, estimates of the full one."
    )
    whole = replace(SESSION, facts=replace(SESSION.facts, scaled=SESSION.facts.full))
    assert summary.size_words(whole) == ""
    gpu = replace(SESSION, device=replace(SESSION.device, kind=DeviceKind.GPU))
    assert summary.size_words(gpu) == ""
    assert summary.simulated(SESSION)
    assert not summary.simulated(gpu)


def test_the_floor_is_computed_from_the_data_sheet():
    # 8 MiB at 1.555 TB/s.
    assert summary.floor(SESSION) == ("5.39 µs at full size on NVIDIA A100, computed as bytes ÷ bandwidth")
    nothing = replace(SESSION.device, bandwidth_bytes_per_s=0.0, peak_flops={}, name="X (simulated)")
    assert summary.floor(replace(SESSION, device=nothing)) == "unknown: NVIDIA A100 data sheet"
    assert summary.hardware(replace(SESSION, device=nothing)) == "X"


def test_an_input_is_named_by_all_its_extents():
    spec = replace(SESSION.facts.full.graph.inputs[0].spec, shape=(1024, 2048), strides=(2048, 1))
    full = replace(SESSION.facts.full.graph, inputs=(Value(name="x", spec=spec),))
    told = replace(SESSION, facts=replace(SESSION.facts, full=replace(SESSION.facts.full, graph=full)))
    assert summary.size_words(told).startswith("Runs at 4,096 instead of 1,024 × 2,048:")

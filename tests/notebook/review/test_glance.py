"""Figures of a round at a glance."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.core.estimate import Estimate, FullSizeSample, LaunchSample, Term
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Action, Decision, PredictedChange, Prediction
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.notebook.review.glance import _headline, glance
from cutegen_nb.notebook.view import Live, detail
from cutegen_nb.testing import examples

SESSION = examples.session_of(Relation.FIRST, Relation.LESS_WORK)


def with_estimate(item, seconds, sectors):
    attempt = replace(item.attempts[0], evaluation=examples.passed(sectors))
    return replace(
        item,
        attempts=(attempt,),
        comparison=Comparison(relation=Relation.FIRST, reason=".", estimated_s=seconds),
    )


def test_the_bound_its_bars_and_what_changed_most_are_told():
    first, second = with_estimate(SESSION.rounds[0], 8e-6, 400), with_estimate(SESSION.rounds[1], 2e-6, 100)
    found = diagnose(SESSION.facts, second.evaluation, SESSION.device)
    shown = glance(SESSION, second, first, "r0", found)
    assert shown["headline"].startswith(f"Bound by {found.bound.value}")
    assert shown["bars"][0]["fraction"] == 1.0
    assert [bar["fraction"] for bar in shown["bars"]] == sorted(
        (bar["fraction"] for bar in shown["bars"]), reverse=True
    )
    time, sectors = shown["changes"][:2]
    assert (time["title"], time["before"], time["after"]) == ("Estimated time", "8.00 µs", "2.00 µs")
    assert time["kind"] == "neutral", "two times decide nothing: the comparison does"
    assert (sectors["title"], sectors["moved"]) == ("Global sectors (32 B)", "−75.0 % better")


def counted(item, full=None, **ran):
    """A round with these counts of what ran, and with a sample at full size where `full` has its counts."""
    evaluation = examples.passed(1)
    launch = evaluation.profile.launches[0]
    profile = replace(evaluation.profile, launches=(replace(launch, counters=Counters(**ran)),))
    sample = LaunchSample(profile=replace(launch, counters=Counters(**(full or {}))), ctas=1)
    made = replace(
        evaluation, profile=profile, full_size=FullSizeSample(launches=(sample,)) if full else None
    )
    return replace(item, attempts=(replace(item.attempts[0], evaluation=made),))


def shown_of(first, second):
    session = replace(SESSION, rounds=(first, second))
    found = diagnose(session.facts, second.evaluation, session.device)
    return glance(session, second, first, "r0", found)


def moved(shown):
    return {one["title"]: one["moved"] for one in shown["changes"]}


def test_counts_are_those_of_the_full_size_where_both_revisions_were_sampled_at_it():
    first = counted(SESSION.rounds[0], {"warp_instructions": 14_000}, warp_instructions=256)
    second = counted(SESSION.rounds[1], {"warp_instructions": 7_000}, warp_instructions=468)
    shown = shown_of(first, second)
    assert moved(shown)["Warp instructions"] == "−50.0 % better"
    assert shown["size"] == "counts at full size"


def test_counts_of_the_reduced_size_say_so():
    first = counted(SESSION.rounds[0], {"warp_instructions": 14_000}, warp_instructions=256)
    second = counted(SESSION.rounds[1], warp_instructions=512)
    shown = shown_of(first, second)
    assert moved(shown)["Warp instructions"] == "+100.0 % worse"
    assert shown["size"] == "counts at the reduced size"


def test_a_gain_stands_before_a_loss_of_a_smaller_factor():
    first = counted(SESSION.rounds[0], gmem_load_sectors=4000, gmem_ideal_sectors=1, branches=100)
    second = counted(SESSION.rounds[1], gmem_load_sectors=1000, gmem_ideal_sectors=1, branches=265)
    assert list(moved(shown_of(first, second)))[:2] == ["Global sectors (32 B)", "Branches"]


def test_counts_that_begin_at_0_do_not_hide_a_gain():
    first = counted(SESSION.rounds[0], gmem_load_sectors=4000, gmem_ideal_sectors=1)
    second = counted(SESSION.rounds[1], gmem_load_sectors=1000, gmem_ideal_sectors=1, barriers=8, branches=9)
    assert list(moved(shown_of(first, second))) == ["Global sectors (32 B)", "Barriers", "Branches"]


MANY = {"barriers": 1, "branches": 1, "divergent_branches": 1, "smem_wavefronts": 1, "gmem_store_bytes": 1}


def test_a_count_that_strategy_or_prediction_names_is_not_left_out():
    same = {"warp_instructions": 100, "gmem_load_sectors": 9, "gmem_ideal_sectors": 9}
    first = counted(SESSION.rounds[0], gmem_requests=100, **same, **MANY)
    compared = Comparison(relation=Relation.LESS_WORK, reason=".", against=first.candidate.digest)
    second = counted(SESSION.rounds[1], gmem_requests=90, **same, **dict.fromkeys(MANY, 50))
    second = replace(second, comparison=compared)
    left_out = {"Global requests", "Warp instructions"}
    before = moved(shown_of(first, second))
    assert not left_out & set(before)
    assert before["Global sectors of loads"] == "0 %", "the strategy names it"
    said = Prediction(
        text="x", counter="gmem_requests", others=(PredictedChange(counter="warp_instructions"),)
    )
    made = Decision(gate="prompt", action=Action.APPROVE, by="person:ada", prediction=said)
    assert left_out < set(moved(shown_of(first, replace(second, decisions=(made,)))))


def test_a_cause_that_is_the_bound_itself_is_told_once():
    item = with_estimate(SESSION.rounds[1], 2e-6, 100)
    found = diagnose(SESSION.facts, item.evaluation, SESSION.device)
    bound = found.bound.value
    cause = replace(found.causes[0], name=f"{bound}-bound")
    shown = glance(SESSION, item, None, "", replace(found, causes=(cause,)))
    assert shown["headline"] == f"Bound by {bound}."
    other = glance(SESSION, item, None, "", replace(found, causes=(replace(cause, name="uncoalesced"),)))
    assert other["headline"] == f"Bound by {bound}. The counts point to uncoalesced accesses."


def test_a_small_problem_is_no_cause_where_the_estimate_is_bound_by_another_limit():
    found = diagnose(SESSION.facts, SESSION.rounds[1].evaluation, SESSION.device)
    small = replace(found.causes[0], name="launch-bound")
    both = replace(found, causes=(small, replace(small, name="uncoalesced")))
    for name, headline in (
        ("L1 and shared memory", "Bound by L1 and shared memory. The counts point to uncoalesced accesses."),
        ("launch", "Bound by launch."),
    ):
        terms = (Term(name=name, seconds=3e-4),)
        estimate = Estimate(
            target="NVIDIA H200", seconds=3e-4, seconds_low=2e-4, seconds_high=4e-4, bound=name, terms=terms
        )
        assert _headline(both, estimate) == headline


def test_a_first_kernel_has_bars_and_no_changes():
    shown = detail(SESSION, Live(ended="done"), 0)["glance"]
    assert shown["bars"]
    assert shown["changes"] == []
    assert shown["against"] == ""


def test_what_did_not_pass_has_no_glance():
    failed = examples.failed(Verdict.WRONG_VALUES, "3 of 4 elements differ")
    item = replace(SESSION.rounds[1], attempts=(replace(SESSION.rounds[1].attempts[0], evaluation=failed),))
    made = replace(SESSION, rounds=(SESSION.rounds[0], item))
    assert detail(made, Live(ended="done"), 1)["glance"] is None

"""Figures of a round at a glance."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.core.estimate import Estimate, Term
from cutegen_nb.core.evaluation import Verdict
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


def test_a_cause_that_is_the_bound_itself_is_told_once():
    item = with_estimate(SESSION.rounds[1], 2e-6, 100)
    found = diagnose(SESSION.facts, item.evaluation, SESSION.device)
    bound = found.bound.value
    cause = replace(found.causes[0], name=f"{bound}-bound")
    shown = glance(SESSION, item, None, "", replace(found, causes=(cause,)))
    assert shown["headline"] == f"Bound by {bound}."
    other = glance(SESSION, item, None, "", replace(found, causes=(replace(cause, name="uncoalesced"),)))
    assert other["headline"] == f"Bound by {bound}. The counts point to uncoalesced."


def test_a_small_problem_is_no_cause_where_the_estimate_is_bound_by_another_limit():
    found = diagnose(SESSION.facts, SESSION.rounds[1].evaluation, SESSION.device)
    small = replace(found.causes[0], name="launch-bound")
    both = replace(found, causes=(small, replace(small, name="uncoalesced")))
    for name, headline in (
        ("L1 and shared memory", "Bound by L1 and shared memory. The counts point to uncoalesced."),
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

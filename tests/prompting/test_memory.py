"""What a prompt remembers of a session: bounded, newest in full, people's words kept."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Action, Attempt, Decision, EndedStrategy, Prompt, Round, StrategyEnd
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.memory import (
    MEMORY_TOKENS,
    requests_by_round,
    steering_text,
    tokens_of,
    tried_text,
)
from cutegen_nb.testing import examples


def tried(
    number: int, name: str, relation: Relation, *words: tuple[Action, str], why: str = "Counted."
) -> Round:
    attempt = Attempt(
        purpose="optimise",
        prompt=Prompt(system="", user="", digest=""),
        reply=None,
        candidate=Candidate(source=examples.kernel_source(f"r{number}"), author="scripted"),
        evaluation=examples.passed(100),
    )
    said = tuple(Decision(gate="revision", action=a, by="person:ada", reason=text) for a, text in words)
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=Strategy(name=name, statement=""),
        attempts=(attempt,),
        comparison=Comparison(relation=relation, reason=why),
        decisions=said or (Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="",
        seconds=1.0,
    )


def session(*rounds: Round) -> Session:
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="scripted",
        budget=Budget(),
        created_at="",
        rounds=rounds,
    )


def test_what_fits_is_told_in_full_with_figures_and_words():
    text = tried_text(
        session(tried(0, "grid-stride", Relation.MORE_WORK, (Action.REJECT, "too\nslow"), why="+12 %."))
    )
    assert text == (
        "- r0, grid-stride: PASSED, more work (+12 %); not kept\n"
        "  > the person rejected it: too\n"
        "  > the person rejected it: slow\n"
    )


def test_the_oldest_shrink_to_a_line_a_strategy_and_keep_who_said_what():
    long = "figures " * 60
    rounds = [tried(n, f"s{n % 2}", Relation.SAME_WORK, why=long) for n in range(8)]
    rounds[1] = tried(1, "s1", Relation.SAME_WORK, (Action.STEER, "no shared memory " * 30), why=long)
    text = tried_text(session(*rounds), tokens=300)
    first, *rest = text.splitlines()
    assert first == "- r0 to r5, in short:"
    assert rest[0] == "  - s0: 3× same work; kept r4"
    assert rest[1] == "  - s1: 3× same work; kept r5"
    assert "  > r2: the person had asked: no shared memory" in text
    (asked,) = [line for line in rest if "the person had asked" in line]
    assert asked.endswith(" …")
    assert "- r6, s0: PASSED" in text
    assert "- r7, s1: PASSED" in text


@given(count=st.integers(0, 40), length=st.integers(1, 400), tokens=st.integers(300, 2000))
@settings(deadline=None, max_examples=40)
def test_the_memory_of_any_session_is_bounded(count, length, tokens):
    rounds = [tried(n, f"s{n % 5}", Relation.SAME_WORK, why="x" * length) for n in range(count)]
    text = tried_text(session(*rounds), tokens=tokens)
    # Two rounds are told whatever they take, and the summary has a line a strategy.
    assert tokens_of(text) <= tokens + 2 * (length // 4 + 30) + 5 * 12 + 40
    assert not count or f"- r{count - 1}, " in text


def test_a_session_of_a_thousand_rounds_takes_a_few_thousand_tokens():
    rounds = [tried(n, f"s{n % 20}", Relation.SAME_WORK, why="figures " * 30) for n in range(1000)]
    assert tokens_of(tried_text(session(*rounds))) < 1.2 * MEMORY_TOKENS


def test_a_talkative_persons_oldest_words_are_left_out_and_counted():
    rounds = [
        tried(n, "s", Relation.SAME_WORK, (Action.STEER, "remark " * 40), why="figures " * 30)
        for n in range(200)
    ]
    text = tried_text(session(*rounds))
    assert tokens_of(text) < 2 * MEMORY_TOKENS
    assert "earlier remarks of the person are left out" in text


def test_scores_and_what_a_repair_gave_up_stand_with_their_round():
    item = tried(0, "unroll", Relation.LESS_WORK)
    text = tried_text(session(item), {0: ("the strategy: `warp_instructions` down: held",)})
    assert "  - the strategy: `warp_instructions` down: held\n" in text


def test_steering_holds_for_the_next_round_only_and_is_told_there():
    steered = tried(0, "a", Relation.SAME_WORK, (Action.STEER, "keep the tail"))
    assert steering_text(session(steered)) == "keep the tail"
    assert "keep the tail" not in tried_text(session(steered))
    later = session(steered, tried(1, "b", Relation.SAME_WORK))
    assert steering_text(later) == ""
    assert tried_text(later) == (
        "- r0, a: PASSED, same work (Counted); not kept\n"
        "- r1, b: PASSED, same work (Counted); kept\n"
        "  > the person had asked: keep the tail\n"
    )


def test_a_request_at_the_gate_of_a_prompt_belongs_to_its_own_round():
    item = tried(0, "a", Relation.SAME_WORK)
    said = Decision(gate="prompt", action=Action.STEER, by="person:ada", reason="64 threads")
    assert requests_by_round(session(replace(item, decisions=(said, *item.decisions)))) == {0: "64 threads"}


def test_a_strategy_that_the_author_ended_is_told_with_its_reason():
    over = EndedStrategy(
        strategy=Strategy(name="split-k", statement=""), end=StrategyEnd.CANNOT_APPLY, reason="K is 32."
    )
    item = tried(0, "unroll", Relation.SAME_WORK)
    first = replace(item.attempts[0], candidate=None, evaluation=None, ended=over)
    told = tried_text(session(replace(item, attempts=(first, *item.attempts))))
    assert told == (
        "- r0, unroll: PASSED, same work (Counted); kept\n  - not tried, split-k: cannot apply (K is 32)\n"
    )
    nothing = replace(item, attempts=(first,), comparison=None, note="No strategy is left.")
    assert tried_text(session(nothing)).startswith(
        "- r0, no strategy carried out: no candidate (No strategy is left); not kept\n"
    )


def test_an_ended_strategy_is_still_told_of_a_summarised_round():
    over = EndedStrategy(
        strategy=Strategy(name="split-k", statement=""), end=StrategyEnd.ALREADY_DONE, reason="line 9"
    )
    rounds = [tried(n, "s", Relation.SAME_WORK, why="figures " * 60) for n in range(8)]
    ended = replace(rounds[0].attempts[0], candidate=None, evaluation=None, ended=over)
    rounds[0] = replace(rounds[0], attempts=(ended, *rounds[0].attempts))
    assert "  - not tried, split-k: already done (line 9)\n" in tried_text(session(*rounds), tokens=300)

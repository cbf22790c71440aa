"""Scripted authors and recorded evaluators do what a test tells them, and nothing else."""

import asyncio

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined, EvaluatorError, Unreachable
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import passed, relu_facts, relu_problem, session_of, simulated_device
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel


def test_answers_come_in_order_and_the_end_declines():
    author, session = ScriptedModel(["one", Unreachable("gone")]), session_of(Relation.FIRST)
    prompt = Prompt(system="", user="u", digest="")

    def ask():
        return asyncio.run(author.write(prompt, session, lambda _: None))

    assert ask().text == "one"
    with pytest.raises(Unreachable):
        ask()
    with pytest.raises(Declined):
        ask()
    assert [one.user for one in author.prompts] == ["u", "u", "u"]


def test_a_closer_look_has_its_own_answer_and_an_unknown_kernel_none():
    candidate = Candidate(source="a", author="test")
    evaluator = RecordedEvaluator(
        relu_facts(), simulated_device(), {candidate.digest: passed(1)}, closer={candidate.digest: passed(2)}
    )

    def evaluate(given, tier=Tier.A):
        return asyncio.run(evaluator.evaluate(relu_problem(), given, lambda _: None, tier))

    assert evaluate(candidate).profile.counters.gmem_load_sectors == 1
    assert evaluate(candidate, Tier.B).profile.counters.gmem_load_sectors == 2
    with pytest.raises(EvaluatorError, match="no evaluation is recorded"):
        evaluate(Candidate(source="b", author="test"))
    assert evaluator.tiers == [Tier.A, Tier.B]

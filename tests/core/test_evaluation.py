"""Evaluations carry their tier, checks and evidence through JSON, and read what older versions wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Evaluation,
    Judged,
    NotJudged,
    NotJudgedReason,
    Tier,
    Verdict,
)
from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.problem import Admission, ProblemFacts
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.stage import Stage
from cutegen_nb.testing import examples

PLAIN = Evaluation(outcome=Judged(verdict=Verdict.CHEATED), summary="No kernel.", device="simulator")
FULL = replace(
    PLAIN,
    tier=Tier.C,
    checks=(CheckResult(name="many calls", tier=Tier.B, state=CheckState.FOUND, note="call 17"),),
    exhibits=(Exhibit(kind="no-kernel", statement="No kernel.", trace=("nothing",), lines=(3, 5)),),
    candidate_digest="ab",
)


def test_evidence_survives_the_trip_through_json():
    assert decode(Evaluation, json.loads(json.dumps(encode(FULL)))) == FULL
    facts = replace(examples.relu_facts(), admission=Admission(refused=("zeros",), added_inputs=("signs",)))
    assert decode(ProblemFacts, json.loads(json.dumps(encode(facts)))) == facts


def test_what_an_older_version_wrote_still_reads():
    written = encode(FULL)
    for name in ("tier", "checks", "exhibits", "candidate_digest", "problem_digest", "confinement"):
        del written[name]
    assert decode(Evaluation, written) == PLAIN
    facts = encode(examples.relu_facts())
    del facts["admission"]
    assert decode(ProblemFacts, facts).admission is None


@pytest.mark.parametrize(
    ("outcome", "may"),
    [
        (Judged(verdict=Verdict.CHEATED), True),
        (NotJudged(reason=NotJudgedReason.ABOVE_ROOF), True),
        (NotJudged(reason=NotJudgedReason.DECLINED), False),
        (Judged(verdict=Verdict.WRONG_VALUES), False),
        (Judged(verdict=Verdict.CRASHED), False),
    ],
)
def test_only_what_rests_on_inference_may_be_overruled(outcome, may):
    assert replace(PLAIN, outcome=outcome).may_be_overruled is may
    closer = replace(FULL, outcome=outcome)
    assert closer.may_be_overruled is (may or outcome == Judged(verdict=Verdict.WRONG_VALUES))


def test_an_overruling_needs_a_reason():
    def decided(reason):
        decision = Decision(gate="revision", action=Action.OVERRULE, by="person:ada", reason=reason)
        prompt = examples_prompt()
        return Round(
            number=0,
            stage=Stage.CORRECT,
            strategy=None,
            attempts=(prompt,),
            comparison=None,
            decisions=(decision,),
            started_at="",
            seconds=0.0,
        )

    assert decided("the trace missed it").approved
    assert not decided("  ").approved


def examples_prompt():
    from cutegen_nb.core.candidate import Candidate
    from cutegen_nb.core.round import Attempt, Prompt

    candidate = Candidate(source="x", author="ada")
    prompt = Prompt(system="", user="", digest="")
    return Attempt(purpose="edit", prompt=prompt, reply=None, candidate=candidate, evaluation=FULL)

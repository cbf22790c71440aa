"""Evaluations carry their tier, checks and evidence through JSON, and read what older versions wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
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
    WorkShare,
)
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.problem import Admission, ProblemFacts
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.stage import Stage
from cutegen_nb.testing import examples

EVIDENCE = Exhibit(kind="no-kernel", statement="No kernel.", trace=("nothing",), lines=(3, 5))
PLAIN = Evaluation(
    outcome=Judged(verdict=Verdict.CHEATED), summary="No kernel.", device="simulator", exhibits=(EVIDENCE,)
)
FULL = replace(
    PLAIN,
    tier=Tier.C,
    checks=(CheckResult(name="many calls", tier=Tier.B, state=CheckState.FOUND, note="call 17"),),
    candidate_digest="ab",
)
DECIDING = Finding(kind="race", message="Two threads write one element.")
FLAG = Finding(kind="torch-compute", message="PyTorch adds.", severity=Severity.FLAG)


def test_evidence_survives_the_trip_through_json():
    assert decode(Evaluation, json.loads(json.dumps(encode(FULL)))) == FULL
    facts = replace(examples.relu_facts(), admission=Admission(refused=("zeros",), added_inputs=("signs",)))
    assert decode(ProblemFacts, json.loads(json.dumps(encode(facts)))) == facts


def test_what_an_older_version_wrote_still_reads():
    written = encode(FULL)
    for name in ("tier", "checks", "exhibits", "candidate_digest", "problem_digest", "confinement"):
        del written[name]
    read = decode(Evaluation, written)
    assert replace(read, exhibits=PLAIN.exhibits) == PLAIN
    assert read.exhibits == (Exhibit(kind="recorded-by-an-older-version", statement="No kernel."),)
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
        prompt = accused_attempt()
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


def accused_attempt():
    candidate = Candidate(source="x", author="ada")
    prompt = Prompt(system="", user="", digest="")
    return Attempt(purpose="edit", prompt=prompt, reply=None, candidate=candidate, evaluation=FULL)


def test_a_pass_beside_a_deciding_finding_is_refused_and_beside_a_flag_is_not():
    with pytest.raises(ValueError, match="PASSED contradicts the deciding finding race"):
        replace(examples.passed(10), findings=(FLAG, DECIDING))
    assert replace(examples.passed(10), findings=(FLAG,)).passed
    assert not examples.failed(Verdict.RACE, "Two threads write one element.").passed


def test_a_provisional_pass_does_not_stand_and_may_be_overruled():
    whole = examples.passed(10)
    part = replace(whole, provisional=("other shapes: out of time",))
    assert (whole.stands, whole.may_be_overruled) == (True, False)
    assert (part.passed, part.stands, part.may_be_overruled) == (True, False, True)
    assert part.shortfall == (
        "its pass is provisional (other shapes: out of time), and only a full pass can be built upon"
    )
    assert PLAIN.shortfall == "its verdict is CHEATED, and only a kernel that passed can be built upon"


def test_the_reason_against_an_overruling_names_what_was_found_and_the_next_step():
    unread = replace(PLAIN, outcome=NotJudged(reason=NotJudgedReason.UNSUPPORTED_OPCODE))
    assert unread.shortfall.startswith("it was not judged: ")
    assert unread.why_not_overruled.endswith("so there is no verdict; reject it, edit it or stop")
    assert examples.passed(10).why_not_overruled == "it passed; approve or reject it"
    crashed = examples.failed(Verdict.CRASHED, "Crashed.").why_not_overruled
    assert crashed == "CRASHED is an observed fact, not an inference; reject it, edit it or stop"


def test_the_verdict_names_the_parts_that_pytorch_computed():
    found = replace(examples.passed(10), library=(LibraryFamily.CONV, LibraryFamily.MATMUL))
    assert found.verdict_words == "PASSED with PyTorch's conv and matmul"
    assert examples.passed(10).verdict_words == "PASSED"
    unclear = NotJudged(reason=NotJudgedReason.ABOVE_ROOF)
    assert replace(PLAIN, outcome=unclear).verdict_words == "not judged: ABOVE_ROOF"


def test_work_by_others_is_told_from_a_sixteenth_on():
    said = "Whose work it is: the candidate's kernels stand for 50%, PyTorch and libraries for"
    shares = {(0.95, 0.05, 0.0): "", (0.5, 0.5, 0.0): f"{said} 50%."}
    shares[0.5, 0.25, 0.25] = f"{said} 25%, the host for 25%."
    for (own, library, host), sentence in shares.items():
        found = WorkShare(own_fraction=own, library_fraction=library, host_fraction=host)
        assert found.sentence == sentence


def test_each_tier_includes_the_ones_before_it():
    included = {tier: [other for other in Tier if tier.includes(other)] for tier in Tier}
    assert included == {Tier.A: [Tier.A], Tier.B: [Tier.A, Tier.B], Tier.C: [Tier.A, Tier.B, Tier.C]}

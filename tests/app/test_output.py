"""JSON objects of the commands: every one is plain JSON without the codec's type names."""

from __future__ import annotations

import json

import pytest

from cutegen_nb.analysis.campaign.paired import compare_variants
from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.app.campaign_output import campaign_json
from cutegen_nb.app.output import (
    damaged_json,
    evaluation_json,
    lineage_json,
    population_json,
    problem_json,
    session_json,
    sessions_json,
)
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.search.campaign import CampaignRecord, ProblemState
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing import examples

SESSION = examples.evolved_session()
RECORD = CampaignRecord(name="level1", created_at="now", settings={}, budgets={}, environment={})
RESULT = ProblemResult(name="relu", file="relu.py", state=ProblemState.WAITING)
OBJECTS = {
    "session": session_json(SESSION, "relu.html"),
    "population": population_json(SESSION),
    "sessions": sessions_json([summarise(SESSION)]),
    "lineage": lineage_json(SESSION),
    "problem": problem_json("relu", examples.relu_facts()),
    "evaluation": evaluation_json(examples.failed(Verdict.CHEATED, "It kept an answer.", line=3)),
    "campaign": campaign_json(
        RECORD, [RESULT], [(compare_variants("guide=off", [RESULT], [RESULT]), [RESULT])]
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_every_object_is_json_without_type_names(name):
    text = json.dumps(OBJECTS[name], allow_nan=False)

    assert '"_":' not in text
    assert json.loads(text) == OBJECTS[name]


def test_a_session_has_its_rounds_its_epochs_and_the_best():
    found = OBJECTS["session"]

    assert [item["revision"] for item in found["rounds"]] == ["r0", "r1", "r2", "r3"]
    assert found["best"] == found["rounds"][2]
    assert found["report"] == "relu.html"
    assert [item["members"] for item in found["epochs"]] == [["r2", "r0"]]
    assert found["rounds"][1]["slot"]["move"] == "extend"
    assert found["rounds"][1]["aligned"]["unfulfilled"] == ["pipelined: the only one with tiles"]
    assert found["rounds"][0]["slot"] is None


def test_a_round_that_never_passed_has_no_figures():
    failed = OBJECTS["session"]["rounds"][3]

    assert failed["verdict"] == "no candidate"
    assert failed["reason"] == "the only one with tiles"
    for name in ("candidate", "counters", "timing", "tier", "relation", "sol_fraction", "estimated_s"):
        assert failed[name] is None, name


def test_an_accusation_comes_with_its_evidence():
    found = OBJECTS["evaluation"]

    assert (found["verdict"], found["passed"]) == ("CHEATED", False)
    assert found["exhibits"][0]["statement"] == "It kept an answer."
    assert found["findings"][0]["line"] == 3


def test_damaged_sessions_have_the_same_fields_as_readable_ones():
    (damaged,) = damaged_json({"old": "its rounds cannot be read"})

    assert set(damaged) == set(sessions_json([summarise(SESSION)])[0])
    assert damaged["damaged"] == "its rounds cannot be read"


def test_a_chain_has_no_epochs():
    (chain,) = sessions_json([summarise(examples.session_of(Relation.FIRST))])

    assert chain["epochs"] is None
    assert session_json(examples.session_of(Relation.FIRST), None)["epochs"] == []

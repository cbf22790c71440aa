"""A campaign as JSON."""

from __future__ import annotations

from cutegen_nb.analysis.campaign.paired import compare_variants
from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.app.campaign_output import campaign_json
from cutegen_nb.app.output import (
    evaluation_json,
    lineage_json,
    population_json,
    problem_json,
    session_json,
    sessions_json,
)
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.search.campaign import CampaignRecord, ProblemState
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


def test_a_problem_that_waits_has_no_figure_and_counts_as_not_run():
    found = OBJECTS["campaign"]

    assert found["problems"][0]["estimate"] is None
    assert found["problems"][0]["correct"] is False
    assert (found["totals"]["problems"], found["totals"]["run"]) == (1, 0)
    assert found["variants"][0]["variant"] == "guide=off"
    assert found["variants"][0]["comparison"]["compared"] == 0

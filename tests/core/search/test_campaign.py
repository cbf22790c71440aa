"""States of problems in a campaign, and the record of their outcomes."""

from __future__ import annotations

from cutegen_nb.core.search.campaign import CampaignEntry, CampaignRecord, ProblemState


def test_what_was_tried_to_its_end_is_over_whatever_came_of_it():
    over = {state for state in ProblemState if state.is_over}
    assert set(ProblemState) - over == {ProblemState.UNFINISHED, ProblemState.WAITING}
    assert {state for state in ProblemState if state.is_regular} == {
        ProblemState.FINISHED, ProblemState.OVER_BUDGET,
    }  # fmt: skip


def test_the_newest_outcome_of_a_problem_counts():
    def entry(state):
        return CampaignEntry(name="relu", file="relu.py", digest="", state=state)

    entries = (entry(ProblemState.OVER_BUDGET), entry(ProblemState.FINISHED))
    record = CampaignRecord(name="c", created_at="", settings={}, budgets={}, environment={}, entries=entries)
    assert record.entry_of("relu") is entries[1]
    assert record.entry_of("gelu") is None

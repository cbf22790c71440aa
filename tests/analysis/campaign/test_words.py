"""Tables of a campaign."""

from __future__ import annotations

from cutegen_nb.analysis.campaign.paired import compare_variants
from cutegen_nb.analysis.campaign.totals import totals_of
from cutegen_nb.analysis.campaign.words import (
    pairs_table,
    problems_table,
    speedups_table,
    totals_table,
    variants_note,
    variants_table,
)
from cutegen_nb.core.search.campaign import ProblemState


def cells(table, first):
    """The row whose first cell is `first`, by heading."""
    row = next(row for row in table.rows if row[0] == first)
    return dict(zip(table.heading, row, strict=True))


def test_a_gpus_table_has_latency_and_speedups_and_a_simulators_has_estimates(solved, estimated):
    measured, computed = problems_table([solved()]), problems_table([estimated()])
    assert cells(measured, "19_ReLU") == {
        "problem": "19_ReLU", "class": "element-wise", "verdict": "PASSED", "best": "r2", "rounds": "3",
        "latency": "1.00 ms", "over eager": "2.00× (1.98–2.02)", "of roof": "50.0 %", "tokens": "1,000",
        "cost": "$0.25", "GPU s": "10.0", "min": "1.0", "ended": "",
    }  # fmt: skip
    assert "latency" not in computed.heading
    assert cells(computed, "19_ReLU")["estimate"] == "1.00 ms"
    assert cells(computed, "19_ReLU")["est. of roof"] == "80.0 %"
    assert all(len(row) == len(measured.heading) for row in measured.rows)


def test_columns_that_no_row_fills_or_that_are_left_out_are_not_there(solved, failed):
    plain = problems_table([failed()])
    assert plain.heading == ("problem", "class", "verdict", "best", "rounds", "min", "ended")
    narrow = problems_table([solved()], with_intervals=False, without={"class", "GPU s"})
    assert not {"class", "GPU s"} & set(narrow.heading)
    assert cells(narrow, "19_ReLU")["over eager"] == "2.00×"
    assert {narrow.heading[place] for place in narrow.figures} >= {"rounds", "latency", "min"}


def test_a_failed_problem_tells_its_state_and_its_reason(failed):
    def told(**changed):
        row = cells(problems_table([failed(**changed)]), "99_Hard")
        return row["verdict"], row["ended"]

    assert told(reason="6 rounds; see the report") == ("finished", "6 rounds")
    assert told(state=ProblemState.DECLINED, reason="No operator") == ("declined", "No operator")
    assert told(state=ProblemState.FAILED, reason="Lost", verdict="CRASHED") == ("CRASHED", "failed: Lost")
    assert told(state=ProblemState.FAILED) == ("failed", "failed")


def test_a_baseline_that_could_not_be_made_is_named_so(solved):
    table = problems_table(
        [solved("1_a"), solved("2_b", baselines=(), missing=("eager",)), solved("3_c", baselines=())]
    )
    assert [row[table.heading.index("over eager")] for row in table.rows[1:]] == ["not had", "–"]


def test_totals_say_how_failures_enter(solved, failed):
    table = totals_table(totals_of([solved(), failed(), failed(state=ProblemState.WAITING)]))
    assert cells(table, "problems run")[""] == "2 of 3 (1 waiting)"
    assert cells(table, "correct")[""] == "1 = 50.0 % (9.5–90.5 %)"
    assert cells(table, "cost")[""] == "$0.25"
    assert cells(table, "share of the roof, median")["how it is counted"] == (
        "over the 1 correct and timed kernels, without failures"
    )
    nothing = totals_table(totals_of([failed(state=ProblemState.WAITING)]))
    assert cells(nothing, "correct")[""] == "–"
    assert cells(nothing, "cost")["how it is counted"] == "no price is known"
    assert cells(nothing, "tokens")["how it is counted"] == "the author used none"


def test_an_estimated_share_is_never_called_measured(estimated):
    row = cells(totals_table(totals_of([estimated()])), "estimated share of the roof, median")
    assert row["how it is counted"].endswith("computed, not measured")


def test_speedups_are_told_with_and_without_failures(solved, failed):
    table = speedups_table(totals_of([solved("1_a", 4.0), solved("2_b", 1.0), failed()]))
    told = {row[0]: row[1] for row in table.rows}
    assert table.heading == ("speedup", "over eager", "how it is counted")
    assert told["correct and timed"] == "2"
    assert told["geometric mean"].startswith("2.00× (")
    assert told["geometric mean, failures as 1.00"] == "1.59×"
    assert told["Fast_1"] == told["Fast_2"] == "33.3 %"
    assert (told["above 1.00×"], told["median"], told["arithmetic mean"]) == ("1", "2.50×", "2.50×")
    assert speedups_table(totals_of([failed()])).heading == ("speedup", "how it is counted")


def test_a_variant_is_told_against_the_campaign_without_the_change(solved, failed):
    base, changed = [solved(latency_ms=1.0), failed()], [solved(latency_ms=0.5), failed()]
    found = compare_variants("guide=off", base, changed)
    table = variants_table(totals_of(base), [(found, totals_of(changed))])
    row = cells(table, "guide=off")
    assert row["ratio, geometric mean"] == "2.00×"
    assert (row["pairs"], row["wins"], row["losses"], row["ties"], row["not compared"]) == (
        "1", "1", "0", "1", "0",
    )  # fmt: skip
    assert row["sign test p"] == "1"
    assert set(cells(table, "without a change").values()) >= {"–", "1"}
    assert "latencies" in variants_note([found])
    pairs = pairs_table([found])
    assert pairs.rows == (("19_ReLU", "2.00× win"), ("99_Hard", "tie"))


def test_variants_of_estimates_are_said_to_be_so(estimated):
    note = variants_note([compare_variants("x", [estimated()], [estimated()])])
    assert "estimated times" in note
    assert "Within 5 % is a tie" in note

"""An accusation is shown with what it rests on, and a verdict with what was checked and what was not."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.source.exhibits import exhibit_lines
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Correctness,
    Evaluation,
    Judged,
    OutputComparison,
    Tier,
    Verdict,
)
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.wrong_values import TileShare, WrongKind, WrongValues
from cutegen_nb.report.html.correctness import render

SOURCE = "import torch\n\ndef forward(x):\n    return torch.relu(x)  # <b>\n"
EXHIBIT = Exhibit(
    kind="torch-compute",
    statement="PyTorch's aten.relu ran inside <forward>.",
    inputs=("input 0, float32[2]: -1, 2",),
    outputs=("output 0, float32[2]: 0, 2",),
    expected=("output 0, float32[2]: 0, 2",),
    trace=tuple(f"operation {number}" for number in range(20)),
    addresses=("output 0 at 0x10, 8 bytes",),
    lines=(4, 4),
)
ACCUSED = Evaluation(
    outcome=Judged(verdict=Verdict.CHEATED),
    summary=EXHIBIT.statement,
    device="simulator (sm_80)",
    findings=(Finding(kind="torch-compute", message=EXHIBIT.statement, line=4),),
    tier=Tier.B,
    exhibits=(EXHIBIT,),
    checks=(
        CheckResult(name="outputs poisoned", tier=Tier.A, state=CheckState.RAN),
        CheckResult(name="PyTorch computation intercepted", tier=Tier.A, state=CheckState.FOUND, note="relu"),
        CheckResult(name="physical floor", tier=Tier.A, state=CheckState.NOT_RUN, note="it needs a GPU"),
        CheckResult(name="many calls", tier=Tier.B, state=CheckState.NOT_RUN, note="it ended before"),
    ),
    candidate_digest="c" * 64,
    problem_digest="d" * 64,
    confinement="Landlock: own folder only.",
)


def test_evidence_is_readable_and_its_line_is_shown():
    html = render(ACCUSED, SOURCE)
    for words in (
        "Evidence: torch-compute",
        "input 0, float32[2]",
        "The reference gives",
        "0x10",
        "… 8 more",
    ):
        assert words in html
    assert "torch" in html
    assert "<forward>" not in html, "what a candidate named is escaped"
    assert "<b>" not in html


def test_checks_say_what_ran_what_did_not_and_on_what():
    html = render(ACCUSED, SOURCE)
    assert "Checks of tier B: 2 ran, 2 did not" in html
    assert "physical floor (it needs a GPU)" in html
    assert "PyTorch computation intercepted (found: relu)" in html
    assert "c" * 64 in html
    assert "Landlock" in html


def test_a_record_of_an_older_version_still_lists_its_checks():
    old = Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="Right.",
        device="simulator (sm_80)",
        correctness=Correctness(
            seeds=(1,), outputs=(), checks=("outputs poisoned",), checks_not_run=("timing: no GPU",)
        ),
    )
    html = render(old, SOURCE)
    assert "Checks of tier A: 1 ran, 1 did not" in html
    assert "timing: no GPU" in html


def test_the_same_in_plain_words():
    lines = exhibit_lines(EXHIBIT)
    assert lines[0] == "evidence (torch-compute): PyTorch's aten.relu ran inside <forward>."
    assert "    input 0, float32[2]: -1, 2" in lines
    assert lines[-1] == "  source: line 4"


def test_wrong_values_say_where_they_lie_by_tile_and_their_usual_cause():
    wrong = WrongValues(
        kind=WrongKind.TILES,
        sentence="2 of 12 tiles of 64×64 are wrong throughout",
        hint="a CTA's coordinate",
        bad_count=8192,
        element_count=49152,
        tile_shape=(64, 64),
        tiles=(TileShare(tile=(1, 0), bad_fraction=1.0),),
        bad_tiles=2,
        tile_count=12,
    )
    output = OutputComparison(
        index=0, shape=(256, 192), dtype="float32", matches=False, max_abs_error=3.0, relative_l2_error=0.4,
        reference_relative_l2_error=1e-7, tolerance_abs=1e-5, tolerance_rel=1e-5, tolerance_l2=1e-6,
        bad_fraction=1 / 6, pattern=wrong.sentence, wrong=wrong,
    )  # fmt: skip
    found = Evaluation(
        outcome=Judged(verdict=Verdict.WRONG_VALUES),
        summary="Output 0 is wrong.",
        device="simulator",
        correctness=Correctness(seeds=(1,), outputs=(output,), checks=("values",)),
    )
    page = render(found, "x = 1\n")
    assert "by tiles of 64×64: 2 of 12 hold wrong elements; worst: (1, 0) 100%" in page
    assert "usual cause: a CTA&#x27;s coordinate" in page or "usual cause: a CTA&#39;s coordinate" in page


def test_what_the_summary_says_is_not_said_again_as_a_finding_without_a_place():
    wrong = replace(
        ACCUSED,
        outcome=Judged(verdict=Verdict.WRONG_VALUES),
        exhibits=(),
        findings=(Finding(kind="wrong-values", message=ACCUSED.summary),),
    )
    assert render(wrong, SOURCE).count("aten.relu ran") == 1
    placed = replace(wrong, findings=(replace(wrong.findings[0], line=4),))
    assert "(line 4)" in render(placed, SOURCE)


def test_the_first_bad_element_stands_beside_the_judgement_and_only_where_there_is_one():
    good = OutputComparison(
        index=0,
        shape=(4,),
        dtype="float32",
        matches=True,
        max_abs_error=0.0,
        relative_l2_error=0.0,
        reference_relative_l2_error=0.0,
        tolerance_abs=0.0,
        tolerance_rel=0.0,
        tolerance_l2=0.0,
        bad_fraction=0.0,
    )
    bad = replace(good, matches=False, first_bad=(2,), first_bad_values=(1.0, 2.0))
    for output, headings in ((good, 0), (bad, 1)):
        html = render(
            replace(ACCUSED, correctness=Correctness(checks=(), outputs=(output,), seeds=(1,))), SOURCE
        )
        assert html.count("First bad element") == headings


def test_lines_of_the_candidate_are_marked_for_the_panel_alone():
    places = (Finding(kind="own", message="Here.", line=4, column=2), Finding(kind="other", message="There."))
    library = Finding(kind="library", message="Far.", file="/lib/site-packages/torch/a.py", line=2)
    found = replace(ACCUSED, findings=(*places, library))
    assert '<span data-line="4">line 4, column 2</span>' in render(found, SOURCE, linked=True)
    assert render(found, SOURCE, linked=True).count("data-line") == 1
    assert "data-line" not in render(found, SOURCE)

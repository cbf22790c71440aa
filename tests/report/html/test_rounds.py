from __future__ import annotations

import re
from dataclasses import replace

import pytest
from markupsafe import escape

from cutegen_nb.analysis.history.summary import rows
from cutegen_nb.report.html import (
    correctness as correctness_view,
)
from cutegen_nb.report.html import (
    lines as line_view,
)
from cutegen_nb.report.html import (
    rounds,
)
from cutegen_nb.report.markup import Style
from cutegen_nb.report.roofline.plot import describe, png
from cutegen_nb.report.terminal.session import table


def test_every_view_of_the_record_needs_no_style_sheet(session):
    parts = [rounds.overview(session), *(rounds.section(session, item) for item in session.rounds)]
    for part in parts:
        assert "class=" not in part
        assert "var(" not in part
        assert not re.search(r'style="[^"]*(^|[;"])\s*color:', part)


def test_the_record_folds_the_figures_of_a_comparison_behind_its_word(session):
    table = rounds.overview(session)
    reason = next(item.reason for item in rows(session) if item.relation)
    assert re.search(
        r"<details><summary[^>]*>.*?</summary><span[^>]*>" + re.escape(str(escape(reason))[:20]), table
    )
    assert "<details" not in rounds.overview(session, style=Style.PAGE)


def test_the_page_style_names_only_classes_that_the_sheet_knows(session):
    from importlib.resources import files

    sheet = files("cutegen_nb.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    parts = [rounds.section(session, item, style=Style.PAGE) for item in session.rounds]
    used = {
        name for part in parts for group in re.findall(r'class="([^"]*)"', part) for name in group.split()
    }
    unstyled = {"row", "summary", "neutral", "cell", "code"}
    assert {name for name in used if f".{name}" not in sheet} <= unstyled


def test_counts_stand_beside_their_line(session):
    item = session.rounds[0]
    page = line_view.render(item.evaluation.profile, item.candidate.source)
    row = next(part for part in page.split("<tr") if "gX[index]" in re.sub("<[^>]*>", "", part))
    assert "1,048,576 sectors" in row
    assert "33.6 MB" in row
    assert "in lines of the DSL" in page


def test_a_profile_without_lines_says_so(session):
    item = session.rounds[0]
    profile = item.evaluation.profile
    bare = replace(profile, launches=tuple(replace(launch, lines=()) for launch in profile.launches))
    assert "carry no lines of this source" in line_view.render(bare, item.candidate.source)


def test_a_line_beyond_the_source_breaks_nothing(session):
    item = session.rounds[0]
    assert "What each line costs" in line_view.render(item.evaluation.profile, item.candidate.source)
    line_view.render(item.evaluation.profile, "x = 1\n")
    evaluation = session.rounds[4].evaluation
    assert "WRONG_VALUES" in correctness_view.render(evaluation, "x = 1\n")


def test_a_long_log_is_cut_at_its_start(session):
    evaluation = replace(session.rounds[4].evaluation, log="start " + "x" * 100_000 + " the end")
    page = correctness_view.render(evaluation, "")
    assert "the end" in page
    assert "start" not in page
    assert "characters before this" in page


def test_the_picture_is_a_png_in_both_themes(session):
    light, dark = png(session), png(session, dark=True)
    assert light is not None
    assert dark is not None
    assert light[:4] == dark[:4] == b"\x89PNG"
    assert light != dark


def test_the_picture_is_the_same_every_time(session):
    assert png(session) == png(session)


def test_a_problem_without_arithmetic_has_words_and_no_picture(session):
    facts = session.facts
    none = replace(facts, full=replace(facts.full, flops=0), scaled=replace(facts.scaled, flops=0))
    session = replace(session, facts=none)
    assert png(session) is None
    assert "no floating-point arithmetic" in " ".join(describe(session))


def test_a_device_in_no_table_has_words_and_no_picture(session):
    device = replace(
        session.device, bandwidth_bytes_per_s=0.0, peak_flops={}, source="no data sheet on record"
    )
    session = replace(session, device=device)
    assert png(session) is None
    assert describe(session) == ("There is no roofline for NVIDIA H200: no data sheet on record.",)


@pytest.mark.filterwarnings("error")
def test_names_in_the_picture_may_hold_anything(session):
    strategy = replace(session.rounds[1].strategy, name="$\\frac{x 漢字 \N{FIRE} \n$")
    assert png(replace(session, rounds=(session.rounds[0], replace(session.rounds[1], strategy=strategy))))


def test_the_picture_in_words_names_each_passing_kernel(session):
    words = "\n".join(describe(session))
    assert "r0: 0.125 FLOP/B, 8.00× the least bytes (simulated counts)." in words
    assert "r4" not in words
    assert "bound by memory" in words


def test_a_point_above_the_roof_is_explained(gpu_session):
    item = gpu_session.rounds[1]
    timing = replace(item.evaluation.timing, median_ms=0.1)
    attempt = replace(item.attempts[0], evaluation=replace(item.evaluation, timing=timing))
    broken = replace(gpu_session, rounds=(gpu_session.rounds[0], replace(item, attempts=(attempt,))))
    assert "above the roof" in "\n".join(describe(broken))


def test_the_terminal_table_is_aligned_and_marked(session):
    lines = table(session).splitlines()
    assert "simulated counts, no measured times" in lines[0]
    assert lines[1].startswith("Runs at 256 × 4,096 instead of 4,096 × 393,216")
    starts = {line.index("PASSED") for line in lines[4:8]}
    assert len(starts) == 1
    assert "r2 *" in lines[6]
    assert all(len(line) <= 110 for line in lines[:9])


def test_the_terminal_table_tells_times_on_a_gpu(gpu_session):
    text = table(gpu_session)
    assert "3.07 ms" in text
    assert "98.1 %" in text


def test_escape_sequences_do_not_reach_a_terminal(session):
    strategy = replace(session.rounds[1].strategy, name="\x1b[31mred\n\rnext")
    item = replace(session.rounds[1], strategy=strategy)
    text = table(replace(session, name="\x1b]0;t\x07", rounds=(session.rounds[0], item)))
    assert "\x1b" not in text
    assert "\r" not in text

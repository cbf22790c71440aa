"""`cutegen-nb prompt --session` prints the request that the next round sends, to the letter."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.cli.prompt import _request_and_stage
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Plan, PromptPart
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.asking import limit_lines
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

MENU = shipped_library().menu(WorkloadClass.ELEMENTWISE)
FOUND = {
    "first": passed(4000),
    "same": passed(4000),
    "same again": passed(4000),
    "counted": passed(1000),
    "last": passed(900),
}


def printed(loop, **options):
    asked = Namespace(**{"stage": None, "strategy": None, **options})
    return _request_and_stage(loop.store.load("relu"), loop.effects.words, asked)


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_the_printed_request_is_the_one_that_is_sent_next_in_every_stage(stage, reply_with, rounds):
    loop = stage([reply_with(mark) for mark in FOUND], FOUND, menu=MENU)
    loop.run(rounds=rounds)
    prompt, word, because = printed(loop)
    session = loop.run(rounds=rounds + 1)
    assert prompt == loop.model.prompts[rounds]
    assert (word, because) == (session.rounds[-1].stage.value, session.rounds[-1].stage_because)


def test_the_printed_repair_holds_the_recorded_diagnosis_and_is_the_one_that_was_sent(stage, reply_with):
    broken = failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2)
    loop = stage(
        [reply_with("broken"), "Line 2 forgets the tail.", reply_with("cured")],
        {"broken": broken, "cured": passed(1000)},
        menu=MENU,
    )
    loop.run(rounds=1)
    prompt, word, _ = printed(loop, stage="repair")
    assert word == "repair"
    assert "> Line 2 forgets the tail." in prompt.user
    assert prompt.parent == loop.model.prompts[2].parent
    assert prompt.user == loop.model.prompts[2].user
    assert printed(loop, stage="diagnose")[0].user == loop.model.prompts[1].user


def test_a_kernel_that_came_in_place_of_a_diagnosis_is_no_diagnosis_of_the_printed_repair(stage, reply_with):
    broken = failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2)
    found = {"broken": broken, "cured": passed(1000)}
    loop = stage([reply_with("broken"), reply_with("cured")], found, menu=MENU)
    loop.run(rounds=1)
    told = printed(loop, stage="repair")[0].user
    assert "(the answer to the request for a diagnosis stands here)" in told
    assert "# cured" not in told


COUNTED = {
    "first": passed(4000, 1000),
    "same": passed(4000, 1000),
    "same again": passed(4000, 1000),
    "counted": passed(1000),
}
HEADINGS = {
    PromptPart.GUIDE: "Mind the tail.",
    PromptPart.HISTORY: "# What was tried, and what came of it",
    PromptPart.ROOFLINE: "# What limits it",
}


@pytest.mark.parametrize("part", [None, *PromptPart])
def test_an_ablation_leaves_out_its_part_of_a_request_and_no_other(stage, reply_with, part):
    loop = stage([reply_with(mark) for mark in COUNTED], COUNTED, menu=MENU)
    loop.effects = replace(loop.effects, guide=lambda request: "## A chapter\n\nMind the tail.")
    session = loop.run(rounds=4, plan=Plan(without=(part,) if part else ()))
    assert session.rounds[3].stage is Stage.PROFILE
    told = loop.model.prompts[3].user
    assert {kind: heading in told for kind, heading in HEADINGS.items()} == {
        kind: kind is not part for kind in PromptPart
    }
    # The choice of strategies uses all of it whatever is told.
    assert [item.strategy and item.strategy.name for item in session.rounds] == [
        None, "vectorise-128", "several-vectors-in-flight", "uniform-branches",
    ]  # fmt: skip


def test_requests_begin_with_what_was_found_and_end_with_the_guide(stage, reply_with):
    loop = stage([reply_with(mark) for mark in COUNTED], COUNTED, menu=MENU)
    loop.effects = replace(loop.effects, guide=lambda request: "## A chapter\n\nMind the tail.")
    loop.run(rounds=4)
    told = loop.model.prompts[3].user
    places = [
        told.index(text) for text in ("# This round", "# What limits it", "# The reference", "Mind the tail.")
    ]
    assert places == sorted(places)


def test_the_bound_is_told_once_and_at_the_full_size_and_no_strategy_is_named():
    session = examples.session_of(Relation.FIRST)
    first = session.rounds[0]
    found = passed(64_000_000, 256_000_000)
    launch = replace(found.profile.launches[0], grid=(100_000, 1, 1))
    sample = LaunchSample(profile=launch, ctas=4, first_touch_sectors=64_000_000)
    sampled = replace(found, full_size=FullSizeSample(launches=(sample,)))
    target = find_target("L4")
    for evaluation, begins in (
        (sampled, "At the full size, which counts, it is bound by "),
        (found, "Bound: "),
    ):
        item = replace(first, attempts=(replace(first.attempts[0], evaluation=evaluation),))
        whole = replace(session, rounds=(item,))
        lines = limit_lines(whole, item, target.device, target)
        assert lines[0].startswith(begins)
        assert len([line for line in lines if "ound: " in line or "it is bound by" in line]) == 1
        assert not any("Strategies:" in line or line.startswith("Zone") for line in lines)

"""Variants of a campaign change one setting each, and only what is known and different is accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Plan, PromptPart, Schedule
from cutegen_nb.loop.campaign.variants import Variant, check_variants, parse_variant

BASE = Plan(plateau_rounds=3)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("schedule=never", {"schedule": Schedule.NEVER}),
        ("schedule=start", {"schedule": Schedule.START}),
        ("schedule=paper", {"schedule": Schedule.PAPER}),
        ("guide=off", {"without": (PromptPart.GUIDE,)}),
        ("history=off", {"without": (PromptPart.HISTORY,)}),
        ("roofline=off", {"without": (PromptPart.ROOFLINE,)}),
        ("population=4", {"population": 4}),
    ],
)
def test_a_variant_changes_one_setting_and_nothing_else(text, changed):
    variant = parse_variant(text)
    assert variant.name == text
    assert variant.plan(BASE) == replace(BASE, **changed)
    check_variants((variant,), BASE)


def test_a_campaign_without_a_change_keeps_its_plan():
    assert Variant().plan(BASE) == BASE


def test_a_part_that_is_on_again_leaves_the_others_off():
    both = replace(BASE, without=(PromptPart.GUIDE, PromptPart.HISTORY))
    assert parse_variant("guide=on").plan(both).without == (PromptPart.HISTORY,)
    assert parse_variant("guide=off").plan(both).without == (PromptPart.HISTORY, PromptPart.GUIDE)


@pytest.mark.parametrize(
    "text", ["", "guide", "guide=", "guide=maybe", "schedule=often", "population=0", "population=9", "x=off"]
)
def test_what_is_no_ablation_is_refused_with_those_there_are(text):
    with pytest.raises(UsageError) as refused:
        parse_variant(text)
    assert str(refused.value) == (
        f"{text!r} is no ablation: give one of schedule=plateau|paper|never|start, guide=on|off, "
        "history=on|off, roofline=on|off, population=1|2|3|4|5|6|7|8"
    )


@pytest.mark.parametrize("text", ["schedule=plateau", "guide=on", "population=1"])
def test_a_variant_that_changes_nothing_is_refused(text):
    with pytest.raises(
        UsageError, match=f"--ablate {text} changes nothing: the campaign has this setting already"
    ):
        check_variants((parse_variant(text),), BASE)

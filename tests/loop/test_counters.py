"""Counters of the parent on a GPU: taken once, chosen by, and missed without harm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.profile import KernelResources, Profile, ProfileSource
from cutegen_nb.core.session import Plan, Schedule
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing.examples import passed, simulated_device

GPU = replace(simulated_device(), kind=DeviceKind.GPU, name="NVIDIA H200")
LATENCY = (ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),)
MENU = (
    Strategy(name="grid-stride", statement="A fixed grid.", stage=Stage.PROFILE, effects=LATENCY),
    Strategy(name="fewer-live-values", statement="Fewer registers.", stage=Stage.PROFILE, effects=LATENCY),
    Strategy(name="other-tiles", statement="Other tiles.", effects=LATENCY),
)
START = Plan(schedule=Schedule.START)


def timed(ms: float):
    eager = BaselineTiming(
        name="eager", median_ms=1.0, speedup=1 / ms, speedup_low=0.999 / ms, speedup_high=1.001 / ms
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,), baselines=(eager,), bandwidth_bytes_per_s=3e12)
    return replace(passed(1000), profile=None, timing=timing, duration_s=2.0)


def spilling() -> Profile:
    launch = replace(
        passed(4096).profile.launches[0],
        resources=KernelResources(
            architecture="sm_80", registers=255, spill_store_bytes=512, spill_load_bytes=512
        ),
    )
    return Profile(source=ProfileSource.NSIGHT, device="NVIDIA H200", launches=(launch,))


FOUND = {"first": timed(0.9), "second": timed(0.9), "third": timed(0.9)}


@pytest.fixture
def play(stage, reply_with):
    def run(counted, rounds: int, plan: Plan = START, found=FOUND):
        loop = stage([reply_with(mark) for mark in found], found, menu=MENU, device=GPU, counted=counted)
        return loop, loop.run(rounds=rounds, plan=plan)

    return run


def test_the_parent_is_counted_once_and_the_counters_choose_the_strategy(play):
    loop, session = play({"first": spilling()}, 3)
    first = session.rounds[0].candidate.digest
    assert loop.effects.evaluator.counts == [first]
    assert session.rounds[1].parent_profile == spilling()
    assert session.rounds[2].parent_profile is None
    # Without counters the first of the menu would be tried.
    assert session.rounds[1].strategy.name == "fewer-live-values"
    assert "255 registers a thread" in loop.model.prompts[1].user
    assert "255 registers a thread" in loop.model.prompts[2].user


def test_counters_that_cannot_be_had_are_said_and_not_asked_for_again(play):
    loop, session = play({}, 3)
    assert len(session.rounds) == 3
    assert session.rounds[1].strategy.name == "grid-stride"
    said = [text for text in loop.progress if text.startswith("no counters: ")]
    assert len(said) == 1
    assert "profile it for real" in said[0]
    assert all(item.approved or item.comparison for item in session.rounds)


def test_where_no_prompt_shows_counters_none_are_taken(play):
    loop, session = play({"first": spilling()}, 3, Plan(schedule=Schedule.NEVER))
    assert loop.effects.evaluator.counts == []
    assert [item.parent_profile for item in session.rounds] == [None] * len(session.rounds)


def test_a_kernel_that_came_with_counters_is_not_counted_again(play):
    whole = {mark: replace(value, profile=spilling()) for mark, value in FOUND.items()}
    loop, session = play({}, 2, found=whole)
    assert session.rounds[1].strategy.name == "fewer-live-values"
    assert loop.effects.evaluator.counts == []

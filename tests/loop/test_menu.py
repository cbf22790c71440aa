"""Order of the offers by the estimate of the GPU that is asked for, and numbers that were estimated slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Optimisation, Strategy
from cutegen_nb.loop.menu import offered
from cutegen_nb.loop.stages import next_step
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import passed


def strategy(name, counter, stage=Stage.STRUCTURE):
    return Strategy(
        name=name,
        statement=".",
        stage=stage,
        absent=(Optimisation.TENSOR_CORES,),
        effects=(ExpectedEffect(counter=counter, direction=Direction.DOWN),),
    )


MENU = (strategy("fewer-instructions", "warp_instructions"), strategy("less-traffic", "gmem_sectors"))


def kernel(sectors, instructions):
    """Session with a passing kernel whose call at full size has these counts."""
    found = passed(sectors)
    launch = found.profile.launches[0]
    counters = replace(launch.counters, warp_instructions=instructions)
    launch = replace(launch, grid=(100_000, 1, 1), counters=counters)
    sample = LaunchSample(profile=launch, ctas=4, first_touch_sectors=sectors)
    evaluation = replace(found, full_size=FullSizeSample(launches=(sample,)))
    made = examples.session_of(Relation.FIRST)
    first = made.rounds[0]
    attempt = replace(first.attempts[0], evaluation=evaluation)
    return replace(made, rounds=(replace(first, attempts=(attempt,)),))


@pytest.mark.parametrize(
    ("target", "first"),
    [("H200", "fewer-instructions"), ("L4", "less-traffic"), (None, "fewer-instructions")],
)
def test_the_gpu_that_times_are_estimated_for_orders_the_menu(target, first):
    session = kernel(64_000_000, 256_000_000)
    chosen = find_target(target) if target else None
    assert offered(session, MENU, session.rounds[0], Stage.PROFILE, chosen)[0].name == first
    step = next_step(session, (strategy("other", "gmem_sectors"), *MENU), target=chosen)
    assert step.strategy is not None
    assert (step.strategy.name == "fewer-instructions") is (target != "L4")


def test_a_step_without_conditions_waits_for_its_turn_beside_steps_that_have_some():
    session = kernel(64_000_000, 256_000_000)
    step = replace(strategy("vectors-of-a-small-part", "gmem_sectors"), absent=())
    order = offered(session, (*MENU, step), session.rounds[0], Stage.PROFILE, find_target("L4"))
    assert [item.name for item in order] == ["less-traffic", "fewer-instructions", step.name]


NUMBERS = tuple(strategy(name, "warp_instructions", Stage.TUNE) for name in ("threads-128", "threads-512"))


@pytest.mark.parametrize(
    ("relation", "names"),
    [
        (Relation.ESTIMATED_SLOWER, ["threads-512"]),
        (Relation.CANNOT_TELL, ["threads-512", "threads-128"]),
    ],
)
def test_tuning_leaves_out_a_number_that_was_estimated_slower(relation, names):
    session = kernel(4_000, 256_000_000)
    tried = examples.finished_round(1, relation)
    tried = replace(tried, strategy=NUMBERS[0])
    whole = replace(session, rounds=(*session.rounds, tried))
    assert [item.name for item in offered(whole, NUMBERS, session.rounds[0], Stage.TUNE)] == names

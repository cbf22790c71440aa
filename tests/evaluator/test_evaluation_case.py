"""Seeds and time limits of one evaluation follow from the device, the tier and the size."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.evaluation_case import EvaluationCase
from cutegen_nb.evaluator.problem_study import KnownProblem
from cutegen_nb.testing.examples import relu_facts, relu_problem, simulated_device

SIMULATOR = simulated_device()
GPU = replace(SIMULATOR, kind=DeviceKind.GPU)


def a_case(device=SIMULATOR, tier=Tier.A, *, least_bytes=0, only_if_faster=False):
    facts = relu_facts()
    facts = replace(facts, full=replace(facts.full, least_bytes=least_bytes))
    return EvaluationCase(
        problem=relu_problem(),
        candidate=Candidate(source="", author="manual"),
        known=KnownProblem(facts=facts),
        device=device,
        tier=tier,
        rival=None,
        only_if_faster=only_if_faster,
        progress=lambda _: None,
    )


@pytest.mark.parametrize(
    ("chosen", "device", "least_bytes", "counts"),
    [
        (None, SIMULATOR, 0, (3, 4, 6)),
        (None, GPU, 1 << 20, (5, 10, 10)),
        (None, GPU, 1 << 30, (3, 3, 5)),  # comparing takes longer than running
        (2, SIMULATOR, 0, (2, 4, 4)),
    ],
)
def test_inputs_are_drawn_from_more_seeds_at_higher_tiers(chosen, device, least_bytes, counts):
    cases = [a_case(device, tier, least_bytes=least_bytes) for tier in Tier]
    assert tuple(case.seed_count(chosen) for case in cases) == counts


def test_tier_a_needs_no_time_for_higher_tiers_and_the_simulator_gets_more_than_a_gpu():
    on_gpu, simulated = (
        [a_case(device, tier).higher_tiers_s for tier in Tier] for device in (GPU, SIMULATOR)
    )
    assert on_gpu[0] == simulated[0] == 0.0
    assert 0 < on_gpu[1] < on_gpu[2] < simulated[2]


@pytest.mark.parametrize(
    ("only_if_faster", "tier", "no_faster", "spared"),
    [
        (True, Tier.A, True, True),
        (True, Tier.A, False, False),
        (True, Tier.B, True, False),
        (False, Tier.A, True, False),
    ],
)
def test_only_a_candidate_timed_as_no_faster_is_spared_the_higher_tiers(
    only_if_faster, tier, no_faster, spared
):
    found = SimpleNamespace(tier=tier, timing=SimpleNamespace(no_faster=no_faster))
    assert a_case(only_if_faster=only_if_faster).spares(found) is spared

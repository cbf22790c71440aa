"""Evidence states for each check whether it ran, and the reason where it did not."""

from __future__ import annotations

from cutegen_nb.core.evaluation import CheckState, Tier
from cutegen_nb.evaluator.trial.evidence import Evidence


def test_a_check_that_never_came_about_says_why():
    results = {item.name: item for item in Evidence().check_results(Tier.B, on_gpu=False)}
    assert results["physical floor"].note == "it needs a GPU"
    assert results["many calls"].note == "the evaluation ended before it"
    assert "second process, other seeds" not in results


def test_what_needs_a_gpu_at_tier_c_says_what_looks_for_the_same_on_the_simulator():
    results = {item.name: item for item in Evidence().check_results(Tier.C, on_gpu=False)}
    race = results["compute-sanitizer racecheck"]
    assert race.state is CheckState.NOT_RUN
    assert race.note == (
        "it needs a GPU; the simulator has its own: shared memory ordered by barriers, asynchronous copies "
        "waited for"
    )

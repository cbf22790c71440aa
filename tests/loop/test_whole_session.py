"""A session through every stage on a GPU that was recorded, and what each prompt tells and withholds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Verdict
from cutegen_nb.core.ports import GuideRequest
from cutegen_nb.core.profile import KernelResources, Profile, ProfileSource
from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

GPU = replace(examples.simulated_device(), kind=DeviceKind.GPU, name="NVIDIA H200", sm_count=132)
LATENCY = (ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),)
MENU = (
    Strategy(name="coalesced-access", statement="Neighbours touch neighbours.", effects=LATENCY),
    Strategy(name="vectorise-128", statement="Move 128 bits a thread.", effects=LATENCY),
    Strategy(name="grid-stride", statement="A fixed grid.", effects=LATENCY),
    Strategy(name="fewer-live-values", statement="Fewer registers.", stage=Stage.PROFILE, effects=LATENCY),
    Strategy(name="tune-cta-size", statement="Choose the threads.", stage=Stage.TUNE, effects=LATENCY),
)


def timed(ms: float, *, spread: float = 0.001) -> Evaluation:
    """A passing evaluation that took `ms`, five times its floor at least."""
    eager = BaselineTiming(
        name="eager",
        median_ms=1.0,
        speedup=1 / ms,
        speedup_low=(1 - spread) / ms,
        speedup_high=(1 + spread) / ms,
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,) * 5, baselines=(eager,), bandwidth_bytes_per_s=3e12)
    found = passed(1000)
    return replace(found, profile=None, timing=timing, device="NVIDIA H200", duration_s=2.0)


def counted(registers: int) -> Profile:
    """What a GPU's profiler gave for one kernel that spills."""
    profile = passed(4096).profile
    assert profile is not None
    launch = replace(
        profile.launches[0],
        resources=KernelResources(
            architecture="sm_90a", registers=registers, spill_store_bytes=512, spill_load_bytes=512
        ),
    )
    return Profile(source=ProfileSource.NSIGHT, device="NVIDIA H200", launches=(launch,))


MARKS = ("first", "faster", "same", "worse", "counters", "no-gain", "no-gain-2", "tuned")
FOUND = {
    "first": timed(0.9),
    "faster": timed(0.5),
    "same": timed(0.5),
    "worse": timed(0.7),
    "counters": timed(0.4),
    "no-gain": timed(0.4),
    "no-gain-2": timed(0.4),
    "tuned": timed(0.3),
}


@pytest.fixture
def played(stage, reply_with):
    menu = (*MENU[:3], Strategy(name="more-structure", statement="Another.", effects=LATENCY), *MENU[3:])
    loop = stage(
        [reply_with(mark) for mark in MARKS],
        FOUND,
        menu=menu,
        device=GPU,
        counted={mark: counted(255) for mark in ("faster", "counters", "tuned")},
    )
    return loop, loop.run(rounds=8)


def test_a_session_goes_from_a_first_kernel_to_counters_to_numbers(played):
    _, session = played
    assert [item.stage for item in session.rounds] == [
        Stage.CORRECT,
        Stage.STRUCTURE,
        Stage.STRUCTURE,
        Stage.STRUCTURE,
        Stage.PROFILE,
        Stage.PROFILE,
        Stage.PROFILE,
        Stage.TUNE,
    ]
    assert [item.attempts[0].prompt.stage for item in session.rounds] == [r.stage for r in session.rounds]
    assert session.rounds[4].stage_because == "2 rounds in a row brought no gain"
    assert session.rounds[7].strategy.name == "tune-cta-size"
    assert session.best.number == 7
    assert session.stopped == "the budget of 8 rounds is spent"


def test_counters_are_taken_when_the_stage_tells_them_and_once_a_parent(played):
    loop, session = played
    best_of = [item.candidate.digest for item in session.rounds]
    # The parent of r4 (r1) is counted and not judged again; r4 and r7 themselves with their closer look.
    assert loop.effects.evaluator.counts == [best_of[1]]
    assert loop.effects.evaluator.profiled == [best_of[4], best_of[7]]
    assert session.rounds[4].parent_profile.launches[0].resources.registers == 255
    assert [item.parent_profile is None for item in session.rounds] == [True] * 4 + [False] + [True] * 3


def test_counters_and_the_compilers_resources_are_told_from_then_on_and_not_before(played):
    loop, _ = played
    told = ["255 registers a thread" in prompt.user for prompt in loop.model.prompts]
    assert told == [False] * 4 + [True] * 4
    assert "# What limits it" in loop.model.prompts[4].user
    assert "spills" in loop.model.prompts[4].user
    assert "# This round: numbers only" in loop.model.prompts[7].user


def test_the_strategy_that_counters_ask_for_comes_first(played):
    _, session = played
    assert session.rounds[4].strategy.name == "fewer-live-values"


def test_each_candidate_is_timed_beside_the_best_before_it(played):
    loop, session = played
    rivals = [rival and rival.digest for rival in loop.effects.evaluator.rivals]
    best_of = [item.candidate.digest for item in session.rounds]
    assert rivals == [None, best_of[0], *[best_of[1]] * 3, *[best_of[4]] * 3]


def test_the_seconds_that_evaluations_and_counting_held_the_gpu_are_summed(played):
    _, session = played
    assert [item.gpu_s for item in session.rounds] == [2.0, 2.0, 2.0, 2.0, 3.0, 2.0, 2.0, 2.0]


def test_times_at_the_roof_end_a_session_at_once(stage, reply_with):
    floor = timed(0.0056)
    loop = stage([reply_with("first")], {"first": floor}, menu=MENU, device=GPU)
    session = loop.run()
    assert len(session.rounds) == 1
    assert session.stopped == "the best revision runs at 0.96 of the roof"


def test_a_prediction_is_scored_and_the_score_told_to_its_author(stage, reply_with):
    promising = reply_with("second").replace(
        "Predicted effect: none.", "Predicted effect: warp_instructions down 50 %, speedup 2×."
    )
    loop = stage(
        [reply_with("first"), promising, reply_with("third")],
        {"first": passed(4000, 1000), "second": passed(1000, 1200), "third": passed(900)},
    )
    session = loop.run(rounds=3)
    prediction = session.rounds[1].attempts[-1].prediction
    assert (prediction.counter, prediction.speedup) == ("warp_instructions", 2.0)
    told = loop.model.prompts[2].user
    assert (
        "the strategy: `gmem_load_sectors` down: 4,000 → 1,000 (−75.0 %) at the size that ran, held" in told
    )
    assert (
        "predicted `warp_instructions` down by 50 %: 1,000 → 1,200 (+20.0 %) at the size that ran, did not hold"
        in told
    )
    assert "predicted and not measured: `speedup`" in told
    assert loop.store.load("relu").rounds == session.rounds


TILED = """import cutlass
from cutlass import cute

@cute.kernel
def tiled(mA):
    cute.autovec_copy(mA, mA)
    smem = cutlass.utils.SmemAllocator()

@cute.jit
def launch(mA):
    tiled(mA).launch(grid=(cute.size(mA), 1, 1), block=(256, 1, 1))

class ModelNew:
    pass
"""
PLAIN = TILED.replace("    cute.autovec_copy(mA, mA)\n", "    mA[0] = mA[0]\n").replace(
    "grid=(cute.size(mA), 1, 1)", "grid=(1, 1, 1)"
)


def test_a_repair_that_makes_the_kernel_simpler_is_flagged_and_the_author_told(stage):

    def answer(source: str) -> Reply:
        return Reply(text=f"Rationale: x.\n```python\n{source}```\n", usage=Usage())

    answers = [answer(TILED), "The copy is wrong.", answer(PLAIN), "Still.", answer(TILED + "# cured\n")]
    loop = stage(answers, {}, menu=())
    known = loop.effects.evaluator._evaluations
    known[source_digest(TILED)] = failed(Verdict.WRONG_VALUES, "Wrong.")
    known[source_digest(PLAIN)] = failed(Verdict.WRONG_VALUES, "Wrong as well.")
    known[source_digest(TILED + "# cured\n")] = passed(1000)

    session = loop.run(rounds=1)

    attempts = session.rounds[0].attempts
    flags = [f.message for f in attempts[2].evaluation.findings if f.kind == "simplified"]
    assert flags == ["The repair no longer uses vector copies.", "The repair launches a single CTA."]
    assert "- The repair launches a single CTA." in loop.model.prompts[4].user
    assert not [f for f in session.rounds[0].evaluation.findings if f.kind == "simplified"]
    assert session.rounds[0].approved


def test_a_persons_time_at_gates_is_kept_with_each_decision(stage, reply_with):
    loop = stage([reply_with("first")], {"first": passed(1000)}, menu=())
    session = loop.run()
    assert [decision.seconds for decision in session.rounds[0].decisions] == [1.0, 1.0]
    assert session.rounds[0].comparison.relation is Relation.FIRST


def test_the_guide_is_asked_with_the_source_the_strategy_and_the_error(stage, reply_with):
    asked = []

    def guide(request: GuideRequest) -> str:
        wanted = request.strategy.partition(": ")[0]
        asked.append((bool(request.source), wanted, "Wrote past" in request.error))
        assert (request.classes, request.dtypes) == (("element-wise",), ("float32",))
        assert request.architecture == "sm_80"
        return "## A chapter\n\nMind the tail."

    broken = failed(Verdict.OUT_OF_BOUNDS, "Wrote past the end.", line=2)
    loop = stage(
        [reply_with("first"), reply_with("broken"), "Line 2.", reply_with("cured")],
        {"first": passed(1000), "broken": broken, "cured": passed(900)},
    )
    loop.effects = replace(loop.effects, guide=guide)
    loop.run(rounds=2)
    assert asked == [
        (False, "A first kernel, compiled once, for static or dynamic sizes", False),
        (True, "coalesce", False),
        (True, "", True),
        (True, "", True),
    ]
    assert all("Mind the tail." in prompt.user for prompt in loop.model.prompts)

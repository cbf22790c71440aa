"""Rules that end a session, each with its sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.analysis.history.ended import EndKind, end_kind
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import Unreachable
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.strategy import Condition, Direction, ExpectedEffect, Optimisation, Strategy
from cutegen_nb.core.timing import Timing
from cutegen_nb.loop.lineage import tried_on
from cutegen_nb.loop.stopping import StopInput, roof_share, stop_reason, stopped_by_decision
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

DONE = "every strategy was tried on r0"


def tried(session, menu=(), since=0) -> str:
    return stop_reason(StopInput(session=session, menu=tuple(menu), since=since))


@pytest.fixture
def first():
    """Session after a first kernel with these counts."""

    def make(evaluation, **changes):
        session = examples.session_of(Relation.FIRST)
        item = replace(session.rounds[0], strategy=None)
        attempt = replace(item.attempts[0], evaluation=evaluation)
        rounds = (replace(item, attempts=(attempt,)),)
        return replace(session, rounds=rounds, budget=replace(session.budget, rounds=99), **changes)

    return make


def test_a_session_goes_on_while_something_is_left(first):
    assert tried(first(passed(4000)), examples.strategies()) == ""


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        (
            Strategy(name="wide", statement=".", absent=(Optimisation.COALESCED,)),
            "; carried out already: wide",
        ),
        (
            Strategy(name="split", statement=".", requires=(Condition.FEW_CTAS,)),
            "",
        ),
        (
            Strategy(
                name="hide",
                statement=".",
                effects=(ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),),
            ),
            "; left for a GPU, as counts cannot show what they gain: hide",
        ),
        (Strategy(name="hopper", statement=".", architectures=("sm_90",)), ""),
        (Strategy(name="half", statement=".", dtypes=("float16",)), ""),
    ],
)
def test_the_end_of_the_menu_tells_what_was_never_tried_and_why(first, strategy, text):
    session = first(passed(4000))
    reason = tried(session, [strategy])
    if strategy.name == "split":
        session = replace(session, device=replace(session.device, sm_count=8))
        reason = tried(session, [strategy])
        assert reason.startswith(f"{DONE}; cannot help here: split (")
        assert "8 multiprocessors" in reason
        return
    assert reason == f"{DONE}{text}"


def sampled(sectors: int):
    found = passed(sectors)
    launch = replace(found.profile.launches[0], grid=(100_000, 1, 1))
    sample = LaunchSample(profile=launch, ctas=4, first_touch_sectors=sectors)
    return replace(found, full_size=FullSizeSample(launches=(sample,)))


def test_what_lowers_no_term_of_weight_in_the_estimate_is_worth_no_round(first):
    menu = [
        Strategy(
            name="uniform-branches",
            statement=".",
            absent=(Optimisation.TENSOR_CORES,),
            effects=(ExpectedEffect(counter="branches", direction=Direction.DOWN),),
        )
    ]
    assert tried(first(sampled(8_000_000)), menu) == (
        f"{DONE}; worth no round by the estimate: uniform-branches"
    )


def test_counts_at_the_least_traffic_are_told_at_the_end_and_stop_no_session(first):
    least = examples.relu_facts().scaled.least_bytes // 32
    session = first(passed(least))
    assert roof_share(session, session.rounds[0].evaluation) == pytest.approx(1.0)
    assert tried(session, examples.strategies()[1:]) == ""
    assert tried(session) == f"{DONE}, which moves 1.00× the least bytes"


@pytest.mark.parametrize(
    ("ms", "reason"), [(0.0056, "the best revision runs at 0.96 of the roof"), (0.02, "")]
)
def test_a_measured_time_at_the_roof_ends_a_session_at_once(first, ms, reason):
    timing = Timing(median_ms=ms, samples_ms=(ms,), baselines=(), bandwidth_bytes_per_s=1.555e12)
    device = replace(examples.simulated_device(), kind=DeviceKind.GPU)
    session = first(replace(passed(1000), timing=timing, profile=None), device=device)
    assert tried(session, examples.strategies()) == reason


def test_a_failure_of_an_earlier_run_does_not_stop_the_resumed_session(stage, reply_with):
    loop = stage([reply_with("first"), Unreachable("nobody there")], {"first": passed(1000)})
    session = replace(loop.run(), stopped="")
    assert tried(session, examples.strategies()) == "nobody there"
    assert tried(session, examples.strategies(), since=len(session.rounds)) == ""


def test_a_strategy_that_the_author_declines_is_told_at_the_end(stage, reply_with):
    loop = stage([reply_with("first")], {"first": passed(4000)}, menu=examples.strategies()[1:2])
    session = loop.run()
    assert session.stopped == (f"{DONE}, but the author declined vectorise: the script has no more answers")


def test_a_request_that_no_author_answered_leaves_its_strategy_untried(stage, reply_with):
    menu = examples.strategies()[1:2]
    session = stage(
        [reply_with("first"), Unreachable("nobody there")], {"first": passed(4000)}, menu=menu
    ).run()
    assert session.rounds[1].strategy == menu[0]
    assert tried_on(session, session.rounds[0]) == set()
    assert tried(session, menu, since=len(session.rounds)) == "", "it is offered again"
    assert "declined" not in tried(session, since=len(session.rounds))


def test_an_author_that_repeats_a_failing_kernel_is_stopped_only_before_anything_passed(stage, reply_with):
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    loop = stage(
        [reply_with("first"), reply_with("broken"), reply_with("broken"), reply_with("last")],
        {"first": passed(1000), "broken": broken, "last": passed(900)},
    )
    session = loop.run(rounds=4, repairs=0)
    assert len(session.rounds) == 4
    assert session.best.number == 3


@pytest.mark.parametrize(
    ("action", "reason", "sentence"),
    [
        (Action.STOP, "", "person:ada stopped the session at round 0"),
        (Action.STOP, "enough", "person:ada stopped the session at round 0: enough"),
        (Action.REJECT, "no", ""),
    ],
)
def test_a_decision_to_stop_ends_the_session_in_the_persons_words(action, reason, sentence):
    decision = Decision(gate="revision", action=action, by="person:ada", reason=reason)
    item = replace(examples.finished_round(0), decisions=(decision,))
    assert stopped_by_decision(item) == sentence


def test_a_product_whose_strategies_were_all_tried_for_sm_80_ends_with_those_of_the_target(first):
    def ended(workload_class, target="H200", **changes):
        session = first(passed(4000))
        facts = replace(session.facts, workload_class=workload_class)
        session = replace(session, facts=facts, device=replace(session.device, **changes))
        return stop_reason(StopInput(session=session, menu=(), target=find_target(target)))

    offered = f"{DONE}, for sm_80 (`--target H200` may have others)"
    assert ended(WorkloadClass.MATMUL).startswith(offered)
    assert end_kind(ended(WorkloadClass.MATMUL)) is EndKind.EXHAUSTED
    assert "'RTX 4090'" in ended(WorkloadClass.MATMUL, "RTX 4090")
    assert "--target" not in ended(WorkloadClass.ELEMENTWISE)
    assert "--target" not in ended(WorkloadClass.MATMUL, architecture="sm_90a")
    assert "--target" not in ended(WorkloadClass.MATMUL, kind=DeviceKind.GPU)

"""Rounds leave the effect of their strategy, and sessions on like problems use it, through a real knowledge base."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Evaluation, Verdict
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.session import Budget
from cutegen_nb.core.strategy import Alignment, Optimisation, Strategy
from cutegen_nb.core.timing import BaselineTiming, Timing
from cutegen_nb.loop import learning
from cutegen_nb.loop.learning import records_of
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.store.history import StrategyHistory
from cutegen_nb.store.knowledge_base import KnowledgeBase
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

GPU = replace(examples.simulated_device(), kind=DeviceKind.GPU, driver="580.1")
# Strategies that name what they bring: an author's ladder without that keeps its own order.
MENU = tuple(
    Strategy(name=name, statement=f"Do {name}.", absent=(Optimisation.TENSOR_CORES,))
    for name in ("loses", "nothing", "wins")
)


def timed(ms: float) -> Evaluation:
    eager = BaselineTiming(
        name="eager", median_ms=10.0, speedup=10 / ms, speedup_low=9.99 / ms, speedup_high=10.01 / ms
    )
    timing = Timing(median_ms=ms, samples_ms=(ms,) * 5, baselines=(eager,), bandwidth_bytes_per_s=1.5e12)
    return replace(passed(1000), profile=None, timing=timing, device=GPU.name)


FOUND = {
    "first": timed(1.0),
    "slow": timed(2.0),
    "same": timed(1.0),
    "fast": timed(0.5),
    "faster": timed(0.4),
}


@pytest.fixture
def base(tmp_path) -> KnowledgeBase:
    return KnowledgeBase(tmp_path / "knowledge")


def with_history(loop, base, said=None):
    history = StrategyHistory(base, (said if said is not None else []).append)
    loop.effects = replace(loop.effects, knowledge=history.recall, learn=history.learn)
    return loop


@pytest.fixture
def taught(stage, reply_with, base):
    """A session of four rounds whose strategies lost, changed nothing and won."""
    loop = stage(
        [reply_with(mark) for mark in ("first", "slow", "same", "fast")], FOUND, menu=MENU, device=GPU
    )
    return with_history(loop, base).run(rounds=4)


def test_each_round_that_carries_out_a_strategy_leaves_its_effect_a_loss_too(taught, base):
    records = base.records()
    assert [item.strategy.name for item in taught.rounds[1:]] == ["loses", "nothing", "wins"]
    assert {item.strategy.name: item.speedup for item in records} == {
        "loses": pytest.approx(0.5),
        "nothing": pytest.approx(1.0),
        "wins": pytest.approx(2.0),
    }
    won = next(item for item in records if item.strategy.name == "wins")
    assert (won.seconds, won.estimated, won.revision, won.session) == (0.0005, False, "r3", "relu")
    assert (won.device, won.architecture, won.line) == (GPU.name, "sm_80", ())
    assert won.versions["driver"] == "580.1"
    assert won.problem.words == "element-wise, float32, large stream"
    assert tuple(sorted(item.digest for item in records)) == tuple(
        sorted(item.digest for item in records_of(taught))
    )


def test_a_record_tells_the_strategies_before_it_and_the_speed_of_the_whole_line(stage, reply_with, base):
    loop = stage([reply_with(mark) for mark in ("first", "fast", "faster")], FOUND, menu=MENU[1:], device=GPU)
    with_history(loop, base).run(rounds=3)
    last = max(base.records(), key=lambda item: item.total_speedup)
    assert last.names == ("nothing", "wins")
    assert (last.speedup, last.total_speedup) == (pytest.approx(1.25), pytest.approx(2.5))


def other_problem(stage, reply_with, marks, found=FOUND, menu=MENU):
    """Play a second session, on another problem of the same kind."""
    return stage([reply_with(mark) for mark in marks], found, menu=menu, device=GPU)


def run_another(loop, rounds: int):
    problem = replace(
        examples.relu_problem("leaky"),
        source=examples.RELU_SOURCE.replace("relu(x)", "nn.functional.leaky_relu(x)"),
    )

    async def play():
        session = await open_session(problem, loop.effects, loop.store, Budget(rounds=rounds))
        return await run_session(session, loop.effects, loop.store)

    return asyncio.run(play())


def test_a_session_on_a_like_problem_tries_first_what_won_there_and_last_what_lost_and_says_why(
    taught, stage, reply_with, base
):
    loop = with_history(other_problem(stage, reply_with, ("first", "fast", "same", "slow")), base)
    session = run_another(loop, 4)
    assert session.name == "leaky"
    assert [item.strategy and item.strategy.name for item in session.rounds] == [
        None, "wins", "nothing", "loses",
    ]  # fmt: skip
    assert session.rounds[1].chosen_because == (
        "wins won on like problems: 2.00× (1.00 ms → 500 µs) on element-wise, float32, large stream; "
        f"measured on {GPU.name}"
    )
    # "loses" was the first that the menu put; its sentence tells why another one came before it.
    assert session.rounds[2].chosen_because.startswith("loses comes last, because it lost on like problems")
    assert session.rounds[3].chosen_because == ""
    told = loop.model.prompts[0].user
    assert "# On like problems" in told
    assert "- wins" not in told, "a model does not know the name"
    assert "2.00× (1.00 ms → 500 µs)" in told


def test_without_the_knowledge_base_the_menu_keeps_its_order_and_nothing_is_told(
    taught, stage, reply_with, base
):
    before = base.records()
    loop = other_problem(stage, reply_with, ("first", "slow", "same"))
    session = run_another(loop, 3)
    assert [item.strategy and item.strategy.name for item in session.rounds] == [None, "loses", "nothing"]
    assert all("# On like problems" not in prompt.user for prompt in loop.model.prompts)
    assert base.records() == before


def test_an_authors_ladder_keeps_its_order_whatever_won(taught, stage, reply_with, base):
    ladder = tuple(replace(item, absent=()) for item in MENU)
    loop = with_history(other_problem(stage, reply_with, ("first", "slow", "same"), menu=ladder), base)
    session = run_another(loop, 3)
    assert [item.strategy and item.strategy.name for item in session.rounds] == [None, "loses", "nothing"]
    assert all(item.chosen_because == "" for item in session.rounds)


def test_a_problem_that_is_not_alike_learns_nothing(taught, stage, reply_with, base):
    loop = with_history(other_problem(stage, reply_with, ("first", "slow")), base)
    evaluator = loop.effects.evaluator
    evaluator._facts = replace(examples.relu_facts(), workload_class=WorkloadClass.CONVOLUTION)
    session = run_another(loop, 2)
    assert session.rounds[1].strategy.name == "loses"
    assert "Do wins" not in loop.model.prompts[0].user


def test_a_resumed_session_does_not_take_its_own_rounds_for_those_of_another(taught, stage, reply_with, base):
    loop = with_history(stage([reply_with("faster")], FOUND, menu=(*MENU, *_more()), device=GPU), base)
    resumed = loop.run(rounds=5)
    assert resumed.rounds[:4] == taught.rounds
    assert "wins: " not in loop.model.prompts[0].user.partition("# On like problems")[2].partition("\n# ")[0]


def _more():
    return (Strategy(name="more", statement="Do more.", absent=(Optimisation.TENSOR_CORES,)),)


def test_a_knowledge_base_that_cannot_be_written_is_said_once_and_ends_no_session(
    stage, reply_with, base, monkeypatch
):
    def fails(*given):
        raise StoreError("the disk is full")

    monkeypatch.setattr(KnowledgeBase, "learn", fails)
    monkeypatch.setattr(KnowledgeBase, "records", fails)
    said: list[str] = []
    loop = stage([reply_with(mark) for mark in ("first", "slow", "same")], FOUND, menu=MENU, device=GPU)
    session = with_history(loop, base, said).run(rounds=3)
    assert len(session.rounds) == 3
    assert said == ["the disk is full; this session goes on with the shipped strategies alone"]


@pytest.fixture
def chain(stage, reply_with):
    """Function that plays a first kernel and a second one, and returns the session."""

    def play(first, second, **others):
        loop = stage([reply_with("a"), reply_with("b")], {"a": first, "b": second}, menu=MENU[2:], **others)
        return loop.run(rounds=2, repairs=0)

    return play


def sampled(sectors: int) -> Evaluation:
    found = passed(sectors)
    launch = replace(found.profile.launches[0], grid=(sectors // 64, 1, 1))
    return replace(
        found,
        full_size=FullSizeSample(
            launches=(LaunchSample(profile=launch, ctas=4, first_touch_sectors=sectors),)
        ),
    )


def test_an_estimated_effect_is_recorded_for_the_gpu_that_it_is_estimated_for(chain):
    session = chain(sampled(8_000_000), sampled(4_000_000))
    (record,) = records_of(session)
    assert record.estimated
    assert (record.device, record.architecture) == ("NVIDIA H200", "sm_90")
    assert 1.5 < record.speedup <= 2.0
    (elsewhere,) = records_of(session, target=find_target("A100"))
    assert (elsewhere.device, elsewhere.architecture) == ("NVIDIA A100", "sm_80")
    assert elsewhere.seconds > record.seconds


@pytest.mark.parametrize(
    ("first", "second", "device"),
    [
        (passed(4000), passed(1000), None),
        (timed(1.0), failed(Verdict.WRONG_VALUES, "Wrong."), GPU),
        (timed(1.0), passed(1000), GPU),
        (timed(1.0), replace(timed(0.5), timing=replace(timed(0.5).timing, baselines=())), GPU),
    ],
    ids=["counts alone", "a failure", "one timed", "no common baseline"],
)
def test_where_no_ratio_of_times_is_known_nothing_is_recorded(chain, first, second, device):
    session = chain(first, second, **({"device": device} if device else {}))
    assert len(session.rounds) == 2
    assert records_of(session) == ()


def test_the_same_kernel_written_again_is_no_effect(stage, reply_with):
    loop = stage([reply_with("first")] * 2, FOUND, menu=MENU, device=GPU)
    assert records_of(loop.run(rounds=2)) == ()


def test_kernels_that_were_measured_elsewhere_leave_a_record_for_each_device(chain):
    session = chain(passed(4000), passed(1000))
    assert records_of(session) == ()
    measured = tuple(
        Measurement(
            job=f"{device}{number}",
            candidate_digest=item.candidate.digest,
            evaluation=timed(ms),
            device=replace(GPU, name=device, architecture=architecture),
            comparison=None,
            measured_at="",
            absorbed_at="",
            environment={"torch": "2.13"},
        )
        for device, architecture, times in (
            ("NVIDIA H200", "sm_90a", (1.0, 0.5)),
            ("NVIDIA A10", "sm_86", (2.0, 2.5)),
        )
        for number, (item, ms) in enumerate(zip(session.rounds, times, strict=True))
    )
    found = records_of(replace(session, measurements=measured))
    assert [(item.device, item.architecture, item.speedup, item.estimated) for item in found] == [
        ("NVIDIA H200", "sm_90a", pytest.approx(2.0), False),
        ("NVIDIA A10", "sm_86", pytest.approx(0.8), False),
    ]
    assert found[0].versions == {"torch": "2.13", "driver": "580.1"}


def test_some_rounds_of_a_session_can_be_asked_for_alone(taught):
    (only,) = records_of(taught, rounds=taught.rounds[3:])
    assert only.revision == "r3"


@pytest.mark.parametrize(("words", "recorded"), [("", 1), ("a warp a row", 0)])
def test_a_step_that_a_persons_words_replaced_leaves_no_record_under_the_strategys_name(
    taught, words, recorded, monkeypatch
):
    missing = Alignment(
        statement="", by="features", unfulfilled=("tensor-cores is promised, but there is none",)
    )
    monkeypatch.setattr(learning, "_aligned", lambda *_: missing)
    last = taught.rounds[-1]
    (attempt,) = last.attempts
    asked = replace(attempt, prompt=replace(attempt.prompt, steering=words))
    session = replace(taught, rounds=(*taught.rounds[:-1], replace(last, attempts=(asked,))))
    assert len(records_of(session, rounds=[session.rounds[-1]])) == recorded

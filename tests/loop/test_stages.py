"""Stages, plateaus and menus as pure predicates over made-up histories."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Plan, Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy
from cutegen_nb.loop.menu import _fits, offered
from cutegen_nb.loop.stages import at_plateau, next_step, paper_depth
from cutegen_nb.loop.stopping import StopInput, stop_reason
from cutegen_nb.testing import examples

LESS, SAME, MORE = Relation.LESS_WORK, Relation.SAME_WORK, Relation.MORE_WORK
STRUCTURAL = tuple(Strategy(name=f"s{n}", statement="Change how work is cut.") for n in range(8))
NUMBERS = tuple(Strategy(name=f"t{n}", statement="Change a number.", stage=Stage.TUNE) for n in range(2))
MENU = (*STRUCTURAL, *NUMBERS)


def session(*rounds: Round, plan: Plan | None = None, workload_class=WorkloadClass.ELEMENTWISE) -> Session:
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=replace(examples.relu_facts(), workload_class=workload_class),
        device=examples.simulated_device(),
        author="scripted",
        budget=Budget(rounds=100),
        created_at="",
        rounds=rounds,
        plan=plan or Plan(),
    )


def played(*outcomes: tuple[Stage, Relation | None], menu=MENU, plan=None, extra=()) -> Session:
    """A first kernel, then a round for each outcome: a relation, or None for one that failed."""
    made = session(_round(0, Stage.CORRECT, None, None, Relation.FIRST), plan=plan)
    for stage, relation in outcomes:
        parent = made.best
        assert parent is not None
        step = next_step(made, menu)
        strategy = step.strategy or Strategy(name=f"x{len(made.rounds)}", statement="")
        made = replace(
            made,
            rounds=(*made.rounds, _round(len(made.rounds), stage, parent.candidate, strategy, relation)),
        )
    return made


def _round(number, stage, parent, strategy, relation) -> Round:
    candidate = Candidate(source=examples.kernel_source(f"r{number}"), author="scripted")
    evaluation = examples.passed(1000) if relation else examples.failed(examples.Verdict.CRASHED, "It fell.")
    prompt = Prompt(system="", user="", digest="", strategy=strategy, parent=parent)
    better = relation is not None and relation.is_better
    return Round(
        number=number,
        stage=stage,
        strategy=strategy,
        attempts=(
            Attempt(
                purpose="optimise", prompt=prompt, reply=None, candidate=candidate, evaluation=evaluation
            ),
        ),
        comparison=Comparison(relation=relation, reason="Counted.") if relation else None,
        decisions=(
            Decision(gate="revision", action=Action.APPROVE if better else Action.REJECT, by="policy:auto"),
        ),
        started_at="",
        seconds=1.0,
    )


S, P, T = Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE


@pytest.mark.parametrize(
    ("outcomes", "stage"),
    [
        ((), S),
        (((S, LESS),), S),
        (((S, SAME),), S),
        (((S, SAME), (S, SAME)), P),
        (((S, SAME), (S, MORE)), P),
        (((S, SAME), (S, LESS), (S, SAME)), S),
        (((S, SAME), (S, None), (S, SAME)), P),
        (((S, None), (S, None), (S, None)), S),
        (((S, SAME), (S, SAME), (P, LESS)), P),
        (((S, SAME), (S, SAME), (P, SAME)), P),
        (((S, SAME), (S, SAME), (P, SAME), (P, SAME)), T),
        (((S, SAME), (S, SAME), (P, SAME), (P, SAME), (T, LESS)), T),
        (((S, SAME), (S, SAME), (P, SAME), (P, SAME), (T, SAME), (T, SAME)), P),
    ],
)
def test_a_stage_goes_on_while_it_pays_and_the_next_begins_at_a_plateau(outcomes, stage):
    assert next_step(played(*outcomes), MENU).stage is stage


def test_a_first_passing_kernel_is_sought_before_anything_else():
    assert next_step(session(), MENU).stage is Stage.CORRECT


def test_the_round_says_what_ended_the_stage_before():
    assert next_step(played((S, SAME), (S, SAME)), MENU).because == "2 rounds in a row brought no gain"
    one = Plan(plateau_rounds=1)
    assert next_step(played((S, SAME), plan=one), MENU).because == "1 round in a row brought no gain"
    only = STRUCTURAL[:1]
    after = next_step(played((S, SAME), menu=(*only, *NUMBERS)), (*only, *NUMBERS))
    assert after.stage is T
    assert after.because == "no structural strategy is left to try on this revision"


@given(relations=st.lists(st.sampled_from([LESS, SAME, MORE, None]), max_size=12), k=st.integers(1, 4))
@settings(deadline=None)
def test_a_plateau_is_k_passing_rounds_without_a_gain_whatever_failed_between(relations, k):
    rounds = [_round(n, S, None, STRUCTURAL[0], relation) for n, relation in enumerate(relations)]
    judged = [relation for relation in relations if relation is not None]
    expected = len(judged) >= k and all(relation is not LESS for relation in judged[-k:])
    assert at_plateau(rounds, k) is expected


@given(
    relations=st.lists(st.sampled_from([LESS, SAME, MORE, None]), max_size=24),
    k=st.integers(1, 3),
    paper=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_whatever_comes_of_rounds_a_session_ends_and_never_repeats_itself_on_one_parent(relations, k, paper):
    plan = Plan(plateau_rounds=k, schedule=Schedule.PAPER if paper else Schedule.PLATEAU)
    made = session(_round(0, Stage.CORRECT, None, None, Relation.FIRST), plan=plan)
    tried: set[tuple[str, str]] = set()
    for relation in relations:
        step = next_step(made, MENU)
        if step.stage is Stage.DONE:
            assert stop_reason(StopInput(session=made, menu=MENU))
            break
        assert step.parent is made.best
        key = (step.parent.candidate.digest, step.strategy.name)
        assert key not in tried
        tried.add(key)
        number = len(made.rounds)
        item = _round(number, step.stage, step.parent.candidate, step.strategy, relation)
        made = replace(made, rounds=(*made.rounds, item))


@pytest.mark.parametrize(
    ("workload_class", "depth"),
    [
        ("matrix product", 6),
        ("convolution", 6),
        ("softmax", 5),
        ("norm", 5),
        ("loss", 3),
        ("element-wise", 2),
    ],
)
def test_the_papers_schedule_shows_counters_from_a_fixed_depth_by_class(workload_class, depth):
    assert paper_depth(WorkloadClass(workload_class)) == depth
    paper = Plan(schedule=Schedule.PAPER)
    made = session(
        _round(0, Stage.CORRECT, None, None, Relation.FIRST),
        plan=paper,
        workload_class=WorkloadClass(workload_class),
    )
    stages = []
    for number in range(1, depth + 2):
        step = next_step(made, MENU)
        stages.append(step.stage)
        item = _round(number, step.stage, step.parent.candidate, step.strategy, SAME)
        made = replace(made, rounds=(*made.rounds, item))
    assert stages == [S] * depth + [P]
    assert made.rounds[-1].stage is P


def test_the_papers_schedule_ends_at_its_depth_and_says_so():
    plan = Plan(schedule=Schedule.PAPER)
    many = tuple(Strategy(name=f"s{n}", statement="Do it.") for n in range(20))
    made = played(*[(S, LESS)] * 10, menu=many, plan=plan)
    assert (
        stop_reason(StopInput(session=made, menu=many))
        == "the paper's schedule ends after 10 optimisation rounds"
    )


def test_a_person_who_branches_begins_anew_with_structure():
    made = played((S, LESS), (S, SAME), (S, SAME))
    assert next_step(made, MENU).stage is P
    last = made.rounds[-1]
    choice = Decision(gate="revision", action=Action.BRANCH, by="person:ada", edited="r0")
    branched = replace(made, rounds=(*made.rounds[:-1], replace(last, decisions=(choice,))))
    step = next_step(branched, MENU)
    assert (step.stage, step.parent.number) == (S, 0)


def test_structure_is_sought_among_what_the_roofline_lets_hope_for():
    menu = (
        Strategy(name="compute", statement="", bounds=(Bound.COMPUTE,)),
        Strategy(name="memory", statement="", bounds=(Bound.MEMORY,)),
        Strategy(name="any", statement=""),
    )
    made = played(menu=menu)
    assert [s.name for s in offered(made, menu, made.best, S)] == ["memory", "any"]
    assert "compute" in [s.name for s in offered(made, menu, made.best, P)]


@pytest.mark.parametrize(("over", "names"), [(1.0, ["wide"]), (4.0, ["coalesce", "wide"])])
def test_fewer_sectors_are_not_sought_where_no_byte_is_moved_in_vain(over, names):
    sectors = ExpectedEffect(counter="gmem_load_sectors", direction=Direction.DOWN)
    requests = ExpectedEffect(counter="gmem_requests", direction=Direction.DOWN)
    menu = (
        Strategy(name="coalesce", statement="", effects=(sectors,)),
        Strategy(name="wide", statement="", effects=(sectors, requests)),
    )
    made = played(menu=menu)
    counted = examples.passed(int(over * made.facts.scaled.least_bytes) // SECTOR_BYTES)
    first = made.rounds[0]
    known = replace(first, attempts=(replace(first.attempts[0], evaluation=counted),))
    made = replace(made, rounds=(known,))
    assert [s.name for s in offered(made, menu, made.best, S)] == names


def test_an_answer_to_counters_is_offered_only_where_counters_ask_for_it():
    menu = (
        Strategy(name="pad-or-swizzle", statement="", stage=Stage.PROFILE),
        Strategy(name="any", statement=""),
    )
    made = played(menu=menu)
    assert [s.name for s in offered(made, menu, made.best, P)] == ["any"]


def test_what_the_problem_the_device_or_the_measurement_excludes_is_not_offered():
    facts, device = examples.relu_facts(), examples.simulated_device()
    assert not _fits(Strategy(name="a", statement="", dtypes=("float16",)), facts, device)
    assert _fits(Strategy(name="a", statement="", dtypes=("float32",)), facts, device)
    assert not _fits(Strategy(name="a", statement="", architectures=("sm_90",)), facts, device)
    hopper = replace(device, architecture="sm_90a")
    assert _fits(Strategy(name="a", statement="", architectures=("sm_90",)), facts, hopper)
    only_time = (ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),)
    hopes_for_time = Strategy(name="a", statement="", effects=only_time)
    made = played(menu=())
    assert offered(made, (hopes_for_time,), made.best, S) == ()
    gpu = replace(device, kind=DeviceKind.GPU)
    on_gpu = replace(made, device=gpu)
    assert offered(on_gpu, (hopes_for_time,), on_gpu.best, S) == (hopes_for_time,)


def test_where_nothing_is_timed_a_strategy_that_could_only_gain_time_is_left_for_a_gpu_and_named():
    time, barriers, sectors = (
        ExpectedEffect(counter=name, direction=Direction.DOWN)
        for name in ("latency_ms", "barriers", "gmem_load_sectors")
    )
    menu = (
        Strategy(name="double-buffered", statement="", effects=(barriers, time)),
        Strategy(name="tiles", statement="", effects=(sectors, time)),
        Strategy(name="more-ctas", statement="", effects=(time,), stage=Stage.PROFILE),
        Strategy(name="hopper-only", statement="", effects=(time,), architectures=("sm_90",)),
    )
    made = played((S, SAME), menu=menu)
    assert [item.strategy.name for item in made.rounds[1:]] == ["tiles"]
    assert stop_reason(StopInput(session=made, menu=menu)).endswith(
        "; left for a GPU, as counts cannot show what they gain: double-buffered, more-ctas"
    )


@pytest.mark.parametrize(
    ("schedule", "outcomes", "stages"),
    [
        (Schedule.NEVER, 6, [S, S, T, T, S, S]),
        (Schedule.START, 4, [P, P, T, T]),
        (Schedule.PLATEAU, 6, [S, S, P, P, T, T]),
    ],
)
def test_a_schedule_shows_counters_never_or_from_the_first_kernel_on(schedule, outcomes, stages):
    plan = Plan(schedule=schedule)
    made = session(_round(0, Stage.CORRECT, None, None, Relation.FIRST), plan=plan)
    found = []
    for number in range(1, outcomes + 1):
        step = next_step(made, MENU)
        found.append(step.stage)
        item = _round(number, step.stage, step.parent.candidate, step.strategy, SAME)
        made = replace(made, rounds=(*made.rounds, item))
    assert found == stages
    assert plan.shows_counters(P) is (schedule is not Schedule.NEVER)
    if schedule is Schedule.START:
        first = next_step(replace(made, rounds=made.rounds[:1]), MENU)
        assert first.because == "counters are shown from the first kernel on"


@pytest.mark.parametrize(
    ("gone", "later"),
    [((SAME, MORE), True), ((SAME,), False)],
)
def test_the_person_chooses_how_many_rounds_without_a_gain_end_a_stage(gone, later):
    made = played(*[(S, relation) for relation in gone], plan=Plan(plateau_rounds=len(gone) + (not later)))
    assert (next_step(made, MENU).stage is P) is later

"""A population from its first kernel to its end, on landscapes whose best kernel is known."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.analysis.knowledge.gains import recall
from cutegen_nb.core.errors import ConfigurationError, Declined, EvaluatorError, Unreachable
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.profile import Counters, LaunchProfile
from cutegen_nb.core.round import Action
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.core.session import Budget, Plan
from cutegen_nb.loop.population.slot_progress import SlotState
from cutegen_nb.store.knowledge_base import KnowledgeBase
from cutegen_nb.testing import examples
from cutegen_nb.testing.landscape import LandscapeAuthor, LandscapeEvaluator, carried_out
from cutegen_nb.wiring import Settings, slots_at_once

EXTEND, CROSS, INVENT = MoveKind.EXTEND, MoveKind.CROSS, MoveKind.INVENT
GAINS = {"a": 1.5, "b": 1.3, "c": 0.8, "d": 1.2, "f": 1.0, "own": 1.4}
LOSSES = {f"loss-{number}": 0.9 for number in range(16)}


def moves(session, epoch: int) -> list[MoveKind]:
    return [item.slot.move for item in session.rounds if item.slot and item.slot.epoch == epoch]


def members(session, epoch: int) -> list[int]:
    return [session.round_of(digest).number for digest in session.epochs[epoch - 1].members]


class Watched(LandscapeEvaluator):
    """Evaluator that counts the evaluations that run at once, and lets each other slot go on."""

    running = most = done = 0

    async def evaluate(self, *given, **named):
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(5):
            await asyncio.sleep(0)
        try:
            return await super().evaluate(*given, **named)
        finally:
            self.running -= 1
            self.done += 1


@pytest.fixture
def grown(evolve, landscape):
    evolution = evolve(landscape(GAINS, invents=("own",)))
    return evolution, evolution.run(3, 4)


def test_the_first_epoch_extends_and_later_ones_cross_and_invent_too(grown):
    _, session = grown
    assert session.rounds[0].slot is None
    assert moves(session, 1) == [EXTEND] * 3
    assert moves(session, 2) == [EXTEND, CROSS, INVENT]
    assert [(item.slot.epoch, item.slot.number) for item in session.rounds[1:]] == [
        (epoch, slot) for epoch in (1, 2, 3, 4) for slot in (1, 2, 3)
    ]
    assert session.stopped == "the budget of 4 epochs is spent"


def test_the_best_kernel_carries_out_what_gains_and_nothing_that_loses(grown, does):
    _, session = grown
    assert does(session.best) >= {"a", "b", "own"}
    assert "c" not in does(session.best)
    assert session.best.candidate.digest == session.epochs[-1].best == session.epochs[-1].champion


def test_a_crossover_descends_from_both_parents_and_starts_from_the_code_of_the_first(grown, does):
    _, session = grown
    crossed = [item for item in session.rounds if item.slot and item.slot.move is CROSS]
    assert crossed
    for item in crossed:
        base, other = (session.round_of(digest) for digest in item.slot.parents)
        assert item.candidate.parents == item.slot.parents
        assert item.attempts[1].prompt.parent == base.candidate
        assert does(base) < does(item)
        assert does(item) & (does(other) - does(base))
        assert item.strategy.source == "crossover"


def test_rounds_and_epochs_are_stored_before_they_are_shown_and_read_back_equal(grown):
    evolution, session = grown
    assert tuple(evolution.seen) == session.rounds
    assert tuple(evolution.epochs) == session.epochs
    assert evolution.stored() == session


def test_the_next_epoch_starts_from_the_members_that_selection_kept(grown):
    _, session = grown
    for epoch in session.epochs[:-1]:
        assert len(epoch.members) == 3
        later = [
            item.slot.parents for item in session.rounds if item.slot and item.slot.epoch == epoch.number + 1
        ]
        assert {digest for parents in later for digest in parents} <= set(epoch.members)


def test_kernels_of_one_epoch_are_compared_with_the_best_before_it_and_not_with_one_another(grown):
    _, session = grown
    before = [session.rounds[0].candidate.digest, *(epoch.best for epoch in session.epochs)]
    for item in session.rounds[1:]:
        if item.comparison:
            assert item.comparison.against == before[item.slot.epoch - 1]


def test_a_crossover_joins_what_no_extension_can(evolve, landscape, does):
    both = {"a": frozenset("b"), "b": frozenset("a")}
    evolution = evolve(landscape({"a": 1.5, "b": 1.4}, blocked=both))
    found = evolution.run(2, 4)
    assert {"a", "b"} <= does(found.best)
    assert found.best.slot.move is CROSS
    chain = replace(evolution, folder=evolution.folder / "chain").run(1, None)
    assert len(does(chain.best) & {"a", "b"}) == 1


@pytest.mark.parametrize(("gain", "wins"), [(1.2, True), (1.004, False), (1.0, False), (0.9, False)])
def test_only_a_kernel_shown_to_be_faster_becomes_the_champion(evolve, landscape, gain, wins):
    session = evolve(landscape({"a": 1.5, "b": 0.9, "next": gain})).run(2, 2)
    champion = session.round_of(session.epochs[0].best)
    assert champion.title == "a"
    extended = next(
        item for item in session.rounds if item.slot and item.slot.epoch == 2 and item.title == "next"
    )
    assert extended.comparison.relation.is_better is wins
    assert (session.epochs[1].best == extended.candidate.digest) is wins
    if gain == 1.004:
        assert extended.comparison.relation is Relation.CANNOT_TELL
        assert session.epochs[1].members[0] == extended.candidate.digest, "it looks faster and stays a member"
        assert session.best.candidate.digest == champion.candidate.digest


class Misled(LandscapeEvaluator):
    """Evaluator whose run of `b` beside the first kernel flatters it by 3 %; side by side it tells the truth."""

    def _timing(self, candidate, rival):
        found = super()._timing(candidate, rival)
        if carried_out(candidate.source) == {"b"} and rival is not None and not carried_out(rival.source):
            shown = found.rival
            flattered = replace(
                shown,
                speedup=shown.speedup * 1.03,
                speedup_low=shown.speedup_low * 1.03,
                speedup_high=shown.speedup_high * 1.03,
            )
            return replace(found, rival=flattered)
        return found


class Unable(LandscapeEvaluator):
    """Evaluator that fails where two kernels of one epoch are timed against one another."""

    async def evaluate(self, problem, candidate, progress, *given, rival=None, **named):
        if rival is not None and carried_out(rival.source):
            raise EvaluatorError("the GPU fell off the bus")
        return await super().evaluate(problem, candidate, progress, *given, rival=rival, **named)


def test_a_duel_decides_between_two_kernels_of_like_speed(evolve, landscape):
    made = landscape({"a": 1.32, "b": 1.30})
    evolution = evolve(made, evaluator=Misled(made))
    session = evolution.run(2, 1)
    fast, flattered = session.rounds[1:]
    assert flattered.comparison.speedup > fast.comparison.speedup
    (duel,) = session.epochs[0].duels
    assert (duel.holder, duel.challenger) == (flattered.candidate.digest, fast.candidate.digest)
    assert duel.speedup == pytest.approx(1.32 / 1.30)
    assert session.epochs[0].members == (fast.candidate.digest, flattered.candidate.digest)
    assert session.best.number == fast.number
    assert "timing r1 against r2" in evolution.progress


def test_a_duel_that_could_not_run_says_why_and_leaves_the_first_order(evolve, landscape):
    made = landscape({"a": 1.32, "b": 1.30})
    session = evolve(made, evaluator=Unable(made)).run(2, 1)
    (duel,) = session.epochs[0].duels
    assert (duel.speedup, duel.reason) == (None, "the GPU fell off the bus")
    assert session.best.title == "a"


@pytest.mark.parametrize("gain", [1.5, 1.38])
def test_kernels_that_are_clearly_apart_need_no_duel(evolve, landscape, gain):
    session = evolve(landscape({"a": gain, "b": 1.3})).run(2, 1)
    assert session.epochs[0].duels == ()
    assert session.best.title == "a"


class Estimating(LandscapeEvaluator):
    """Simulator whose counts at full size follow the landscape: the slower, the more sectors."""

    async def device(self):
        return examples.simulated_device()

    async def evaluate(self, problem, candidate, progress, tier=Tier.A, **named):
        timed = await super().evaluate(problem, candidate, progress, tier, **named)
        sectors = int(timed.timing.median_ms * 4e6)
        counters = Counters(
            gmem_load_sectors=sectors,
            gmem_ideal_sectors=sectors,
            gmem_requests=sectors // 4,
            warp_instructions=sectors // 4,
        )
        launch = LaunchProfile(
            kernel="kernel", grid=(100_000, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, counters=counters
        )
        sample = LaunchSample(profile=launch, ctas=16, first_touch_sectors=sectors)
        return replace(
            timed,
            timing=None,
            full_size=FullSizeSample(launches=(sample,)),
            profile=examples.passed(100).profile,
        )


def test_without_a_gpu_estimates_select_and_no_duel_is_fought(evolve, landscape, does):
    made = landscape({"a": 1.5, "b": 1.49, "c": 0.5, "d": 1.4})
    session = evolve(made, evaluator=Estimating(made)).run(3, 3)
    assert [epoch.duels for epoch in session.epochs] == [()] * 3
    assert [item.comparison.relation for item in session.rounds[1:4]] == [
        Relation.ESTIMATED_FASTER,
        Relation.ESTIMATED_FASTER,
        Relation.ESTIMATED_SLOWER,
    ]
    assert members(session, 1) == [1, 2, 0]
    assert {"a", "b"} <= does(session.best)
    assert "c" not in does(session.best)
    compared = [item.comparison for item in session.rounds if item.comparison]
    assert len(compared) > 6
    assert all(comparison.estimated_s for comparison in compared)


def test_the_seconds_that_duels_held_the_gpu_count_against_its_budget(evolve, landscape):
    # A first kernel and two slots take 3 s, the duel 1 s.
    budget = Budget(rounds=100, epochs=5, gpu_s=4.0)
    session = evolve(landscape({"a": 1.32, "b": 1.30, "c": 1.2})).run(2, budget=budget)
    assert len(session.epochs) == 1
    assert session.stopped == ("the budget of 4 s of GPU time is spent: evaluations held it for 4 s")


def test_epochs_without_a_gain_restart_once_from_the_best_and_the_first_and_then_end_the_session(
    evolve, landscape
):
    session = evolve(landscape({"a": 1.5, **LOSSES})).run(3, 30)
    assert [epoch.restarted for epoch in session.epochs] == [False, False, True, False, False]
    assert members(session, 3) == [1, 0]
    assert len(session.epochs[1].members) == 3
    assert session.stopped == "2 epochs in a row brought no gain, after a restart"
    assert session.best.title == "a"


def test_a_gain_after_the_restart_goes_on(evolve, landscape):
    gains = {"a": 1.5, **dict(list(LOSSES.items())[:6]), "late": 1.3, **dict(list(LOSSES.items())[6:])}
    session = evolve(landscape(gains)).run(3, 30)
    assert {"a", "late"} <= carried_out(session.best.candidate.source)
    assert sum(epoch.restarted for epoch in session.epochs) == 1
    assert session.stopped == "2 epochs in a row brought no gain, after a restart"


@pytest.mark.parametrize("allowed", [1, 3])
def test_the_plan_says_how_many_epochs_without_a_gain_are_allowed(evolve, landscape, allowed):
    session = evolve(landscape({"a": 1.5, **LOSSES})).run(3, 30, plan=Plan(stagnant_epochs=allowed))
    assert [epoch.number for epoch in session.epochs if epoch.restarted] == [1 + allowed]
    assert session.stopped == (f"{allowed} epochs in a row brought no gain, after a restart")


def test_a_population_with_nothing_left_to_try_says_so(evolve, landscape):
    session = evolve(landscape({"a": 1.5})).run(2, 30)
    assert session.stopped.startswith(("nothing is left to try", "no slot of epoch 2 brought a kernel"))
    assert session.best.title == "a"


@pytest.mark.parametrize(
    ("budget", "rounds", "stopped"),
    [
        (Budget(rounds=5, epochs=9), 5, "the budget of 5 rounds is spent"),
        (Budget(rounds=100, epochs=1), 4, "the budget of 1 epoch is spent"),
        (Budget(rounds=100, epochs=9, tokens=700), 4, "the budget of 700 tokens is spent: 770 were used"),
        (
            Budget(rounds=100, epochs=9, gpu_s=5.0),
            5,
            "the budget of 5 s of GPU time is spent: evaluations held it for 5 s",
        ),
    ],
)
def test_a_budget_ends_a_population_and_the_running_epoch_is_closed(
    evolve, landscape, budget, rounds, stopped
):
    evolution = evolve(landscape(GAINS))
    session = evolution.run(3, budget=budget)
    assert session.stopped == stopped
    assert len(session.rounds) == rounds
    assert session.epochs[-1].number == session.rounds[-1].slot.epoch
    assert evolution.stored() == session


def test_a_larger_budget_goes_on_with_the_next_epoch(evolve, landscape):
    evolution = evolve(landscape(GAINS))
    first = evolution.run(3, 1)
    again = evolution.run(3, 2)
    assert again.rounds[: len(first.rounds)] == first.rounds
    assert [epoch.number for epoch in again.epochs] == [1, 2]
    whole = replace(evolve(landscape(GAINS)), folder=evolution.folder / "whole").run(3, 2)
    assert again.rounds == whole.rounds
    assert again.epochs == whole.epochs


def test_a_resumed_population_keeps_its_epochs_where_none_are_given(evolve, landscape):
    evolution = evolve(landscape(GAINS))
    first = evolution.run(3, 2)
    again = evolution.run(3, None, rounds=2)
    assert again.rounds == first.rounds
    assert (again.budget.epochs, again.budget.rounds) == (2, 100)
    assert again.stopped == "the budget of 2 epochs is spent"


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_so_many_slots_run_at_once_as_there_are_workers_and_the_result_is_the_same(
    evolve, landscape, workers
):
    made = landscape(GAINS)
    evaluator = Watched(made)
    evolution = evolve(made, evaluator=evaluator)
    session = evolution.run(3, 3, workers=workers)
    assert evaluator.most == workers
    assert [item.number for item in session.rounds] == list(range(len(session.rounds)))
    assert evolution.stored() == session
    alone = replace(evolve(landscape(GAINS)), folder=evolution.folder / "alone").run(3, 3)
    assert by_slot(session) == by_slot(alone)
    assert [epoch.best for epoch in session.epochs] == [epoch.best for epoch in alone.epochs]


def test_a_model_is_asked_for_all_slots_at_once_and_one_kernel_is_judged_at_a_time(evolve, landscape):
    made = landscape(GAINS)
    evaluator = Watched(made)
    evolution = evolve(made, evaluator=evaluator)
    asked: list[int] = []
    write = evolution.effects.author.write

    async def counted(prompt, session, progress):
        asked.append(evaluator.done)
        return await write(prompt, session, progress)

    evolution.effects.author.write = counted
    session = evolution.run(3, 1, slots=3)
    assert evaluator.most == 1
    first = asked.index(1)
    assert asked[first : first + 3] == [1, 1, 1], "after the first kernel three requests, then verdicts"
    alone = replace(evolve(landscape(GAINS)), folder=evolution.folder / "alone").run(3, 1)
    assert by_slot(session) == by_slot(alone)


@pytest.mark.parametrize(("author", "slots"), [("openai", 4), ("manual", 1), ("offline", 2)])
def test_slots_run_side_by_side_as_the_author_answers(author, slots):
    assert slots_at_once(Settings(author=author, workers=2), 4) == slots


def by_slot(session):
    return {
        (item.slot.epoch, item.slot.number): (
            item.slot.move,
            item.title,
            item.candidate and item.candidate.digest,
        )
        for item in session.rounds
        if item.slot
    }


def test_the_slots_of_an_epoch_are_shown_from_planned_to_done_and_then_taken_away(grown):
    evolution, session = grown
    of_second = [slots for slots in evolution.slots if slots and slots[0].epoch == 2]
    assert {slot.state for slot in of_second[0]} == {SlotState.PLANNED}
    assert [(slot.number, slot.move, slot.strategy) for slot in of_second[0]] == [
        (1, EXTEND, "d"),
        (2, CROSS, ""),
        (3, INVENT, ""),
    ]
    assert of_second[0][1].base == members(session, 1)[0]
    assert of_second[0][1].other in members(session, 1)
    # The last slot may end after the board of the epoch is full.
    assert {slot.state for slot in of_second[-1]} == {SlotState.DONE}
    assert [slot.round for slot in of_second[-1]] == [4, 5, 6]
    assert [slot.strategy for slot in of_second[-1]] == [item.title for item in session.rounds[4:7]]
    assert evolution.slots[-1] == ()
    doing = {slot.doing for slots in of_second for slot in slots if slot.state is SlotState.RUNNING}
    assert {"landscape writes: a strategy of two parents", "timing on the landscape"} <= doing
    assert "epoch 2, slot 2 (cross): landscape writes: a strategy of two parents" in evolution.progress


class Interrupts(LandscapeAuthor):
    """Author at whose `number`-th request the run ends: by a fault of ours, or because it is cancelled."""

    def __init__(self, landscape, number: int, how: str) -> None:
        super().__init__(landscape)
        self._left = number
        self._how = how

    def menu(self, *given):
        self._run = asyncio.current_task()
        return super().menu(*given)

    async def write(self, prompt, session, progress):
        self._left -= 1
        if self._left == 0 and self._how == "fault":
            raise ConfigurationError("no key")
        if self._left == 0:
            self._run.cancel()
            await asyncio.Event().wait()
        return await super().write(prompt, session, progress)


@pytest.mark.every(test=3)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("how", "number", "epochs"),
    # The first kernel takes one request, each slot of the first epoch two.
    [("fault", 1 + 5, 0), ("fault", 1 + 6 + 3, 1), ("cancelled", 1 + 6 + 3, 1)],
)
def test_what_ends_a_run_in_mid_epoch_keeps_the_finished_slots_and_the_rest_follow(  # noqa: PLR0913, PLR0917
    evolve, landscape, workers, how, number, epochs
):
    made = landscape(GAINS)
    broken = evolve(made, author=Interrupts(made, number, how))
    with pytest.raises(ConfigurationError if how == "fault" else asyncio.CancelledError):
        broken.run(3, 3, workers=workers)
    kept = broken.stored()
    assert len(kept.epochs) == epochs
    assert 1 + 3 * epochs <= len(kept.rounds) < 4 + 3 * epochs
    assert kept.stopped == ""
    assert broken.slots[-1] == ()

    again = evolve(made)
    session = again.run(3, 3, workers=workers)
    assert session.rounds[: len(kept.rounds)] == kept.rounds
    whole = replace(evolve(made), folder=again.folder / "whole").run(3, 3)
    assert by_slot(session) == by_slot(whole)


def test_an_author_that_is_gone_ends_the_session_after_the_epoch_and_not_each_slot(evolve, landscape):
    class Gone(LandscapeAuthor):
        async def write(self, prompt, session, progress):
            if session.epochs:
                raise Unreachable("nobody there")
            return await super().write(prompt, session, progress)

    made = landscape(GAINS)
    session = evolve(made, author=Gone(made)).run(3, 9)
    assert session.stopped == "no slot of epoch 2 brought a kernel: nobody there"
    assert [item.note for item in session.rounds[4:]] == ["nobody there"] * 3
    assert session.best.title == "a"


def test_an_author_without_a_menu_for_the_problem_ends_the_session_with_its_words(evolve, landscape):
    class Declines(LandscapeAuthor):
        def menu(self, facts, library=()):
            raise Declined("it writes no products")

    session = evolve(landscape(GAINS), author=Declines(landscape(GAINS))).run()
    assert (session.stopped, session.rounds) == ("it writes no products", ())


def test_a_first_kernel_that_fails_is_repaired_before_any_epoch(evolve, landscape):
    class Stumbles(LandscapeAuthor):
        def _kernel(self, prompt, session):
            text = super()._kernel(prompt, session)
            return text.replace("# does:", "# wrong, does:") if prompt.purpose == "generate" else text

    made = landscape({"a": 1.5, "b": 1.2})
    session = evolve(made, author=Stumbles(made)).run(2, 1)
    # The landscape's author answers a request for a diagnosis with the kernel.
    assert [attempt.purpose for attempt in session.rounds[0].attempts] == ["generate", "diagnose"]
    assert session.rounds[0].slot is None
    assert moves(session, 1) == [EXTEND, EXTEND]


def test_a_first_kernel_that_never_passes_ends_the_session_without_an_epoch(evolve, landscape):
    class Fails(LandscapeAuthor):
        def _kernel(self, prompt, session):
            return super()._kernel(prompt, session).replace("# does:", "# wrong, does:")

    made = landscape({"a": 1.5})
    session = evolve(made, author=Fails(made)).run(2, 3)
    assert session.epochs == ()
    assert "same kernel again" in session.stopped
    assert session.best is None


def test_a_population_of_one_is_a_chain(evolve, landscape):
    session = evolve(landscape({"a": 1.5, "b": 1.2})).run(1, None)
    assert session.epochs == ()
    assert all(item.slot is None for item in session.rounds)
    assert session.stopped.startswith("every strategy was tried")


def test_a_person_who_stops_at_a_gate_ends_the_session_after_that_epoch(evolve, landscape, at_epochs):
    evolution = evolve(landscape(GAINS), approver=at_epochs({2: [(Action.STOP, "")]}))
    session = evolution.run(3, 9)
    assert session.stopped == "person:ada stopped the session after epoch 2"
    assert len(session.epochs) == 2
    assert evolution.stored() == session
    resumed = evolve(landscape(GAINS)).run(3, 3)
    assert [epoch.number for epoch in resumed.epochs] == [1, 2, 3]
    assert resumed.stopped == "the budget of 3 epochs is spent"


def test_a_population_opens_with_the_line_that_won_on_a_like_problem(evolve, landscape, does, tmp_path):
    base = KnowledgeBase(tmp_path / "knowledge")
    made = landscape({"a": 1.5, "b": 1.4, "c": 0.8, "d": 1.01})
    taught = evolve(made)
    taught.effects = replace(taught.effects, learn=base.learn)
    earlier = taught.run(1, None)
    assert {"a", "b"} <= does(earlier.best)
    records = base.records()
    assert {item.session for item in records} == {"relu"}

    later = evolve(made)
    later.effects = replace(later.effects, knowledge=lambda facts, device: recall(records, facts, device))
    later = replace(later, folder=later.folder / "later", problem=examples.relu_problem("relu_again"))
    session = later.run(2, 1)
    first = session.rounds[1]
    assert (first.slot.number, first.slot.move, first.strategy.source) == (1, MoveKind.RECALL, "history")
    assert {"a", "b"} <= does(first)
    assert session.best.number == first.number
    assert [item.slot.move for item in session.rounds[2:]] == [EXTEND]


def test_an_author_sees_all_rounds_so_far_in_each_slot(evolve, landscape):
    class Counts(LandscapeAuthor):
        def __init__(self, made) -> None:
            super().__init__(made)
            self.seen: list[tuple[int, str]] = []

        async def write(self, prompt, session, progress):
            self.seen.append((len(session.rounds), prompt.purpose))
            return await super().write(prompt, session, progress)

    made = landscape(GAINS)
    author = Counts(made)
    session = evolve(made, author=author).run(3, 2)
    assert author.seen == [
        (item.number, attempt.purpose) for item in session.rounds for attempt in item.attempts
    ]
    # What a request tells is the session as it was at the start of the epoch.
    for item in session.rounds[4:]:
        assert "r3, " in item.attempts[0].prompt.user
        assert "r4, " not in item.attempts[0].prompt.user

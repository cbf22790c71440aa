"""Round of a slot: the strategy is stated where the move asks for one, carried out, repaired and aligned."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.core.errors import Declined, Unreachable
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import StrategyEnd
from cutegen_nb.core.search.population import MoveKind, Slot
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Optimisation, Strategy
from cutegen_nb.loop.population.evidence import line_to, member_evidence
from cutegen_nb.loop.population.gate import MemberApprover
from cutegen_nb.loop.population.planning import PlannedSlot
from cutegen_nb.loop.population.slot_round import aligned_first, run_slot
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

TILES = Strategy(name="tiles", statement="Cut tiles.", absent=(Optimisation.SHARED_TILES,))
WARPS = Strategy(name="warp-a-row", statement="A warp owns a row.")
DONE = "Done: A warp owns a row and keeps it.\nCarries: none\nNot done: none\n"
STATED = "Strategy: both\nStatement: Cut tiles and let a warp own a row.\nCombines: tiles, warp-a-row\n"


@pytest.fixture
def session():
    """A population of a first kernel and two members, each with a strategy of its own."""
    made = examples.evolved_session()
    first, one, other, _ = made.rounds
    digest = first.candidate.digest

    def of(item, strategy):
        attempt = item.attempts[0]
        prompt = replace(attempt.prompt, strategy=strategy, parent=first.candidate)
        candidate = replace(attempt.candidate, parents=(digest,), strategy=strategy)
        return replace(
            item,
            strategy=strategy,
            attempts=(replace(attempt, prompt=prompt, candidate=candidate),),
            aligned=None,
        )

    return replace(made, rounds=(first, of(one, TILES), of(other, WARPS)))


@pytest.fixture
def run(stage, session):
    """Function that runs a slot on the session with these answers and evaluations."""

    def play(  # noqa: PLR0913 - what a slot is made of, by name
        answers, found, *, move=MoveKind.EXTEND, strategy=TILES, others=(), beside=(), within=session
    ):
        loop = stage(answers, found)
        base, other = within.rounds[2], within.rounds[1] if move is MoveKind.CROSS else None
        parents = tuple(item.candidate.digest for item in (base, other) if item)
        planned = PlannedSlot(
            slot=Slot(epoch=2, number=1, move=move, parents=parents),
            base=base,
            other=other,
            strategy=None if move in {MoveKind.CROSS, MoveKind.INVENT} else strategy,
            others=others,
        )
        effects = replace(loop.effects, approver=MemberApprover())
        return loop, asyncio.run(run_slot(within, effects, planned, beside=beside))

    return play


def purposes(item) -> list[str]:
    return [attempt.purpose for attempt in item.attempts]


def test_an_extension_asks_for_the_kernel_and_then_for_what_it_does(run, reply_with, session):
    loop, item = run([reply_with("new"), DONE], {"new": passed(50)})
    assert purposes(item) == ["optimise", "align"]
    assert (item.slot.number, item.stage, item.strategy) == (1, Stage.STRUCTURE, TILES)
    assert item.approved
    assert item.candidate.parents == (session.rounds[2].candidate.digest,)
    assert loop.model.prompts[0].parent == session.rounds[2].candidate
    assert item.comparison.against == session.best.candidate.digest


def test_a_crossover_states_one_strategy_of_two_and_descends_from_both(run, reply_with, session):
    loop, item = run([STATED, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.CROSS)
    assert purposes(item) == ["cross", "optimise", "align"]
    base, other = session.rounds[2].candidate, session.rounds[1].candidate
    assert item.candidate.parents == (base.digest, other.digest)
    assert (item.strategy.name, item.strategy.source) == ("both", "crossover")
    assert item.strategy.statement == "Cut tiles and let a warp own a row."
    assert item.strategy.parents == ("tiles", "warp-a-row")
    asked = loop.model.prompts[0]
    assert asked.crossed == ("r2", "r1")
    assert "Cut tiles." in asked.user
    assert "A warp owns a row." in asked.user
    # Strategies are crossed, never code.
    assert other.source.strip() not in asked.user
    assert base.source.strip() not in asked.user
    assert "Cut tiles and let a warp own a row." in loop.model.prompts[1].user


@pytest.mark.parametrize(
    ("combines", "parents"),
    [
        ("tiles, warp-a-row", ("tiles", "warp-a-row")),
        ("r1: tile", ("tiles",)),
        ("Warp a row and r1: tiles", ("warp-a-row", "tiles")),
        # Without a known name it is all that the other parent carries out and the base does not.
        ("something else", ("tiles",)),
        ("none", ("tiles",)),
    ],
)
def test_what_a_crossover_combines_is_known_by_name_however_it_is_written(run, reply_with, combines, parents):
    stated = f"Strategy: both\nStatement: Do both.\nCombines: {combines}\n"
    _, item = run([stated, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.CROSS)
    assert item.strategy.parents == parents


def test_an_invention_is_the_authors_own_strategy_with_what_it_brings_and_moves(run, reply_with):
    stated = (
        "Strategy: Register Ring\nStatement: Keep a ring of rows.\n"
        "Brings: pipelined\nMoves: gmem_load_sectors down\n"
    )
    loop, item = run([stated, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.INVENT)
    assert purposes(item) == ["invent", "optimise", "align"]
    assert (item.strategy.name, item.strategy.source) == ("register-ring", "model")
    assert item.strategy.absent == (Optimisation.PIPELINED,)
    assert [effect.counter for effect in item.strategy.effects] == ["gmem_load_sectors"]
    assert examples.kernel_source("2").strip() in loop.model.prompts[0].user


def test_a_name_that_another_strategy_has_gets_a_number(run, reply_with, session):
    stated = "Strategy: tiles\nStatement: Other tiles.\n"
    _, item = run([stated, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.INVENT)
    assert item.strategy.name == "tiles-2"
    taken = replace(session.rounds[0], number=3, strategy=Strategy(name="tiles-2", statement="."))
    more = replace(session, rounds=(*session.rounds, taken))
    _, item = run([stated, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.INVENT, within=more)
    assert item.strategy.name == "tiles-3"


def test_a_reply_that_states_none_is_asked_for_once_more_with_the_reason(run, reply_with):
    loop, item = run(
        ["I would think about it.", STATED, reply_with("new"), DONE], {"new": passed(50)}, move=MoveKind.CROSS
    )
    assert purposes(item) == ["cross", "reply", "optimise", "align"]
    assert "The answer has no line `Strategy:`" in item.attempts[0].problem
    assert "The answer has no line `Strategy:`" in loop.model.prompts[1].user
    assert "I would think about it." in loop.model.prompts[1].user
    assert item.approved


def test_three_replies_that_state_none_end_the_slot_and_nothing_is_evaluated(run):
    loop, item = run(["Well.", "Well, well.", "Well?"], {}, move=MoveKind.INVENT)
    assert purposes(item) == ["invent", "reply", "reply"]
    assert (item.strategy, item.candidate, item.comparison) == (None, None, None)
    assert item.note == "the last of 3 replies lacked a line that was asked for"
    assert item.title == "no strategy stated"
    assert loop.effects.evaluator.tiers == []


def test_a_crossover_with_nothing_to_take_over_ends_its_slot_with_the_reason(run):
    loop, item = run(["Strategy: none — because r1 only repeats r2."], {}, move=MoveKind.CROSS)
    assert len(loop.model.prompts) == 1
    assert item.note == "nothing to take over from the other kernel: r1 only repeats r2."
    assert item.slot.move is MoveKind.CROSS


@pytest.mark.parametrize("error", [Unreachable("nobody there"), Declined("no more ideas")])
def test_an_author_that_fails_to_state_a_strategy_is_recorded(run, error):
    _, item = run([error], {}, move=MoveKind.INVENT)
    assert (item.note, item.attempts[0].reply) == (str(error), None)


def test_the_strategies_beside_a_slot_are_told_so_that_the_author_states_another(run, reply_with):
    loop, _ = run(
        [STATED, reply_with("new"), DONE],
        {"new": passed(50)},
        move=MoveKind.CROSS,
        beside=("split-k", "wide"),
    )
    assert "split-k, wide" in loop.model.prompts[0].user


def test_a_failed_kernel_is_repaired_in_its_slot_and_only_the_first_has_both_parents(
    run, reply_with, session
):
    _, item = run(
        [STATED, reply_with("broken"), "The tail.", reply_with("cured"), DONE],
        {"broken": failed(Verdict.WRONG_VALUES, "Wrong."), "cured": passed(50)},
        move=MoveKind.CROSS,
    )
    assert purposes(item) == ["cross", "optimise", "diagnose", "repair", "align"]
    broken, cured = (attempt.candidate for attempt in item.attempts if attempt.candidate)
    assert broken.parents == item.slot.parents
    assert cured.parents == (broken.digest,)
    assert item.approved


def test_a_kernel_that_never_passes_is_not_aligned(run, reply_with):
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    _, item = run(
        [reply_with("broken"), "The tail.", reply_with("b1"), "Again.", reply_with("b2")],
        {"broken": broken, "b1": broken, "b2": broken},
    )
    assert item.aligned is None
    assert "align" not in purposes(item)
    assert not item.approved


def test_the_next_strategy_of_the_slot_follows_one_that_the_author_ends(run, reply_with):
    loop, item = run(
        ["Strategy: already done — because tiles stand there.", reply_with("new"), DONE],
        {"new": passed(50)},
        others=((WARPS, Stage.PROFILE),),
    )
    assert [(ended.strategy, ended.end) for ended in item.ended] == [(TILES, StrategyEnd.ALREADY_DONE)]
    assert (item.strategy, item.stage, item.approved) == (WARPS, Stage.PROFILE, True)
    assert loop.model.prompts[1].strategy == WARPS
    assert loop.model.prompts[2].strategy == WARPS


def test_a_slot_whose_strategies_are_all_ended_has_no_kernel(run):
    _, item = run(["Strategy: cannot apply — because there are no rows."], {})
    assert item.candidate is None
    assert item.note == "the author ended tiles: cannot apply (there are no rows)"


def strided(sectors: int, ideal: int):
    """A passing evaluation that touches so many sectors where so few would do."""
    found = passed(sectors)
    launch = found.profile.launches[0]
    counters = replace(launch.counters, gmem_load_sectors=sectors, gmem_ideal_sectors=ideal)
    return replace(found, profile=replace(found.profile, launches=(replace(launch, counters=counters),)))


def test_what_counts_deny_is_corrected_beside_the_authors_words(run, reply_with):
    claims = "Done: Neighbours touch neighbours.\nCarries: coalesced, pipelined\nNot done: none\n"
    loop, item = run([reply_with("new"), claims], {"new": strided(32_000, 1_000)})
    found = item.aligned
    assert found.by == "scripted"
    assert found.statement.startswith("Neighbours touch neighbours. Correction from the kernel's features: ")
    assert "it does not carry out coalesced (" in found.statement
    assert any(text.startswith("coalesced is claimed, but ") for text in found.unfulfilled)
    assert Optimisation.COALESCED not in found.in_force
    assert loop.model.prompts[1].purpose == "align"
    assert loop.model.prompts[1].steering == ""


def test_what_the_strategy_promises_and_the_kernel_does_not_carry_out_is_named(run, reply_with):
    promising = replace(TILES, absent=(Optimisation.COALESCED,))
    _, item = run([reply_with("new"), DONE], {"new": strided(32_000, 1_000)}, strategy=promising)
    assert any(text.startswith("coalesced is promised, but ") for text in item.aligned.unfulfilled)


@pytest.mark.parametrize("answer", ["", "It is a fine kernel.", Unreachable("nobody there")])
def test_without_a_usable_restatement_the_kernel_alone_says_what_it_does(run, reply_with, answer):
    _, item = run([reply_with("new"), answer], {"new": strided(1_000, 1_000)})
    assert item.aligned.by == "features"
    assert Optimisation.COALESCED in item.aligned.in_force
    assert "coalesced" in item.aligned.statement
    assert item.attempts[-1].problem
    assert item.approved, "a missing restatement takes nothing from a kernel that passed"


def test_an_unusable_restatement_is_asked_for_again_twice(run, reply_with):
    loop, item = run([reply_with("new"), "Fine.", "Fine, really.", DONE], {"new": strided(1_000, 1_000)})
    assert purposes(item) == ["optimise", "align", "reply", "reply"]
    assert "Fine, really." in loop.model.prompts[-1].user, "the rejected reply is quoted"
    assert item.aligned.by != "features"


def test_a_first_kernel_is_aligned_from_its_counts_alone(session):
    first = session.rounds[0]
    found = aligned_first(session, first)
    assert found.by == "features"
    assert found.in_force == found.brought
    unjudged = replace(first, attempts=(replace(first.attempts[0], evaluation=None),))
    assert aligned_first(session, unjudged) is None
    refused = replace(
        first, attempts=(replace(first.attempts[0], evaluation=failed(Verdict.CRASHED, "It fell.")),)
    )
    assert aligned_first(session, refused) is None


def test_evidence_on_a_member_tells_its_line_its_speed_and_its_counts(session):
    item = session.rounds[1]
    evidence = member_evidence(session, item)
    assert evidence.revision == "r1"
    assert [(one.name, one.statement) for one in evidence.line] == [("tiles", "Cut tiles.")]
    assert evidence.standing == "Its time is not known: it was neither timed nor estimated."
    assert "99 global 32-byte sectors" in evidence.evaluation
    assert "at the smaller size that is run" in evidence.evaluation
    assert evidence.diagnosis
    assert line_to(session, session.rounds[0]) == ()

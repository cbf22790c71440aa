"""Speed, selection and diversity of a population, and what a person decided on its members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.population.members import (
    Member,
    candidates,
    fates,
    population,
    select,
    speeds,
    stagnant_epochs,
)
from cutegen_nb.core.batch import Measurement
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.round import Action, Decision, Epoch
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.search.population import Duel, MoveKind, Slot
from cutegen_nb.core.strategy import Alignment, Optimisation
from cutegen_nb.core.timing import Timing
from cutegen_nb.testing import examples

FIRST, FASTER = Relation.FIRST, Relation.FASTER
VECTORS, SPLIT, TILES = Optimisation.VECTORS, Optimisation.SPLIT, Optimisation.SHARED_TILES
PLAIN = examples.session_of(FIRST, FASTER, FASTER, FASTER)
DIGESTS = [item.candidate.digest for item in PLAIN.rounds]


def compared(against, speedup, relation=FASTER):
    return Comparison(relation=relation, reason=".", against=against, speedup=speedup)


def with_speeds(*comparisons):
    """The session whose later rounds were compared so."""
    rounds = [PLAIN.rounds[0]] + [
        replace(item, comparison=made) for item, made in zip(PLAIN.rounds[1:], comparisons, strict=False)
    ]
    return replace(PLAIN, rounds=tuple(rounds))


def decided(action, revision):
    return Decision(gate="epoch", action=action, by="person:ada", edited=revision)


def member(number, speed, *niche, pinned=False):
    return Member(
        item=PLAIN.rounds[number % 4], digest=str(number), speed=speed, niche=frozenset(niche), pinned=pinned
    )


def chosen(members, size=2, elites=1):
    return [item.digest for item in select(members, size, elites)]


def test_speeds_multiply_along_the_bests():
    session = with_speeds(compared(DIGESTS[0], 2.0), compared(DIGESTS[1], 1.5), compared(DIGESTS[0], 0.5))
    assert speeds(session) == dict(zip(DIGESTS, (1.0, 2.0, 3.0, 0.5), strict=True))


def test_where_counts_alone_decide_they_give_an_order_and_no_ratio():
    session = with_speeds(
        compared(DIGESTS[0], None, Relation.LESS_WORK),
        compared(DIGESTS[0], None, Relation.MORE_WORK),
        compared(DIGESTS[0], None, Relation.CANNOT_TELL),
    )
    assert speeds(session) == dict(zip(DIGESTS, (1.0, 1.01, 0.99, 1.0), strict=True))


def test_a_duel_in_the_same_turns_replaces_a_comparison_and_the_newest_comes_last():
    session = with_speeds(compared(DIGESTS[0], 2.0), compared(DIGESTS[0], 2.1))
    old = Duel(challenger=DIGESTS[2], holder=DIGESTS[1], speedup=0.9, reason=".")
    session = replace(session, epochs=(Epoch(number=1, members=(), duels=(old,)),))
    assert speeds(session)[DIGESTS[2]] == pytest.approx(1.8)
    new = Duel(challenger=DIGESTS[2], holder=DIGESTS[1], speedup=1.1, reason=".")
    assert speeds(session, [new])[DIGESTS[2]] == pytest.approx(2.2)
    silent = Duel(challenger=DIGESTS[1], holder=DIGESTS[0], speedup=None, reason="The run told nothing.")
    assert speeds(session, [silent])[DIGESTS[1]] == 2.0


def measured(number, median_ms, verdict=Verdict.PASSED, device="NVIDIA H200"):
    timing = Timing(median_ms=median_ms, samples_ms=(), baselines=(), bandwidth_bytes_per_s=1e12)
    return Measurement(
        job=f"{number} {median_ms}",
        candidate_digest=DIGESTS[number],
        evaluation=replace(examples.passed(10), outcome=Judged(verdict=verdict), timing=timing),
        device=replace(examples.simulated_device(), name=device),
        comparison=None,
        measured_at="",
        absorbed_at="",
    )


def test_times_of_one_other_machine_replace_comparisons_where_the_first_kernel_was_timed_there():
    session = with_speeds(compared(DIGESTS[0], 2.0), compared(DIGESTS[0], 3.0))
    old = measured(1, 9.0, device="NVIDIA A100")
    told = replace(session, measurements=(old, measured(0, 8.0), measured(1, 2.0)))
    assert speeds(told) == dict(zip(DIGESTS, (1.0, 4.0, 3.0), strict=False))
    without_first = replace(session, measurements=(measured(1, 2.0),))
    assert speeds(without_first) == speeds(session)


def test_what_failed_elsewhere_or_was_dropped_or_rejected_is_no_candidate():
    session = replace(PLAIN, measurements=(measured(1, 1.0, Verdict.WRONG_VALUES),))
    rejected = Decision(gate="revision", action=Action.REJECT, by="person:ada")
    rounds = (*PLAIN.rounds[:3], replace(PLAIN.rounds[3], decisions=(rejected,)))
    session = replace(session, rounds=rounds)
    assert {item.label for item in candidates(session)} == {"r0", "r2"}
    assert {item.label for item in candidates(session, [decided(Action.DROP, "r2")])} == {"r0"}


def test_candidates_come_fastest_first_with_what_they_carry_out():
    session = with_speeds(compared(DIGESTS[0], 2.0), compared(DIGESTS[0], 3.0), compared(DIGESTS[0], 0.5))
    aligned = Alignment(statement=".", by="test", in_force=(VECTORS, TILES))
    rounds = (*session.rounds[:2], replace(session.rounds[2], aligned=aligned), session.rounds[3])
    found = candidates(replace(session, rounds=rounds), [decided(Action.PIN, "r3")])
    assert [item.label for item in found] == ["r2", "r1", "r0", "r3"]
    assert found[0].niche == {VECTORS, TILES}
    assert [item.pinned for item in found] == [False, False, False, True]


def test_the_newest_decision_on_a_kernel_counts():
    epochs = (
        Epoch(number=1, members=(), decisions=(decided(Action.PIN, "r1"), decided(Action.DROP, "r2"))),
        Epoch(number=2, members=(), decisions=(decided(Action.DROP, "r1"),)),
    )
    session = replace(PLAIN, epochs=epochs)
    assert fates(session) == {DIGESTS[1]: Action.DROP, DIGESTS[2]: Action.DROP}
    assert fates(session, [decided(Action.PIN, "r2")])[DIGESTS[2]] is Action.PIN
    assert fates(session, [decided(Action.PIN, "r99"), decided(Action.FORBID, "r1")]) == fates(session)


@pytest.mark.parametrize(
    ("members", "size", "elites", "kept"),
    [
        # The fastest stays, and the place beside it goes to another way of working.
        ([member(0, 3.0, VECTORS), member(1, 2.9, VECTORS), member(2, 2.0, SPLIT)], 2, 1, ["0", "2"]),
        # Far slower ways of working earn no place.
        ([member(0, 3.0, VECTORS), member(1, 2.9, VECTORS), member(2, 1.4, SPLIT)], 2, 1, ["0", "1"]),
        # Elites come before diversity.
        ([member(0, 3.0, VECTORS), member(1, 2.9, VECTORS), member(2, 2.0, SPLIT)], 2, 2, ["0", "1"]),
        # A pinned one stays however slow it is, beyond the size if need be.
        ([member(0, 3.0), member(1, 2.9, SPLIT), member(2, 0.1, pinned=True)], 2, 1, ["0", "2"]),
        ([member(0, 3.0), member(1, 0.2, pinned=True), member(2, 0.1, pinned=True)], 1, 1, ["0", "1", "2"]),
        # Three ways of working fill three places, fastest first.
        (
            [member(0, 3.0), member(1, 2.9), member(2, 2.0, TILES), member(3, 1.9, SPLIT)],
            3, 1, ["0", "2", "3"],
        ),
        # With one way of working only speed counts.
        ([member(0, 3.0), member(1, 2.9), member(2, 2.0)], 2, 1, ["0", "1"]),
        ([member(0, 3.0)], 4, 1, ["0"]),
        ([], 4, 1, []),
    ],
)  # fmt: skip
def test_selection_keeps_the_fastest_the_pinned_and_the_different(members, size, elites, kept):
    assert chosen(members, size, elites) == kept


def test_before_the_first_epoch_the_population_is_the_best_kernel():
    assert [item.label for item in population(PLAIN)] == ["r3"]
    assert population(replace(PLAIN, rounds=())) == ()
    evolved = replace(PLAIN, epochs=(Epoch(number=1, members=(DIGESTS[2], DIGESTS[0], "gone")),))
    assert [item.label for item in population(evolved)] == ["r2", "r0"]


def test_epochs_without_a_new_champion_are_counted_until_a_restart():
    def stagnant(*champions, restarted=()):
        slots = [
            replace(item, slot=Slot(epoch=1, number=1, move=MoveKind.EXTEND, parents=()))
            for item in PLAIN.rounds[1:]
        ]
        epochs = tuple(
            Epoch(number=number, members=(digest,), best=digest, restarted=number in restarted)
            for number, digest in enumerate(champions, start=1)
        )
        return stagnant_epochs(replace(PLAIN, rounds=(PLAIN.rounds[0], *slots), epochs=epochs))

    a, b = DIGESTS[0], DIGESTS[1]
    assert stagnant() == 0
    assert stagnant(a) == 1  # the first kernel is the best still
    assert stagnant(b) == 0
    assert stagnant(b, b, b) == 2
    assert stagnant(b, b, b, restarted={2}) == 1

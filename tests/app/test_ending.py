"""Reason and next step at the end of a session, for each way in which one ends."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.app.ending import end_view, ended_bundle, ending, rounds_to_go_on, unused
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.loop.stopping import StopInput, stop_reason, stopped_by_decision
from cutegen_nb.testing.examples import session_of

MADE = session_of(Relation.FIRST, Relation.LESS_WORK)
KEPT = replace(MADE, budget=replace(MADE.budget, rounds=6))


def spent(**limits):
    session = replace(KEPT, budget=replace(KEPT.budget, **limits))
    return replace(session, stopped=budget_spent(session))


def labels(found):
    return [step.label for step in found.steps]


def test_spent_rounds_are_followed_by_more():
    session = spent(rounds=2)
    found = ending(session, "relu", session.stopped)
    assert found.reason == "The budget of 2 rounds is spent."
    assert found.advice == "3 more rounds would start from r1, the best revision."
    assert labels(found) == ["3 more rounds", "Export the kernel", "Save the session"]
    assert found.steps[0].typed == "%cutegen resume relu --rounds 5"


def test_another_budget_asks_for_a_larger_limit():
    session = spent(wall_s=0.0)
    found = ending(session, "relu", session.stopped)
    assert found.advice == "Run the cell again with a larger limit to go on from r1, the best revision."
    assert labels(found) == ["Export the kernel", "Save the session"]


def test_the_epochs_of_a_population_ask_for_a_larger_limit_too():
    words = "the budget of 3 epochs is spent"
    found = ending(replace(KEPT, stopped=words), "relu", words)
    assert found.advice.startswith("Run the cell again with a larger limit")
    assert "Go on" not in labels(found)


def test_a_stop_names_the_person_the_round_and_the_words():
    words = "person:ada stopped it in round 2 while compiling: enough for today"
    found = ending(replace(KEPT, stopped=words), "relu", words)
    assert found.reason == "ada stopped it in round 2 while compiling: “enough for today”."
    assert found.advice == "Going on starts from r1, the best revision; finished rounds are kept."
    assert labels(found)[0] == "Go on"
    words = "person:ada stopped the session at round 2"
    assert ending(replace(KEPT, stopped=words), "relu", words).reason == "ada stopped it at round 2."
    words = "person:ada stopped the session after epoch 2"
    assert ending(replace(KEPT, stopped=words), "relu", words).reason == "ada stopped it after epoch 2."


def test_the_ends_that_the_loop_words_are_recognised():
    # The words come from the loop itself: another wording there would offer going on for nothing.
    words = stop_reason(StopInput(session=KEPT, menu=()))
    assert words.startswith("every strategy was tried")
    found = ending(replace(KEPT, stopped=words), "relu", words)
    assert "; tried: coalesce (r1)" in found.reason, "the panel names them"
    assert "would end for the same reason" in found.advice
    assert "Go on" not in labels(found)
    decision = Decision(gate="revision", action=Action.STOP, by="person:ada", reason="enough")
    stop = stopped_by_decision(replace(KEPT.rounds[-1], decisions=(decision,)))
    assert ending(replace(KEPT, stopped=stop), "relu", stop).reason.startswith("ada stopped it at round 1")


def test_a_stop_before_the_first_kernel_may_go_on_offline_and_an_author_without_one_may_not():
    bare = replace(KEPT, rounds=(), author="offline")
    words = "person:ada stopped the session at round 0"
    assert labels(ending(replace(bare, stopped=words), "relu", words)) == ["Go on"]
    words = "no kernel for aten.sort"
    found = ending(replace(bare, stopped=words), "relu", words)
    assert labels(found) == []
    assert "--author openai asks a model" in found.advice


def test_an_error_says_so_and_goes_on_after_it_is_mended():
    found = ending(KEPT, "relu", "no key: set OPENAI_API_KEY")
    assert found.reason == "An error ended it. No key: set OPENAI_API_KEY."
    assert found.advice.startswith("Correct the cause named above, then go on from r1")


def test_an_address_at_the_beginning_of_a_reason_stays_as_it_is():
    words = "http://127.0.0.1:8000/v1 answered 401"
    assert ending(replace(KEPT, stopped=words), "relu", words).reason == f"{words}."


def test_a_rule_that_would_end_it_again_advises_something_else():
    words = "every strategy was tried on r1"
    found = ending(replace(KEPT, stopped=words), "relu", words)
    assert found.reason == "Every strategy was tried on r1."
    assert "Going on would end for the same reason: export the kernel" in found.advice
    assert "Go on" not in labels(found)
    words = "the server could not be reached"
    assert labels(ending(replace(KEPT, stopped=words), "relu", words))[0] == "Go on"


def test_without_a_session_there_is_nothing_to_look_at():
    found = ending(None, "relu", "the problem has no get_inputs")
    assert found.reason == "The problem has no get_inputs."
    bundle = ended_bundle(found, "relu", "mark", "")
    assert "<button" not in bundle["text/html"]
    words = "relu has ended. The problem has no get_inputs. Correct the cause named above, then run the cell again."
    assert bundle["text/plain"] == words


def test_code_for_another_kernel_names_the_folder_of_the_session():
    words = "person:ada stopped the session at round 2"
    found = ending(replace(KEPT, stopped=words), "relu", words)
    text = ended_bundle(found, "relu", "mark", "", " --store .course")["text/plain"]
    assert "%cutegen resume relu --store .course  " in text
    assert "%cutegen export relu -o relu_kernel.py --store .course  " in text
    assert "%cutegen panel relu  " in text


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    wanted = str(tmp_path / "relu_kernel.py")
    assert unused(wanted) == wanted
    (tmp_path / "relu_kernel.py").touch()
    assert unused(wanted) == str(tmp_path / "relu_kernel_2.py")


def test_going_on_after_a_stop_at_a_revision_asks_about_it_and_needs_no_more_rounds():
    decision = Decision(gate="revision", action=Action.STOP, by="person:ada")
    last = replace(KEPT.rounds[-1], decisions=(decision,))
    words = stopped_by_decision(last)
    rounds = (*KEPT.rounds[:-1], last)
    session = replace(KEPT, rounds=rounds, stopped=words, budget=replace(KEPT.budget, rounds=len(rounds)))
    found = ending(session, "relu", words)
    assert found.advice == f"Going on asks about r{last.number} again; finished rounds are kept."
    assert labels(found)[0] == "Go on"
    assert rounds_to_go_on(session) == len(rounds)


def test_a_round_that_was_never_asked_for_counts_for_nothing():
    """Sessions of before stored it."""
    unasked = replace(KEPT.rounds[-1], number=len(KEPT.rounds), attempts=(), comparison=None)
    session = replace(KEPT, rounds=(*KEPT.rounds, unasked), budget=replace(KEPT.budget, rounds=9))
    assert rounds_to_go_on(session) == 9
    session = replace(session, budget=replace(KEPT.budget, rounds=len(session.rounds)))
    assert rounds_to_go_on(session) == len(session.rounds)


def test_the_end_card_tells_the_first_reasons_and_folds_the_others():
    names = [f"strategy-{number}" for number in range(9)]
    clauses = [f"{name} (its rows are too short; {'x' * 40})" for name in names]
    words = f"every strategy was tried on r1; cannot help here: {'; '.join(clauses)}"
    found = ending(replace(KEPT, stopped=words), "relu", words)
    assert found.reason.startswith(
        "Every strategy was tried on r1; cannot help here: strategy-0 (its rows are"
    )
    assert found.reason.endswith("; and 7 more reasons.")
    assert found.more == tuple(clauses[2:]), "a semicolon in brackets parts no reason"
    assert end_view(KEPT, "relu", words)["more"] == list(found.more)
    short = "every strategy was tried on r1; carried out already: a, b"
    assert ending(replace(KEPT, stopped=short), "relu", short).more == ()

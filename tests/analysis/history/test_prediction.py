"""Predictions of authors and expectations of strategies, against what their rounds measured."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.history.claim_score import Outcome
from cutegen_nb.analysis.history.ledger import calibrations
from cutegen_nb.analysis.history.ledger import claims as ledger_claims
from cutegen_nb.analysis.history.prediction import (
    prediction_scores,
    round_claims,
    round_scores,
    strategy_scores,
)
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import Action, Decision, EndedStrategy, PredictedChange, Prediction, StrategyEnd
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.strategy import Direction, ExpectedEffect
from cutegen_nb.testing import examples

FIRST, LESS = Relation.FIRST, Relation.LESS_WORK
DOWN = Direction.DOWN
SAID = Prediction(
    text="sectors down 75 %, 2×",
    counter="gmem_load_sectors",
    direction=DOWN,
    change_fraction=0.75,
    speedup=2.0,
)


def session(prediction=None, effects=None, **comparison):
    """Two rounds, the second compared with the first: 100 → 99 sectors, with an author's prediction."""
    made = examples.session_of(FIRST, LESS)
    first, second = made.rounds
    against = first.candidate.digest
    strategy = second.strategy if effects is None else replace(second.strategy, effects=effects)
    attempt = replace(second.attempts[0], prediction=prediction, evaluation=examples.passed(50))
    told = {"relation": LESS, "reason": ".", "against": against, **comparison}
    second = replace(second, strategy=strategy, attempts=(attempt,), comparison=Comparison(**told))
    return replace(made, rounds=(first, second))


def scores(made):
    return round_scores(made, made.rounds[1])


def test_a_prediction_names_the_amount_and_a_speedup_beside_it():
    found = prediction_scores(SAID, examples.passed(4000), examples.passed(1000))
    assert [one.text for one in found] == [
        "`gmem_load_sectors` down by 75 %: 4,000 → 1,000 (−75.0 %) at the size that ran, held",
        "`speedup` 2.00×: not measured",
    ]
    assert prediction_scores(Prediction(text="it will fly"), None, None) == ()


def test_every_counter_of_a_prediction_is_scored_in_its_order():
    more = replace(
        SAID, speedup=None, others=(PredictedChange(counter="warp_instructions", change_fraction=0.0),)
    )
    found = prediction_scores(more, examples.passed(4000, 10), examples.passed(1000, 10))
    assert [one.claim.counter for one in found] == ["gmem_load_sectors", "warp_instructions"]
    assert found[1].text == "`warp_instructions` unchanged: 10 → 10 (0 %) at the size that ran, held"


def test_a_predicted_slowdown_is_a_claim_about_the_speedup_too():
    slower = prediction_scores(Prediction(text="", speedup=0.8), None, None)[0]
    assert (slower.claim.direction, slower.claim.change_fraction) == (DOWN, 0.2)
    assert slower.text == "`speedup` 0.80×: not measured"
    same = prediction_scores(Prediction(text="", speedup=1.0), None, None)[0]
    assert (same.claim.direction, same.claim.change_fraction) == (None, 0)


def test_the_effects_of_a_strategy_are_its_claims():
    strategy = examples.strategies()[0]
    found = strategy_scores(strategy, examples.passed(100), examples.passed(50))
    assert [one.claim for one in found] == [PredictedChange(counter="gmem_load_sectors", direction=DOWN)]
    assert strategy_scores(examples.strategies()[1], examples.passed(100), examples.passed(50)) == ()


def test_a_kernel_that_is_its_parent_is_not_scored():
    made = session(SAID)
    same = replace(made.rounds[1].attempts[0], candidate=made.rounds[0].candidate)
    unchanged = replace(made, rounds=(made.rounds[0], replace(made.rounds[1], attempts=(same,))))
    assert scores(unchanged) == ("no change, so that no prediction is scored",)
    claims = round_claims(unchanged, unchanged.rounds[1])
    assert {one.score.outcome for one in claims} == {Outcome.NO_CHANGE}
    assert claims[0].text == "the strategy: `gmem_load_sectors` down: no change"
    # Nor does it count for or against who predicted it.
    assert [(one.held, one.missed, one.open) for one in calibrations(ledger_claims(unchanged))] == [
        (0, 0, 0),
        (0, 0, 0),
    ]
    # A branch may start from another kernel than the best.
    parents = replace(same.candidate, source="# other\n", parents=())
    child = replace(parents, parents=(parents.digest,))
    branched = replace(made.rounds[1], attempts=(replace(same, candidate=child),))
    assert round_scores(made, branched) == ("no change, so that no prediction is scored",)


def test_a_round_tells_the_strategys_claims_and_the_authors():
    assert scores(session(SAID)) == (
        "the strategy: `gmem_load_sectors` down: 100 → 50 (−50.0 %) at the size that ran, held",
        "its author predicted `gmem_load_sectors` down by 75 %: 100 → 50 (−50.0 %) at the size that ran, held",
        "predicted and not measured: `speedup`",
    )


def test_a_prediction_for_a_strategy_that_the_author_refused_is_not_scored_against_the_next():
    made = session(effects=())
    first, second = made.rounds
    tiles = replace(second.strategy, name="tiles")
    refused = EndedStrategy(strategy=tiles, end=StrategyEnd.CANNOT_APPLY, reason="no rows")
    asked = replace(second.attempts[0], candidate=None, evaluation=None, ended=refused)
    sent = Decision(gate="prompt", action=Action.APPROVE, by="person:ada")
    claimed = replace(SAID, speedup=None, change_fraction=0.5)
    for decisions, told in (
        ((replace(sent, prediction=SAID), sent), []),
        ((sent, replace(sent, prediction=claimed)), ["person:ada"]),
        ((replace(sent, prediction=SAID), replace(sent, prediction=claimed)), ["person:ada"]),
    ):
        item = replace(second, attempts=(asked, *second.attempts), decisions=decisions)
        found = ledger_claims(replace(made, rounds=(first, item)))
        assert [one.claim.by for one in found] == told
        assert all(one.claim.score.outcome is Outcome.HELD for one in found)


def test_a_prediction_that_repeats_the_strategys_claim_is_scored_once():
    repeated = Prediction(text="down", counter="gmem_load_sectors", direction=DOWN)
    assert len(scores(session(repeated))) == 1
    assert scores(session(Prediction(text="it flies")))[1] == (
        "its author predicted: it flies (names nothing that is measured)"
    )


def test_a_round_that_failed_or_had_no_parent_tells_no_claims():
    made = session()
    assert round_scores(made, made.rounds[0]) == ()
    second = made.rounds[1]
    wrong = replace(second.attempts[0], evaluation=examples.failed(Verdict.WRONG_VALUES, "Wrong."))
    assert round_scores(made, replace(second, attempts=(wrong,))) == ()


def test_the_speedup_of_an_older_session_follows_from_its_two_estimates():
    latency = (ExpectedEffect(counter="latency_ms", direction=DOWN),)
    made = session(effects=latency, relation=Relation.ESTIMATED_FASTER, estimated_s=1e-3)
    assert scores(made) == ("predicted and not measured: `latency_ms`",)
    first = replace(made.rounds[0], comparison=replace(made.rounds[0].comparison, estimated_s=4e-3))
    older = replace(made, rounds=(first, made.rounds[1]))
    assert scores(older) == (
        "the strategy: `latency_ms` down: 4.00 ms → 1.00 ms (−75.0 %), estimated at full size, held",
    )

"""Scores of claims: expected effects of a strategy and predictions of an author, against measurements."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.history.claim_score import SPEEDUP, Score, score
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Comparison, PredictedChange, Prediction, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Direction, Strategy


def strategy_scores(
    strategy: Strategy,
    before: Evaluation | None,
    after: Evaluation | None,
    comparison: Comparison | None = None,
) -> tuple[Score, ...]:
    """Score the effects that a strategy expects; times by `comparison`, that of the two evaluations."""
    return tuple(
        score(PredictedChange(counter=effect.counter, direction=effect.direction), before, after, comparison)
        for effect in strategy.effects
    )


def prediction_scores(
    prediction: Prediction,
    before: Evaluation | None,
    after: Evaluation | None,
    comparison: Comparison | None = None,
) -> tuple[Score, ...]:
    """Score each change that an author predicted; times by `comparison`, that of the two evaluations."""
    claims = list(prediction.changes)
    if prediction.speedup is not None:
        gain = round(prediction.speedup - 1, 4)
        direction = None if gain == 0 else Direction.UP if gain > 0 else Direction.DOWN
        claims.append(PredictedChange(counter=SPEEDUP, direction=direction, change_fraction=abs(gain)))
    return tuple(score(claim, before, after, comparison) for claim in claims)


def round_scores(session: Session, item: Round) -> tuple[str, ...]:
    """Return the scores of a round's claims, a line each; empty without claims or where nothing passed."""
    after = item.evaluation
    if after is None or not after.passed:
        return ()
    parent = _parent(session, item)
    before, comparison = parent.evaluation if parent else None, _with_speedup(item.comparison, parent)
    claims = strategy_scores(item.strategy, before, after, comparison) if item.strategy and before else ()
    lines = [f"the strategy: {one.text}" for one in claims]
    prediction = _prediction(item)
    if prediction is not None:
        scores = prediction_scores(prediction, before, after, comparison)
        # A prediction that repeats the strategy's claim is scored once.
        lines += [f"its author predicted {one.text}" for one in scores if one not in claims]
        if not scores:
            lines.append(f"its author predicted: {prediction.text} (names nothing that is measured)")
    return tuple(lines)


def _parent(session: Session, item: Round) -> Round | None:
    """Return the round of the candidate that a round was compared with; None for a first round."""
    against = item.comparison.against if item.comparison else ""
    return session.round_of(against, item.number)


def _with_speedup(comparison: Comparison | None, parent: Round | None) -> Comparison | None:
    """Add the speedup of two estimates to the comparison of a session older than that field."""
    before = parent.comparison.estimated_s if parent and parent.comparison else None
    if comparison is None or comparison.speedup or not before or not comparison.estimated_s:
        return comparison
    return replace(comparison, speedup=before / comparison.estimated_s)


def _prediction(item: Round) -> Prediction | None:
    final = next((one for one in reversed(item.attempts) if one.candidate), None)
    return final.prediction if final else None

"""Scores of claims: expected effects of a strategy and predictions of an author, against measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cutegen_nb.analysis.history.claim_score import SPEEDUP, Outcome, Score, score
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Decision, PredictedChange, Prediction, Round
from cutegen_nb.core.search.comparison import Comparison
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundClaim:
    """One claim about a round: an expectation of its strategy, or a prediction of an author or a person."""

    by: str
    """``strategy``, ``author``, or the decider: ``person:ada``."""
    score: Score | None
    """The claim with its measurement; None for words that name nothing that is measured."""
    words: str = ""
    """Words of a claim without a score."""

    @property
    def text(self) -> str:
        """Format the claim with its result in one line, with whose it is."""
        if self.score is None:
            return f"{self._who}: {self.words} (names nothing that is measured)"
        return f"{self._who}{':' if self.by == STRATEGY else ''} {self.score.text}"

    @property
    def _who(self) -> str:
        if self.by == STRATEGY:
            return "the strategy"
        return "its author predicted" if self.by == AUTHOR else f"{self.by.partition(':')[2]} predicted"


STRATEGY, AUTHOR = "strategy", "author"
"""Sources of claims beside persons."""


def round_scores(session: Session, item: Round) -> tuple[str, ...]:
    """Return the scores of a round's claims, a line each; empty without claims or where nothing passed.

    One line names the counters that were claimed and not measured, as in rounds on a GPU before profiling. A
    round that changed nothing has one line.
    """
    claims = round_claims(session, item)
    if claims and _is_unchanged(item):
        return ("no change, so that no prediction is scored",)
    unmeasured = dict.fromkeys(
        claim.score.claim.counter
        for claim in claims
        if claim.score and claim.score.outcome is Outcome.NOT_MEASURED
    )
    told = [c.text for c in claims if c.score is None or c.score.outcome is not Outcome.NOT_MEASURED]
    if unmeasured:
        told.append(f"predicted and not measured: {', '.join(f'`{name}`' for name in unmeasured)}")
    return tuple(told)


def round_claims(session: Session, item: Round) -> tuple[RoundClaim, ...]:
    """Return a round's claims: the strategy's, the author's, then a person's; empty where nothing passed.

    Claims about a kernel that is the one it started from have no measurement.
    """
    after = item.evaluation
    if after is None or not after.passed:
        return ()
    parent = _parent(session, item)
    before, comparison = parent.evaluation if parent else None, _with_speedup(item.comparison, parent)
    expected = strategy_scores(item.strategy, before, after, comparison) if item.strategy and before else ()
    found = [RoundClaim(by=STRATEGY, score=one) for one in expected]
    for by, prediction in _predictions(item):
        scores = prediction_scores(prediction, before, after, comparison)
        # A prediction of the author that repeats the strategy's claim is scored once.
        found += [RoundClaim(by=by, score=one) for one in scores if by != AUTHOR or one not in expected]
        if not scores:
            found.append(RoundClaim(by=by, score=None, words=prediction.text))
    return tuple(_without_change(one) for one in found) if _is_unchanged(item) else tuple(found)


def _is_unchanged(item: Round) -> bool:
    """Return whether a round's kernel has the source of its parent, or of what it is compared with."""
    made = item.candidate
    before = (*made.parents, item.comparison.against if item.comparison else "") if made else ()
    return made is not None and made.digest in before


def _without_change(one: RoundClaim) -> RoundClaim:
    if one.score is None:
        return one
    return replace(one, score=replace(one.score, measured=None, outcome=Outcome.NO_CHANGE))


def _predictions(item: Round) -> list[tuple[str, Prediction]]:
    """Return the predictions of a round with their source: the author's, then each person's last one."""
    own = _prediction(item)
    persons = {one.by: one.prediction for one in _on_last_request(item) if one.prediction}
    return [*([(AUTHOR, own)] if own else []), *persons.items()]


def _on_last_request(item: Round) -> Sequence[Decision]:
    """Return the decisions from the request on for the strategy that was carried out.

    Those before are on requests for strategies that the author ended.
    """
    sent = [
        place
        for place, one in enumerate(item.decisions, start=1)
        if one.gate == "prompt" and one.action in {Action.APPROVE, Action.EDIT}
    ]
    ended = len(item.ended)
    return item.decisions[sent[ended - 1] :] if 0 < ended <= len(sent) else item.decisions


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

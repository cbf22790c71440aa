"""Claims against measurements: what a strategy should move, and what its author predicted."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from cutegen_nb.analysis.quantity import change, count, duration, times
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Prediction, Relation, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Direction, Strategy

LATENCY = "latency_ms"
_FIELDS = frozenset(item.name for item in fields(Counters)) | {"gmem_sectors", "gmem_bytes", "total_flops"}
_SAME_FRACTION = 0.005
"""A counter that moves less has not moved: the tail of one warp is no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One claim about one counter."""

    counter: str
    """Field of Counters, or ``latency_ms``."""
    expected: str
    """What was claimed, in words: ``down``, ``down to 25 %``."""
    before: float | None
    """Value for the parent; None where it was not measured."""
    after: float | None
    """Value for the candidate; None where it was not measured."""
    direction: Direction | None
    """The way that was claimed; None where none was."""
    held: bool | None
    """Whether it moved the claimed way; None where that was not measured, not told or not claimed."""

    @property
    def text(self) -> str:
        """The claim, the measurement and the judgement in one line."""
        if self.before is None or self.after is None:
            return f"`{self.counter}` {self.expected}: not measured"
        write = _milliseconds if self.counter == LATENCY else count
        moved = f"{write(self.before)} → {write(self.after)} ({change(self.before, self.after)})"
        unknown = "no direction was claimed" if self.direction is None else "cannot tell"
        verdict = {True: "held", False: "did not hold", None: unknown}[self.held]
        return f"`{self.counter}` {self.expected}: {moved}, {verdict}"


def _milliseconds(value: float) -> str:
    return duration(value / 1e3)


def measured(evaluation: Evaluation | None, counter: str) -> float | None:
    """Value of a counter, or of the median latency in milliseconds; None where it was not measured."""
    if evaluation is None:
        return None
    if counter == LATENCY:
        return evaluation.timing.median_ms if evaluation.timing else None
    if evaluation.profile is None or counter not in _FIELDS:
        return None
    value = getattr(evaluation.profile.counters, counter)
    return float(value) if isinstance(value, int | float) else None


def strategy_scores(
    strategy: Strategy, before: Evaluation | None, after: Evaluation | None
) -> tuple[Score, ...]:
    """Whether the counters a strategy names moved its way."""
    return tuple(
        _score(effect.counter, effect.direction, effect.direction.value, before, after)
        for effect in strategy.effects
    )


def prediction_scores(
    prediction: Prediction, before: Evaluation | None, after: Evaluation | None
) -> tuple[Score, ...]:
    """Whether what the author predicted was measured: the way first, the amount beside it."""
    found = []
    if prediction.counter:
        way = prediction.direction.value if prediction.direction else "should move"
        by = f" by {prediction.change_fraction:.0%}" if prediction.change_fraction is not None else ""
        found.append(_score(prediction.counter, prediction.direction, f"{way}{by}", before, after))
    if prediction.speedup is not None and prediction.counter != LATENCY:
        way = Direction.DOWN if prediction.speedup > 1 else Direction.UP
        said = f"speedup {times(prediction.speedup)}"
        found.append(_score(LATENCY, way, said, before, after))
    return tuple(found)


def _score(
    counter: str,
    direction: Direction | None,
    expected: str,
    before: Evaluation | None,
    after: Evaluation | None,
) -> Score:
    old, new = measured(before, counter), measured(after, counter)
    held: bool | None = None
    if old is not None and new is not None and direction is not None:
        moved = abs(new - old) > _SAME_FRACTION * max(abs(old), abs(new))
        held = moved and (new < old) == (direction is Direction.DOWN)
    return Score(counter=counter, expected=expected, before=old, after=new, direction=direction, held=held)


def _by_pairs(score: Score, relation: Relation | None) -> Score:
    """A latency's claim judged by the paired comparison: two medians differ by chance as well."""
    if score.counter != LATENCY or score.held is None:
        return score
    wanted = Relation.FASTER if score.direction is Direction.DOWN else Relation.SLOWER
    told = relation in {Relation.FASTER, Relation.SLOWER}
    return replace(score, held=relation is wanted if told else None)


def round_scores(session: Session, item: Round) -> tuple[str, ...]:
    """What came of the claims of a round, a line each; empty where nothing was claimed or nothing passed."""
    after = item.evaluation
    if after is None or not after.passed:
        return ()
    before = _parent_evaluation(session, item)
    relation = item.comparison.relation if item.comparison else None
    claims = strategy_scores(item.strategy, before, after) if item.strategy and before else ()
    claims = tuple(_by_pairs(one, relation) for one in claims)
    lines = [f"the strategy: {one.text}" for one in claims]
    prediction = _prediction(item)
    if prediction is not None:
        scores = tuple(_by_pairs(one, relation) for one in prediction_scores(prediction, before, after))
        # An author that only repeats what it was asked for is scored once.
        lines += [f"its author predicted {one.text}" for one in scores if one not in claims]
        if not scores:
            lines.append(f"its author predicted: {prediction.text} (names nothing that is measured)")
    return tuple(lines)


def _parent_evaluation(session: Session, item: Round) -> Evaluation | None:
    """What was found of the candidate that a round was compared with; None for a first one."""
    against = item.comparison.against if item.comparison else ""
    if not against:
        return None
    earlier = (r for r in reversed(session.rounds) if r.number < item.number)
    return next((r.evaluation for r in earlier if r.candidate and r.candidate.digest == against), None)


def _prediction(item: Round) -> Prediction | None:
    final = next((one for one in reversed(item.attempts) if one.candidate), None)
    return final.prediction if final else None

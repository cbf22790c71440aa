"""Ledgers of a session: predictions beside their measurements, a person's words beside what came of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.figures.quantity import times
from cutegen_nb.analysis.history.claim_score import Outcome, Score
from cutegen_nb.analysis.history.prediction import STRATEGY, RoundClaim, round_claims
from cutegen_nb.analysis.history.summary import decision_word, row, who
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.session import Session

_WORDS = frozenset({Action.STEER, Action.REJECT, Action.OVERRULE, Action.BRANCH})
"""Actions whose words are followed to what came of them."""
_RIGHT = frozenset({Outcome.HELD, Outcome.SIZE_OFF})
"""Outcomes in which the direction was right."""
_DECIDED = _RIGHT | {Outcome.DID_NOT_HOLD}
"""Outcomes that count for or against a predictor."""
_CLOSED = _DECIDED | {Outcome.NO_CHANGE}
"""Outcomes after which no measurement could decide more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerClaim:
    """One claim with the round that it is about."""

    number: int
    """Number of the round."""
    claim: RoundClaim
    """The claim with its measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Record of one predictor over a session."""

    by: str
    """``strategy``, ``author`` or ``person:ada``."""
    held: int
    """Claims that held, in direction and in size where one was claimed."""
    size_off: int
    """Claims with the right direction and a wrong size."""
    missed: int
    """Claims that did not hold."""
    open: int
    """Claims that no measurement decides."""
    ratio: float | None
    """Geometric mean of measured ÷ predicted change, over the claims with a size whose direction was right;
    above 1 the changes were larger than predicted. None without such claims."""

    @property
    def text(self) -> str:
        """Format the record in a sentence."""
        decided = self.held + self.size_off + self.missed
        said = f"{self.held} of {decided} held" if decided else "none decided yet"
        parts = [said]
        if self.size_off:
            parts.append(f"{self.size_off} right in direction only")
        if self.open:
            parts.append(f"{self.open} undecided")
        if self.ratio is not None:
            parts.append(f"changes came out {times(self.ratio)} as large as predicted")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerWords:
    """Words of a person at a gate, and the round that they led to."""

    number: int
    """Number of the round at whose gate they were said."""
    decision: Decision
    """The decision with its words."""
    led_to: int | None
    """Number of the round that was asked for with them; None while there is none."""
    became: str
    """Strategy, verdict, comparison and decision of that round in a sentence; empty while there is none."""
    is_better: bool
    """True if that round was better than the best before it; False where there was none."""
    is_first: bool = False
    """True if no kernel had passed before that round, so that it could not be better than any."""


def claims(session: Session) -> tuple[LedgerClaim, ...]:
    """Return every claim of a session, in the order of its rounds."""
    return tuple(
        LedgerClaim(number=item.number, claim=claim)
        for item in session.rounds
        for claim in round_claims(session, item)
    )


def calibrations(found: Sequence[LedgerClaim]) -> tuple[Calibration, ...]:
    """Return how often each predictor was right: persons and authors first, then the strategies."""
    by = {one.claim.by: None for one in found}
    order = sorted(by, key=lambda name: name == STRATEGY)
    return tuple(_calibration(name, [one.claim for one in found if one.claim.by == name]) for name in order)


def _calibration(by: str, found: Sequence[RoundClaim]) -> Calibration:
    scores = [one.score for one in found if one.score]
    outcomes = [one.outcome for one in scores]
    return Calibration(
        by=by,
        held=outcomes.count(Outcome.HELD),
        size_off=outcomes.count(Outcome.SIZE_OFF),
        missed=outcomes.count(Outcome.DID_NOT_HOLD),
        open=len(found) - sum(one in _CLOSED for one in outcomes),
        ratio=_size_ratio(scores),
    )


def _size_ratio(scores: Sequence[Score]) -> float | None:
    """Return the geometric mean of measured ÷ predicted change; a mean of ratios would favour large ones."""
    logs = [
        math.log(abs(one.measured.change_fraction) / one.claim.change_fraction)
        for one in scores
        if one.outcome in _RIGHT
        and one.claim.change_fraction
        and one.measured
        # A change from 0 is infinite and says nothing of a size.
        and 0 < abs(one.measured.change_fraction) < math.inf
    ]
    return math.exp(sum(logs) / len(logs)) if logs else None


def said(session: Session) -> tuple[LedgerWords, ...]:
    """Return the words of persons at the gates of prompts and revisions, in order, with what they led to."""
    return tuple(
        _followed(session, item, made)
        for item in session.rounds
        for made in item.decisions
        if made.action in _WORDS and made.reason.strip() and made.by.startswith("person:")
    )


def _followed(session: Session, item: Round, made: Decision) -> LedgerWords:
    """Follow words to their round: the request's own at the prompt gate, else the next one."""
    number = item.number if made.gate == "prompt" or made.action is Action.OVERRULE else item.number + 1
    led_to = session.rounds[number] if number < len(session.rounds) else None
    return LedgerWords(
        number=item.number,
        decision=made,
        led_to=number if led_to else None,
        became=_became(session, led_to) if led_to else "",
        is_better=bool(
            led_to
            and led_to.comparison
            and led_to.comparison.relation.is_better
            and led_to.comparison.relation is not Relation.FIRST
        ),
        is_first=bool(led_to) and _is_first(session, number),
    )


def _is_first(session: Session, number: int) -> bool:
    """Return whether a round had nothing to be compared with: no earlier kernel passed."""
    found = session.rounds[number].comparison
    if found is not None:
        return found.relation is Relation.FIRST
    return all(item.comparison is None for item in session.rounds[:number])


def _became(session: Session, item: Round) -> str:
    found = row(session, item)
    decided = f"{found.decision} by {who(found.decided_by)}" if found.decision else "not decided yet"
    parts = [found.strategy or "first kernel", found.verdict_words, found.relation_words, decided]
    return ", ".join(part for part in parts if part)


def deed(made: Decision) -> str:
    """Return what a person did in a word: ``steered``, ``rejected``; ``commented`` for words on lines."""
    is_comment = made.action is Action.STEER and _is_comment(made.reason)
    return "commented" if is_comment else decision_word(made)


def without_quote(words: str) -> str:
    """Return a person's words without the lines of code that a comment quotes above them."""
    if not _is_comment(words):
        return words
    place, *more = words.splitlines()
    return " ".join([place, *itertools.dropwhile(lambda line: line.startswith("    "), more)])


def _is_comment(words: str) -> bool:
    return words.startswith(("On line ", "On lines "))

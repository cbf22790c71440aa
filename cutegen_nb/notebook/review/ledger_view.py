"""Ledgers of a session for the panel: predictions, and a person's words."""

from __future__ import annotations

from cutegen_nb.analysis.history.claim_score import Outcome
from cutegen_nb.analysis.history.ledger import (
    Calibration,
    LedgerClaim,
    LedgerWords,
    calibrations,
    claims,
    deed,
    said,
)
from cutegen_nb.analysis.history.prediction import STRATEGY, round_claims
from cutegen_nb.analysis.tables.ledgers import predictor
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.report.markup import visible

_KIND = {Outcome.HELD: "good", Outcome.DID_NOT_HOLD: "bad"}
"""Kind of badge by outcome; neutral for any other."""
_SHOWN = 200
"""Rows of each ledger at most, the newest."""


def ledger_view(session: Session | None) -> dict[str, object]:
    """Return both ledgers; empty while there is nothing in them."""
    if session is None:
        return {}
    found, words = claims(session), said(session)
    if not found and not words:
        return {}
    records = calibrations(found)
    return {
        "title": visible(_title(records, words)),
        "claims": [_claim(session, one) for one in found[-_SHOWN:]],
        "records": [visible(f"{predictor(session, one.by)}: {one.text}.") for one in records],
        "words": [_words(one) for one in words[-_SHOWN:]],
    }


def claims_view(session: Session, item: Round) -> list[dict[str, object]]:
    """Return the claims about one round, to stand beside its rationale."""
    return [
        _claim(session, LedgerClaim(number=item.number, claim=one)) for one in round_claims(session, item)
    ]


def _title(records: tuple[Calibration, ...], words: tuple[LedgerWords, ...]) -> str:
    """Return a line that says what the ledgers hold."""
    held = sum(one.held for one in records)
    decided = sum(one.held + one.size_off + one.missed for one in records)
    parts = [f"{held} of {decided} predictions held"] if decided else []
    if followed := [one for one in words if one.led_to is not None and not one.is_first]:
        better = sum(one.is_better for one in followed)
        parts.append(f"{better} of {len(followed)} times your words led to something better")
    return f"Ledger: {'; '.join(parts)}" if parts else "Ledger"


def _claim(session: Session, one: LedgerClaim) -> dict[str, object]:
    score = one.claim.score
    is_strategy = one.claim.by == STRATEGY
    return {
        "round": one.number,
        "by": "its strategy" if is_strategy else visible(predictor(session, one.claim.by)),
        "said": visible(score.said if score else one.claim.words),
        "came": visible(score.came if score else "names nothing that is measured"),
        "outcome": score.outcome.words if score else "",
        "kind": _KIND.get(score.outcome, "neutral") if score else "neutral",
    }


def _words(one: LedgerWords) -> dict[str, object]:
    return {
        "round": one.number,
        "did": deed(one.decision),
        "words": visible(one.decision.reason),
        "led_to": -1 if one.led_to is None else one.led_to,
        "became": visible(one.became) or "the next round shows it",
        "kind": "good" if one.is_better else "neutral",
    }

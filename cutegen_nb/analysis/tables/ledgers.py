"""Ledgers of a session as tables: predictions beside their measurements, and a person's words."""

from __future__ import annotations

from cutegen_nb.analysis.history.ledger import LedgerClaim, LedgerWords, calibrations, claims, deed, said
from cutegen_nb.analysis.history.prediction import AUTHOR, STRATEGY
from cutegen_nb.analysis.history.summary import who
from cutegen_nb.analysis.tables.counts import CountTable
from cutegen_nb.core.session import Session


def ledger_tables(session: Session) -> tuple[CountTable, ...]:
    """Return both ledgers; without the one that has no rows."""
    found, words = claims(session), said(session)
    records = " ".join(f"{predictor(session, one.by)}: {one.text}." for one in calibrations(found))
    tables = (
        _table(
            "Predictions and what came",
            ("Round", "Of", "Predicted", "Came", "Result"),
            tuple(_claim(session, one) for one in found),
            records,
        ),
        _table(
            "What a person's words led to",
            ("Round", "By", "Words", "Led to"),
            tuple(_words(one) for one in words),
        ),
    )
    return tuple(table for table in tables if table.rows)


def predictor(session: Session, by: str) -> str:
    """Return whose claims they are in words: the session's author, a person, or the strategies."""
    if by == STRATEGY:
        return "strategies"
    return session.author if by == AUTHOR else who(by)


def _table(
    title: str, names: tuple[str, ...], rows: tuple[tuple[str, ...], ...], note: str = ""
) -> CountTable:
    return CountTable(title=title, columns=tuple((name, False) for name in names), rows=rows, note=note)


def _claim(session: Session, one: LedgerClaim) -> tuple[str, ...]:
    score = one.claim.score
    cells = (
        (score.said.replace("`", ""), score.came, score.outcome.words)
        if score
        else (one.claim.words, "names nothing that is measured", "")
    )
    return (f"r{one.number}", predictor(session, one.claim.by), *cells)


def _words(one: LedgerWords) -> tuple[str, ...]:
    led_to = f"r{one.led_to}: {one.became}" if one.led_to is not None else "no further round"
    return (
        f"r{one.number}",
        f"{deed(one.decision)} by {who(one.decision.by)}",
        one.decision.reason,
        led_to,
    )

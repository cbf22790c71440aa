"""Base revision: the one that a round's source and figures are compared with in the panel."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.history.summary import parent_round, revision
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

PARENT = -1
"""Number that stands for each round's own parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Part of a round that a person looks at."""

    version: int | None = None
    """Index of the attempt whose candidate is shown; None for the last one."""
    pinned: int | None = None
    """Number of the round that it is compared with; None for its parent."""


WHOLE = Look()
"""The last version of a round beside its parent."""


def base_round(session: Session, item: Round, pinned: int | None) -> Round | None:
    """Return the round that `item` is compared with: the pinned one, else its parent.

    A round is not compared with itself, nor with one that has no source. None for a first kernel.
    """
    chosen = pinned_round(session, pinned)
    return chosen if chosen is not None and chosen.number != item.number else parent_round(session, item)


def pinned_round(session: Session, pinned: int | None) -> Round | None:
    """Return the pinned round; None where none is pinned, or it has no source."""
    if pinned is None or not 0 <= pinned < len(session.rounds):
        return None
    found = session.rounds[pinned]
    return found if found.candidate else None


def base_view(session: Session, item: Round, pinned: int | None) -> dict[str, object]:
    """Return the base for the panel: the pinned number, its name, and a note on a round pinned itself."""
    chosen, base = pinned_round(session, pinned), base_round(session, item, pinned)
    is_itself = chosen is not None and chosen.number == item.number
    return {
        "pinned": PARENT if chosen is None else chosen.number,
        "name": revision(base) if base else "",
        "note": f"{revision(item)} itself is the base: it is compared with its parent" if is_itself else "",
    }

"""Base revision: the one that a round's source and figures are compared with in the panel."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.analysis.history.summary import parent_round, revision
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session

PARENT = -1
"""Number that stands for each round's own parent."""
NO_VERSION = -1
"""Index that stands for no version of a round's own kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionBase:
    """Version of a round's kernel that the round's other versions are compared with."""

    round: int
    """Number of the round."""
    attempt: int
    """Index of the attempt that gave the version."""
    otherwise: int | None
    """Number of the round that all other rounds are compared with; None for each one's parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Part of a round that a person looks at."""

    version: int | None = None
    """Index of the attempt whose candidate is shown; None for the last one."""
    pinned: int | VersionBase | None = None
    """Number of the round that it is compared with, or a version of its own kernel; None for its parent."""


WHOLE = Look()
"""The last version of a round beside its parent."""


def versions_of(item: Round) -> list[int]:
    """Return the indices of the attempts that gave a candidate; of equal candidates the first one's.

    So a version that was restored keeps its place.
    """
    first: dict[str, int] = {}
    for index, attempt in enumerate(item.attempts):
        if attempt.candidate:
            first.setdefault(attempt.candidate.digest, index)
    return list(first.values())


def current_version(item: Round) -> int | None:
    """Return the index of the version that is the round's candidate; None for a round without one."""
    made = item.candidate
    return next((at for at in versions_of(item) if made and _digest(item, at) == made.digest), None)


def at_version(item: Round, version: int | None) -> Round:
    """Return a round as it was with an older version of its kernel; unchanged for its last one and None."""
    if version is None or version not in versions_of(item) or version == current_version(item):
        return item
    digest = _digest(item, version)
    last = max(index for index in range(len(item.attempts)) if _digest(item, index) == digest)
    return replace(item, attempts=item.attempts[: last + 1], comparison=None)


def _digest(item: Round, index: int) -> str:
    """Digest of the candidate of an attempt; empty where it gave none."""
    made = item.attempts[index].candidate
    return made.digest if made else ""


def base_of(
    session: Session, item: Round, shown: int | None, pinned: int | VersionBase | None
) -> tuple[Round | None, str]:
    """Return what version `shown` of a round is compared with, and its name.

    That is the pinned version of its own kernel, else the pinned round, else its parent; None for a first
    kernel. A version is not compared with itself, nor with a round that has no source.
    """
    if _is_version(item, shown, pinned):
        assert isinstance(pinned, VersionBase)
        number = versions_of(item).index(pinned.attempt) + 1
        return at_version(item, pinned.attempt), f"version {number} of {revision(item)}"
    chosen = pinned_round(session, pinned)
    found = (
        chosen if chosen and chosen.number != item.number else parent_round(session, at_version(item, shown))
    )
    return found, revision(found) if found else ""


def _is_version(item: Round, shown: int | None, pinned: int | VersionBase | None) -> bool:
    """Return whether `pinned` is a version of this round's kernel, and not the one that is shown."""
    if not isinstance(pinned, VersionBase) or pinned.round != item.number:
        return False
    made = versions_of(item)
    return pinned.attempt in made and pinned.attempt != (shown if shown in made else current_version(item))


def pinned_round(session: Session, pinned: int | VersionBase | None) -> Round | None:
    """Return the pinned round; None where none is pinned, or it has no source."""
    number = pinned.otherwise if isinstance(pinned, VersionBase) else pinned
    if number is None or not 0 <= number < len(session.rounds):
        return None
    found = session.rounds[number]
    return found if found.candidate else None


def base_view(
    session: Session, item: Round, shown: int | None, pinned: int | VersionBase | None
) -> dict[str, object]:
    """Return the base for the panel: the pinned number or version, the parent, and a note on the choice."""
    chosen, parent = pinned_round(session, pinned), parent_round(session, at_version(item, shown))
    is_version = _is_version(item, shown, pinned)
    is_itself = chosen is not None and chosen.number == item.number and not is_version
    return {
        "pinned": PARENT if chosen is None else chosen.number,
        "version": pinned.attempt if isinstance(pinned, VersionBase) and is_version else NO_VERSION,
        "parent": revision(parent) if parent else "",
        "note": f"{revision(item)} itself is the base: it is compared with its parent" if is_itself else "",
    }

"""Ancestors of a candidate, and the steps of the ladder that its strategies stand for."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

PERSON = "person:"
"""Beginning of the author's name of a candidate that a person wrote."""


def lineage(parent: Candidate | None, session: Session) -> tuple[str, ...]:
    """Names of the steps applied from the first candidate to `parent`, oldest first.

    A strategy that combines others counts as those. A person's edit repeats the strategy of the kernel that
    it changes and is left out.
    """
    found: list[str] = []
    for item in ancestors(parent, session):
        if item.strategy is not None and not item.author.startswith(PERSON):
            combines = bool(item.strategy.parents)
            steps = steps_of(item.strategy, session)
            found += [name for name in steps if not combines or name not in found]
    return tuple(found)


def steps_of(strategy: Strategy, session: Session) -> tuple[str, ...]:
    """Names of the steps that a strategy stands for: its own, or those of the strategies that it combines."""
    known = {
        made.identity: made
        for item in session.rounds
        for attempt in item.attempts
        for made in (attempt.prompt.strategy, attempt.candidate.strategy if attempt.candidate else None)
        if made is not None
    }
    return tuple(dict.fromkeys(_steps(strategy, known, frozenset())))


def _steps(strategy: Strategy, known: Mapping[str, Strategy], above: frozenset[str]) -> list[str]:
    if not strategy.parents:
        return [strategy.name]
    within = above | {strategy.identity}
    steps: list[str] = []
    for identity in strategy.parents:
        combined = known.get(identity)
        if combined is None:
            # A strategy of the ladder that was not tried alone: its identity is its name.
            steps.append(identity)
        elif identity not in within:
            steps += _steps(combined, known, within)
    return steps


def words_before(parent: Candidate | None, session: Session) -> tuple[str, ...]:
    """A person's words that led to `parent` and its ancestors, oldest first."""
    asked = {
        attempt.candidate.digest: attempt.prompt.steering
        for item in session.rounds
        for attempt in item.attempts
        if attempt.candidate is not None
    }
    return tuple(words for item in ancestors(parent, session) if (words := asked.get(item.digest, "")))


def ancestors(parent: Candidate | None, session: Session) -> tuple[Candidate, ...]:
    """List the candidates from the first one to `parent`, oldest first."""
    known = {
        attempt.candidate.digest: attempt.candidate
        for item in session.rounds
        for attempt in item.attempts
        if attempt.candidate is not None
    }
    found: list[Candidate] = []
    while parent is not None and parent not in found:
        found.append(parent)
        # Of several parents the first known one counts.
        parent = next((known[digest] for digest in parent.parents if digest in known), None)
    return tuple(reversed(found))

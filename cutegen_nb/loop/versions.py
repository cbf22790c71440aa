"""Versions of a round's kernel: the candidates of its attempts, to which a person may go back."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.core.round import Attempt, Prompt


def earlier_version(attempts: Sequence[Attempt], source: str) -> Attempt | None:
    """Return an earlier version of this round's kernel as an attempt of its own; None for a new source.

    It keeps its author and its evaluation: going back to a version needs no second run.
    """
    found = next((a for a in attempts if a.evaluation and a.candidate and a.candidate.source == source), None)
    if found is None or found.candidate is None:
        return None
    prompt = Prompt(
        system="",
        user="",
        digest="",
        purpose="restore",
        strategy=found.candidate.strategy,
        parent=found.prompt.parent,
    )
    return Attempt(
        purpose="restore", prompt=prompt, reply=None, candidate=found.candidate, evaluation=found.evaluation
    )

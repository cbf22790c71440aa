"""Author of a slot of a population that is given the whole session instead of the slot's own."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Author, Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy


class AuthorOfWhole:
    """Author that sees the whole session so far, so that it counts the rounds as a person does."""

    def __init__(self, author: Author, whole: Callable[[], Session]) -> None:
        self.name = author.name
        self._author = author
        self._whole = whole

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """List the author's strategies."""
        return self._author.menu(facts, library)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:  # noqa: ARG002 - the port's
        """Answer at the place of the whole session."""
        return await self._author.write(prompt, self._whole(), progress)

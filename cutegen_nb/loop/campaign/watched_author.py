"""Author that remembers why its last request failed."""

from __future__ import annotations

from cutegen_nb.core.errors import AuthorError, Declined
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Author, Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy


class WatchedAuthor:
    """Author that remembers the failure of its last request."""

    def __init__(self, author: Author) -> None:
        self.name = author.name
        self.failure: AuthorError | None = None
        """Error of the last request; None after a reply."""
        self._author = author

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """Return the author's menu. Raises Declined."""
        try:
            return self._author.menu(facts, library)
        except Declined as error:
            self.failure = error
            raise

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Return the author's reply. Raises AuthorError."""
        self.failure = None
        try:
            return await self._author.write(prompt, session, progress)
        except AuthorError as error:
            self.failure = error
            raise

"""What one family of kernels must offer to plug into the offline author."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One candidate, before it is wrapped into a reply."""

    source: str
    """The whole Python file in ``ModelNew`` form."""
    rationale: str
    """One short paragraph: what the kernel does now and why this step should help."""


class Writer(Protocol):
    """One family of kernels, planned from the graph alone; every answer depends on its arguments only."""

    def accepts(self, facts: ProblemFacts) -> bool:
        """Whether the graph belongs to this family. The first writer that accepts a problem keeps it."""
        ...

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """Strategies it can carry out, in the order to try them.

        Raises Declined, with one sentence naming the operation, when it can write nothing.
        """
        ...

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> Written:
        """Write the simplest kernel with the strategies named in `applied` carried out, oldest first.

        The file must be right at the full and at the scaled size: shapes are read at run time.
        Raises Declined for a strategy it does not know.
        """
        ...

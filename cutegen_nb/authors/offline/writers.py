"""Protocol of a kernel writer: one family of kernels in the offline author."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenKernel:
    """Source of one candidate, before it becomes a reply."""

    source: str
    """Whole Python file in ``ModelNew`` form."""
    rationale: str
    """Short paragraph on what the kernel does and why this step should help."""


class Writer(Protocol):
    """Writer of one family of kernels, planned from the graph alone; its methods are pure functions."""

    def accepts(self, facts: ProblemFacts, library: Library = ()) -> bool:
        """Return whether the graph belongs to this family; the first writer to accept a problem keeps it."""
        ...

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """List the strategies that the writer can apply, in the order to try them.

        Raises Declined, with one sentence naming the operation, when no kernel can be written.
        """
        ...

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the simplest kernel with the strategies in `applied` carried out, oldest first.

        The file must be right at the full and at the scaled size: shapes are read at run time. Raises
        Declined for an unknown strategy.
        """
        ...

"""Command: its name, its summary and its arguments at a terminal and in a notebook."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.app.arguments import Argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Command of the product."""

    name: str
    """Word that a person types."""
    summary: str
    """Sentence for the list of commands."""
    example: str = ""
    """Valid command line, or a line magic where only the notebook has the command."""
    arguments: tuple[Argument, ...] | None = None
    """Arguments of ``cutegen-nb NAME``; None if the command line has no such command."""
    magic: tuple[Argument, ...] | None = None
    """Arguments of ``%cutegen NAME``; None if the notebook has no such magic."""
    words: str = ""
    """Help of the free text that a magic takes after its options; empty if it takes none."""
    everyday: bool = False
    """True for the commands that ``cutegen-nb --help`` lists; the others are listed by ``cutegen-nb dev``."""

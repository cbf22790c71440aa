"""Outcome of a command: exit status and text for standard output."""

from __future__ import annotations

from dataclasses import dataclass

PASSED, NONE_PASSED, FAULT = 0, 1, 2
"""Exit statuses: a kernel passed, none did, or the input cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Exit status and output of a command."""

    status: int
    """Exit status."""
    text: str
    """Text for standard output; empty for none."""

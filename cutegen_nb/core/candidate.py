"""A candidate: one immutable kernel source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cutegen_nb.core.strategy import Strategy

FILE_NAME = "candidate.py"
"""File name that a candidate runs under; profiles, findings and tracebacks show this name."""


def source_digest(source: str) -> str:
    """SHA-256 of a source text, hexadecimal."""
    return hashlib.sha256(source.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file in KernelBench's ``ModelNew`` form for CuTe DSL."""

    source: str
    """The whole Python file."""
    author: str
    """Author of the source: ``offline``, ``openai:MODEL``, ``manual``, ``person``, ``replay``."""
    parents: tuple[str, ...] = ()
    """Digests of the parent candidates; several for a crossover, none for a first candidate."""
    strategy: Strategy | None = None
    """The optimisation it was asked to carry out."""
    rationale: str = ""
    """The author's explanation of the change."""
    prompt_digest: str = ""
    """SHA-256 of the prompt that asked for the candidate; empty without a prompt."""
    digest: str = field(init=False)
    """SHA-256 of `source`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", source_digest(self.source))

"""A candidate: one immutable kernel source."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from cutegen_nb.core.strategy import Strategy

FILE_NAME = "candidate.py"
"""The file that a candidate runs as; profiles, findings and tracebacks name it so."""


def source_digest(source: str) -> str:
    """SHA-256 of a source text, hexadecimal."""
    return hashlib.sha256(source.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file in KernelBench's ``ModelNew`` form for CuTe DSL."""

    source: str
    """The whole Python file."""
    author: str
    """Who wrote it: ``offline``, ``openai:MODEL``, ``manual``, ``person``, ``replay``."""
    parents: tuple[str, ...] = ()
    """Digests of the candidates it was made from; several for a crossover, none for a first one."""
    strategy: Strategy | None = None
    """The optimisation it was asked to carry out."""
    rationale: str = ""
    """The author's words on what was done."""
    prompt_digest: str = ""
    """SHA-256 of the prompt that asked for it; empty when nobody was asked."""
    digest: str = field(init=False)
    """SHA-256 of `source`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", source_digest(self.source))

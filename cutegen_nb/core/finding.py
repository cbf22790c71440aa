"""Findings about a candidate, and the evidence behind an accusation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Weight of a finding: it decides the verdict, or only informs."""

    DECIDES = "decides"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fact that a person can check, with its place in the source."""

    kind: str
    """Short name: ``out-of-bounds``, ``torch-compute``, ``wrong-values`` …"""
    message: str
    """One or two sentences with the values seen."""
    severity: Severity = Severity.DECIDES
    """Weight of the finding: it decides the verdict, or only informs."""
    file: str = ""
    """Path of the source file, as the compiler saw it; empty where there is none."""
    line: int = 0
    """Line of the source, from 1; 0 where there is none."""
    column: int = 0
    """Column, from 1; 0 where there is none."""
    thread: tuple[int, int, int] | None = None
    """threadIdx of the first thread concerned."""
    cta: tuple[int, int, int] | None = None
    """blockIdx of that thread."""


ACCUSING = frozenset({
    "global-setting", "harness-import", "inline-code", "inside-python", "l2-policy", "left-processes",
    "modes-off", "opens-socket", "outside-effect", "patched", "persisting-l2", "reaches-inside",
    "reaches-threads", "reference-import", "runs-text", "starts-processes", "stream-left", "writes-files",
})  # fmt: skip
"""Kinds of flags for code that reaches into or out of the process, or past the clock. They decide no verdict,
but only a person may approve a candidate that carries one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """Evidence for an accusation, as observed facts that a person can judge."""

    kind: str
    """Kind of the finding that the evidence supports."""
    statement: str
    """Observation, in a sentence or two."""
    inputs: tuple[str, ...] = ()
    """Excerpts of the inputs."""
    outputs: tuple[str, ...] = ()
    """Excerpts of the candidate's outputs."""
    expected: tuple[str, ...] = ()
    """Excerpts of the reference's outputs for the same inputs."""
    trace: tuple[str, ...] = ()
    """Events in order: launches, operations of PyTorch, replaced functions."""
    addresses: tuple[str, ...] = ()
    """Memory concerned, by name, address and size."""
    lines: tuple[int, int] | None = None
    """First and last line of the candidate's source concerned."""

"""What checks find in a launch that goes on: the first of each kind and line, a bounded number of them.

Some checks can only doubt.  A read of memory that was never written is no fault while nothing depends on the
value, and two CTAs may store to one place without anybody reading it.  Such findings are kept apart as doubts
until the launch has been run again under other circumstances (``rerun``): where results differ they decide,
and where nothing differs they are dropped.
"""

from __future__ import annotations

import dataclasses

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.simulator.ptx_model import Instruction

_MOST = 32
"""Findings of one launch at most; the first ones matter."""

RACE = "race"
UNINITIALISED = "uninitialised-read"
ASYNC_HAZARD = "async-hazard"
DIVERGENT_BARRIER = "divergent-barrier"
CTA_ORDER = "cta-order"
"""Kinds."""


class Findings:
    """Findings and doubts of one launch."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], Finding] = {}
        self._doubts: dict[tuple[str, str, int], Finding] = {}
        self._seen: set[tuple[str, int]] = set()

    def seen(self, kind: str, instruction: Instruction) -> bool:
        """Whether this instruction has a finding of the kind already, so that nobody need look again."""
        return (kind, id(instruction)) in self._seen

    def add(  # noqa: PLR0913 - the parts of a finding
        self,
        kind: str,
        message: str,
        instruction: Instruction,
        *,
        severity: Severity = Severity.DECIDES,
        thread: tuple[int, int, int] | None = None,
        cta: tuple[int, int, int] | None = None,
        doubt: bool = False,
    ) -> None:
        """Keep a finding, unless its kind and line have one; a doubt waits for :meth:`settle`."""
        self._seen.add((kind, id(instruction)))
        key = (kind, instruction.file, instruction.line)
        if key in self._found or key in self._doubts or len(self._found) + len(self._doubts) >= _MOST:
            return
        finding = Finding(
            kind=kind, message=message, severity=severity, file=instruction.file, line=instruction.line,
            column=instruction.column, thread=thread, cta=cta,
        )  # fmt: skip
        (self._doubts if doubt else self._found)[key] = finding

    def doubts(self, kind: str) -> bool:
        """Whether findings of the kind wait for proof."""
        return any(key[0] == kind for key in self._doubts)

    def settle(self, kind: str, *, matters: bool | None, why: str) -> None:
        """End the doubts of a kind: they decide, are dropped, or stay as flags where None is known."""
        for key in [key for key in self._doubts if key[0] == kind]:
            doubt = self._doubts.pop(key)
            if matters is False:
                continue
            self._found[key] = dataclasses.replace(
                doubt,
                message=f"{doubt.message} {why}",
                severity=Severity.DECIDES if matters else Severity.FLAG,
            )

    def all(self) -> tuple[Finding, ...]:
        """Everything found, what decides first."""
        found = [*self._found.values(), *self._doubts.values()]
        return tuple(sorted(found, key=lambda one: one.severity is not Severity.DECIDES))


def joined(earlier: tuple[Finding, ...], later: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings of several launches: the first of each kind and line, one that decides before a flag."""
    kept: dict[tuple[str, str, int], Finding] = {}
    for one in (*earlier, *later):
        key = (one.kind, one.file, one.line) if one.line else (one.kind, one.message, 0)
        before = kept.get(key)
        if before is None or (before.severity is Severity.FLAG and one.severity is Severity.DECIDES):
            kept[key] = one
    return tuple(kept.values())[:_MOST]

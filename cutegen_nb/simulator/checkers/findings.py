"""Findings and doubts of one launch: the first of each kind and line, a bounded number of them.

A doubt is a finding that needs proof. A read of memory that was never written is harmless if no result
depends on the value; so are stores of two CTAs to one place that nobody reads. Doubts are kept apart until
the launch has been run again under other circumstances (:mod:`~cutegen_nb.simulator.machine.rerun`). If the
results differ, the doubts decide; if not, they are dropped.
"""

from __future__ import annotations

import dataclasses

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.simulator.ptx.model import Instruction

_MOST = 32
"""Most findings of one launch; later ones are dropped."""

RACE = "race"
"""Kind: accesses of two warps to shared memory, one of them a write, with no order between them."""
UNINITIALISED = "uninitialised-read"
"""Kind: a read of memory that was never written."""
ASYNC_HAZARD = "async-hazard"
"""Kind: an access to the destination of a ``cp.async`` that has not arrived."""
UNFENCED = "missing-proxy-fence"
"""Kind: shared memory that a thread stored and the asynchronous proxy reads, with no fence between them."""
DIVERGENT_BARRIER = "divergent-barrier"
"""Kind: a CTA barrier that only some threads pass, or that threads pass at different places."""
CTA_ORDER = "cta-order"
"""Kind: global memory whose contents may depend on the order in which CTAs run."""
TENSOR_MEMORY_KEPT = "tensor-memory-kept"
"""Kind: tensor memory that is still allocated when its CTA ends."""


class Findings:
    """Collection of the findings and doubts of one launch."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], Finding] = {}
        self._doubts: dict[tuple[str, str, int], Finding] = {}
        self._seen: set[tuple[str, int]] = set()

    def seen(self, kind: str, instruction: Instruction) -> bool:
        """Return whether the instruction has a finding of the kind already, so that a check can stop."""
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
        """Add a finding, unless its kind and line have one already; a doubt waits for :meth:`settle`."""
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
        """Return whether there are doubts of the kind."""
        return any(key[0] == kind for key in self._doubts)

    def settle(self, kind: str, *, matters: bool | None, why: str) -> None:
        """Settle the doubts of a kind by the result of a second run.

        Args:
            kind: kind of the doubts.
            matters: True makes them findings that decide, False drops them, None (unknown) makes them flags.
            why: sentence added to their messages.
        """
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
        """All findings and open doubts, those that decide first."""
        found = [*self._found.values(), *self._doubts.values()]
        return tuple(sorted(found, key=lambda one: one.severity is not Severity.DECIDES))


def joined(earlier: tuple[Finding, ...], later: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Merge the findings of several launches.

    The first of each kind and line is kept; a finding that decides replaces a flag. Findings without a line
    are told apart by their message. At most as many are kept as of one launch.
    """
    kept: dict[tuple[str, str, int], Finding] = {}
    for one in (*earlier, *later):
        key = (one.kind, one.file, one.line) if one.line else (one.kind, one.message, 0)
        before = kept.get(key)
        if before is None or (before.severity is Severity.FLAG and one.severity is Severity.DECIDES):
            kept[key] = one
    return tuple(kept.values())[:_MOST]

"""Messages of findings in shared memory: races, copies still under way, uninitialised reads."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.finding import Severity
from cutegen_nb.simulator.checkers.findings import ASYNC_HAZARD, RACE, UNFENCED, UNINITIALISED, Findings
from cutegen_nb.simulator.checkers.shared_entries import Entries, SharedAccess
from cutegen_nb.simulator.ptx.faults import place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch

_WAIT_FOR_GROUP = (
    "Wait for it first (cute.arch.cp_async_wait_group), then put a barrier before other threads use it."
)
_WAIT_FOR_TMA = (
    "Wait for it first (at its mbarrier, cute.arch.mbarrier_wait), then put a barrier before other threads "
    "use it. If the threads did wait, it is the next copy to this place: ask for it only when all have used "
    "the one before."
)


@dataclass(frozen=True, slots=True)
class SharedFindingReporter:
    """Reporter of the findings of one access; a ``position`` in its entries gives the thread and the cell."""

    lanes: Batch
    """Batch that makes the access."""
    access: SharedAccess
    """Access that is reported."""
    each: Entries
    """Entries of the access."""
    cell: int
    """Bytes of a cell."""
    findings: Findings
    """Collection that receives the findings."""

    def race(self, position: int, who: str, did: str, before: Instruction | None) -> None:
        """Report a race with an earlier access: ``who`` (words) ``did`` (verb) something to the cell.

        ``before`` is the instruction of the earlier access, if known.
        """
        thread, cta = self._place(position)
        where = f" ({place(before)})" if before else ""
        self._say(
            RACE,
            position,
            f"{who} {cta} {did} {self._byte(position)}{where}; thread {thread} {self.access.verb} it "
            f"({self._here}) with no barrier between them. Put a barrier between the two: "
            "cute.arch.sync_threads, or a named one where not all threads come by.",
        )

    def at_once(self, position: int) -> None:
        """Report that threads of two warps store different values to the cell in one instruction."""
        thread, cta = self._place(position)
        other, _ = self.lanes.place_of(self.each.other(position))
        self._say(
            RACE,
            position,
            f"Threads {thread} and {other} of CTA {cta} write different values to {self._byte(position)} "
            "at once "
            f"({self._here}); which one stays is chance. Let one thread write.",
        )

    def under_way(self, position: int, verb: str, copy: Instruction) -> None:
        """Report an access to the destination of a cp.async or a bulk copy that has not arrived."""
        thread, cta = self._place(position)
        by_tma = "bulk" in copy.modifiers
        name = "bulk copy (TMA)" if by_tma else "cp.async"
        advice = _WAIT_FOR_TMA if by_tma else _WAIT_FOR_GROUP
        self._say(
            ASYNC_HAZARD,
            position,
            f"Thread {thread} of CTA {cta} {verb} {self._byte(position)} ({self._here}) while the "
            f"{name} issued {place(copy)} is still on its way there. {advice}",
        )

    def unwritten(self, position: int) -> None:
        """Report a doubt: the access reads a cell that nobody has written."""
        thread, cta = self._place(position)
        self._say(
            UNINITIALISED,
            position,
            f"Thread {thread} of CTA {cta} {self.access.verb} {self._byte(position)}, which nobody has "
            "written "
            f"({self.access.instruction.name}, {self._here}).",
            doubt=True,
        )

    def unfenced(self, position: int, store: Instruction) -> None:
        """Flag a read through the asynchronous proxy of what a thread stored, with no fence since."""
        self._say(
            UNFENCED,
            position,
            f"{self.access.instruction.name} ({self._here}) reads {self._byte(position)}, which a thread "
            f"stored ({place(store)}), with no proxy fence between them: it may read what was there before. "
            'Call cute.arch.fence_proxy("async.shared", space="cta") after the stores, before the barrier.',
            severity=Severity.FLAG,
        )

    @property
    def _here(self) -> str:
        return place(self.access.instruction)

    def _byte(self, position: int) -> str:
        return f"byte {int(self.each.cell[position]) * self.cell} of shared memory"

    def _place(self, position: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return self.lanes.place_of(int(self.each.lane[position]))

    def _say(
        self,
        kind: str,
        position: int,
        message: str,
        *,
        doubt: bool = False,
        severity: Severity = Severity.DECIDES,
    ) -> None:
        thread, cta = self._place(position)
        self.findings.add(
            kind,
            message,
            self.access.instruction,
            thread=thread,
            cta=cta,
            doubt=doubt,
            severity=severity,
        )

"""Problems of a campaign, and one variant's sessions and recorded outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cutegen_nb.core.errors import DamagedSession
from cutegen_nb.core.ports import Store
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.search.campaign import CampaignEntry, CampaignRecord
from cutegen_nb.core.session import Session
from cutegen_nb.loop.campaign.budget import Spending, spending_of
from cutegen_nb.loop.campaign.variants import Variant
from cutegen_nb.loop.session import find_session


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignProblem:
    """Problem of a campaign."""

    name: str
    """Name, unique in the campaign: that of its session, where no other session has it."""
    file: str
    """Path of the problem file."""
    problem: Problem | None
    """The problem; None if the file cannot be used."""
    fault: str = ""
    """Reason why the file cannot be used, in a sentence; empty for a problem."""

    @property
    def digest(self) -> str:
        """SHA-256 of the problem's text; empty without a problem."""
        return self.problem.digest if self.problem else ""


@dataclass(slots=True, kw_only=True)
class VariantRun:
    """One variant of a campaign with its store; its record grows with each problem that is over."""

    variant: Variant
    """The variant."""
    store: Store
    """Store of its sessions."""
    record: CampaignRecord
    """Settings and outcomes so far."""
    keep: Callable[[CampaignRecord], None]
    """Function that writes the record; raises StoreError."""
    spent: dict[str, Spending] = field(default_factory=dict)
    """Amounts that each session has spent, by its name."""

    def entry_of(self, item: CampaignProblem) -> CampaignEntry | None:
        """Return the recorded outcome of a problem; None if it is not over, or the file has changed."""
        found = self.record.entry_of(item.name)
        return found if found and found.digest == item.digest else None

    def session_of(self, item: CampaignProblem, device: str) -> Session | None:
        """Return the stored session of a problem; None without one. Raises StoreError."""
        entry = self.entry_of(item)
        if entry is not None and entry.session:
            return self.store.load(entry.session) if entry.session in self.store.names() else None
        return find_session(item.problem, device, self.store)[1] if item.problem else None

    def add(self, entry: CampaignEntry) -> None:
        """Record an outcome. Raises StoreError."""
        others = tuple(one for one in self.record.entries if one.name != entry.name)
        record = replace(self.record, entries=(*others, entry))
        self.keep(record)
        self.record = record

    def read_spending(self) -> None:
        """Read the amounts that stored sessions have spent. Raises StoreError."""
        for name in self.store.names():
            try:
                self.spent[name] = spending_of(self.store.load(name))
            except DamagedSession:
                continue

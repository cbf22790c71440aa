"""Progress of the slots of a running epoch, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.loop.population.planning import PlannedSlot


class SlotState(StrEnum):
    """State of a slot."""

    PLANNED = "planned"
    """It waits for a free worker."""
    RUNNING = "running"
    """Its round runs."""
    DONE = "done"
    """Its round is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotProgress:
    """Slot of a running epoch."""

    epoch: int
    """Number of the epoch."""
    number: int
    """Number of the slot in its epoch, from 1."""
    move: MoveKind
    """Kind of change that it tries."""
    base: int
    """Number of the round whose kernel is changed."""
    other: int | None
    """For CROSS: number of the round whose strategies are taken over."""
    strategy: str
    """Name of the strategy; empty until the author has stated it."""
    state: SlotState = SlotState.PLANNED
    """Its state."""
    doing: str = ""
    """Short phrase on its present step; empty unless it runs."""
    started_at: str = ""
    """Start of its round: UTC, ISO 8601; empty while it is planned."""
    round: int | None = None
    """Number of its round once it is done."""


OnSlots = Callable[[tuple[SlotProgress, ...]], None]
"""Callback that receives the slots of the running epoch at each change; empty at its end."""


class SlotBoard:
    """Slots of the running epoch; each change is reported."""

    def __init__(self, on_slots: OnSlots | None) -> None:
        self._on_slots = on_slots
        self._slots: dict[int, SlotProgress] = {}

    def open(self, planned: Sequence[PlannedSlot]) -> None:
        """Show the slots that are about to run."""
        self._slots = {item.slot.number: _planned(item) for item in planned}
        self._report()

    def change(self, number: int, **members: object) -> None:
        """Change members of a slot."""
        self._slots[number] = replace(self._slots[number], **members)  # type: ignore[arg-type]
        self._report()

    def close(self) -> None:
        """Show no slot: the epoch is over."""
        self._slots = {}
        self._report()

    def _report(self) -> None:
        if self._on_slots is not None:
            self._on_slots(tuple(self._slots.values()))


def _planned(item: PlannedSlot) -> SlotProgress:
    return SlotProgress(
        epoch=item.slot.epoch,
        number=item.slot.number,
        move=item.slot.move,
        base=item.base.number,
        other=item.other.number if item.other else None,
        strategy=item.strategy.name if item.strategy else "",
    )

"""Observers of a batch while it runs: its loops, and its accesses to global memory. A sample has both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cutegen_nb.simulator.counters.counters import InstructionTally
    from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
    from cutegen_nb.simulator.state.batch import Batch, Mask


class LoopObserver(Protocol):
    """Observer of backward branches."""

    def turned(self, at: int, target: int, lanes: Batch, mask: Mask | None) -> None:
        """Note a backward branch that all active lanes take, before they go on at its target.

        Args:
            at: segment that ends in the branch.
            target: segment that the branch goes to, at most ``at``.
            lanes: batch; its registers and counts may be advanced by skipped iterations.
            mask: active lanes; None for all.
        """


class AccessObserver(Protocol):
    """Observer of the addresses of global loads and stores."""

    def touched(
        self,
        lanes: Batch,
        request: SeparableAddresses | ListedAddresses,
        size: int,
        tally: InstructionTally,
        *,
        stores: bool,
    ) -> None:
        """Note a request that was checked and counted.

        Args:
            lanes: batch.
            request: addresses of the active threads.
            size: bytes a thread.
            tally: tally of the instruction, which identifies it.
            stores: True for a store.
        """

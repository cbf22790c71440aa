"""Happens-before order of the warps of a CTA, by vector clocks.

A barrier that every live warp of a CTA passes orders everything before it against everything after it. This
is the usual case and needs only a counter. Named barriers, ``bar.arrive``, mbarriers and flags in memory
order only the warps that take part. From then on each warp has a clock for every other (Fidge and Mattern;
the epochs of FastTrack, Flanagan and Freund 2009).

The order is approximated in favour of the kernel. Threads of one warp count as ordered: they run in step
here, and on a GPU as a rule. An event that is ordered before one thread is ordered before its whole warp. All
flags in memory count as one flag.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cutegen_nb.simulator.numbers.values import Array

_POWERS: Array = np.uint32(1) << np.arange(32, dtype=np.uint32)
"""Bit of each warp of a CTA; a CTA has at most 32 warps."""


class HappensBefore:
    """Vector clocks of the warps of a batch.

    An epoch is the stretch of a warp's execution between two synchronisations, numbered in ascending order.
    Arrays have one row while all CTAs agree, otherwise one row per CTA. ``who`` arguments select warps: bool
    of shape (rows, warps).
    """

    def __init__(self, warps: int) -> None:
        self._warps = warps
        self.now = 1
        """Latest epoch. All warps are in it while only whole-CTA barriers have been passed."""
        self.partial = False
        """True if warps have clocks of their own, because some synchronised without the others."""
        self.known: Array = np.zeros((1, warps, warps), np.int64)
        """``known[row, v, w]``: latest epoch of warp w whose accesses are ordered before warp v's next."""
        self.epoch: Array = np.zeros((1, warps), np.int64)
        """Current epoch of each warp."""
        self._objects: dict[Hashable, Array] = {}
        """Synchronisation object (barrier number, mbarrier, flag) → clock released to it, (rows, warps)."""

    def whole(self, rows: Array | None) -> None:
        """All live warps passed a barrier together, in these CTAs (bool of one per CTA; None for all)."""
        self.now += 1
        if rows is None:
            self.partial = False
            return
        if self.partial:
            self._widen(len(rows))
            self.known[rows] = self.now - 1
            self.epoch[rows] = self.now

    def begin_partial(self) -> bool:
        """Give every warp a clock of its own; return False if it has one already."""
        if self.partial:
            return False
        self.partial = True
        self.known = np.full((1, self._warps, self._warps), self.now - 1, np.int64)
        self.epoch = np.full((1, self._warps), self.now, np.int64)
        return True

    def meet(self, who: Array, number: Hashable) -> None:
        """Order the warps ``who`` at a barrier, with those that arrived at it before by ``bar.arrive``."""
        joined = self._knowledge(who)
        arrived = self._objects.pop(number, None)
        if arrived is not None:
            joined = np.maximum(joined, arrived)
        self._learn(who, joined)
        self._advance(who)

    def release(self, who: Array, key: Hashable) -> None:
        """Release: order the warps' accesses so far before those of every later acquire of ``key``."""
        joined = self._knowledge(who)
        before = self._objects.get(key)
        self._objects[key] = joined if before is None else np.maximum(before, joined)
        self._advance(who)

    def acquire(self, who: Array, key: Hashable) -> None:
        """Acquire: order everything released to ``key`` before the warps' next accesses."""
        held = self._objects.get(key)
        if held is not None:
            self._learn(who, held)

    def released(self, key: Hashable) -> bool:
        """Return whether anything was released to ``key``."""
        return key in self._objects

    def known_to(self, rows: Array, warps: Array, epochs: Array) -> Array:
        """For each (row, warp, epoch): bits of the warps whose accesses up to the epoch precede the warp."""
        known = self.known[rows if len(self.known) > 1 else 0, warps]
        return ((known >= epochs[:, None]) * _POWERS[: self._warps]).sum(axis=1, dtype=np.uint32)

    def epochs_of(self, rows: Array | int, warps: Array | int) -> Array:
        """Current epochs of the given warps."""
        return self.epoch[rows if len(self.epoch) > 1 else 0, warps]

    def least(self, warps: Array) -> Array:
        """Least current epoch of the given warps, shape (rows, 1)."""
        return self.epoch[:, warps].min(axis=1, keepdims=True)

    def _knowledge(self, who: Array) -> Array:
        """Join of the clocks of the warps ``who``, their own epochs included; shape (rows, warps)."""
        self._widen(len(who))
        mine = np.where(who[..., None], self.known, 0).max(axis=1)
        return np.where(who, np.maximum(mine, self.epoch), mine)

    def _learn(self, who: Array, what: Array) -> None:
        self._widen(max(len(who), len(what)))
        self.known = np.where(who[..., None], np.maximum(self.known, what[:, None, :]), self.known)

    def _advance(self, who: Array) -> None:
        self.now += 1
        self.epoch = np.where(who, self.now, self.epoch)

    def _widen(self, rows: int) -> None:
        if rows > len(self.known):
            self.known = np.repeat(self.known, rows, axis=0)
        if rows > len(self.epoch):
            self.epoch = np.repeat(self.epoch, rows, axis=0)

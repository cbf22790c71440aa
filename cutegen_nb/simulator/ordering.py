"""Which warps of a CTA know what which others did: happens-before, by vector clocks of warps.

A barrier that every live warp of a CTA passes orders everything before it against everything after it; that
is the usual case and costs nothing here.  Named barriers, ``bar.arrive``, mbarriers and flags in memory
order only the warps that take part, and then each warp has a clock for every other (Fidge and Mattern; the
epochs of FastTrack, Flanagan and Freund 2009).

Everything is decided in favour of the kernel: threads of one warp count as ordered (they run in step here,
and on a GPU as a rule), whatever one thread of a warp knows its warp knows, and all flags in memory are one.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cutegen_nb.simulator.values import Array

_POWERS: Array = np.uint32(1) << np.arange(32, dtype=np.uint32)


class Order:
    """Clocks of the warps of a batch. Arrays have one row where all CTAs agree, else one a CTA."""

    def __init__(self, warps: int) -> None:
        self._warps = warps
        self.now = 1
        """Epoch that a warp is in while only whole-CTA barriers have been passed."""
        self.partial = False
        """Whether warps differ in what they know."""
        self.known: Array = np.zeros((1, warps, warps), np.int64)
        """``known[row, v, w]``: latest epoch of warp w whose accesses are ordered before warp v's next."""
        self.epoch: Array = np.zeros((1, warps), np.int64)
        """Epoch that each warp is in."""
        self._objects: dict[Hashable, Array] = {}

    def whole(self, rows: Array | None) -> None:
        """All warps met, in these CTAs (None for all)."""
        self.now += 1
        if rows is None:
            self.partial = False
            return
        if self.partial:
            self._widen(len(rows))
            self.known[rows] = self.now - 1
            self.epoch[rows] = self.now

    def begin_partial(self) -> bool:
        """Give every warp clocks of its own; says whether they had none."""
        if self.partial:
            return False
        self.partial = True
        self.known = np.full((1, self._warps, self._warps), self.now - 1, np.int64)
        self.epoch = np.full((1, self._warps), self.now, np.int64)
        return True

    def meet(self, who: Array, number: Hashable) -> None:
        """The warps in ``who`` (rows × warps, bool) met at a barrier others may have arrived at before."""
        joined = self._knowledge(who)
        arrived = self._objects.pop(number, None)
        if arrived is not None:
            joined = np.maximum(joined, arrived)
        self._learn(who, joined)
        self._advance(who)

    def release(self, who: Array, key: Hashable) -> None:
        """Whoever acquires ``key`` from now on knows what these warps did until now."""
        joined = self._knowledge(who)
        before = self._objects.get(key)
        self._objects[key] = joined if before is None else np.maximum(before, joined)
        self._advance(who)

    def acquire(self, who: Array, key: Hashable) -> None:
        """These warps know what was released to ``key``."""
        held = self._objects.get(key)
        if held is not None:
            self._learn(who, held)

    def released(self, key: Hashable) -> bool:
        """Whether anything was ever released to ``key``."""
        return key in self._objects

    def known_to(self, rows: Array, warps: Array, epochs: Array) -> Array:
        """For each (row, warp, epoch): the warps whose accesses up to that epoch it knows, as bits."""
        known = self.known[rows if len(self.known) > 1 else 0, warps]
        return ((known >= epochs[:, None]) * _POWERS[: self._warps]).sum(axis=1, dtype=np.uint32)

    def epochs_of(self, rows: Array | int, warps: Array | int) -> Array:
        """Epochs of warps."""
        return self.epoch[rows if len(self.epoch) > 1 else 0, warps]

    def least(self, warps: Array) -> Array:
        """The least epoch of some warps, one a row."""
        return self.epoch[:, warps].min(axis=1, keepdims=True)

    def _knowledge(self, who: Array) -> Array:
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

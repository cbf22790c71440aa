"""What an mbarrier object holds, and how arrivals change it (PTX ISA, "mbarrier").

The 64 bits in shared memory are this machine's own: from bit 0 pending arrivals (20 bits), expected arrivals
of a phase (20), bytes still expected (21, biased), a mark (2) and the parity of the phase (1). A program may
not read them; a token is such a word as it was before the arrival that gave it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.values import S64, U64, Array

MOST = (1 << 20) - 1
"""Arrivals and bytes that can be expected at most."""
_COUNT_BITS = 20
_BYTES_AT, _MARK_AT, _PHASE_AT = 40, 61, 63
_BIAS = 1 << 20
_MARK = 2
"""Neither memory filled with ones nor with zeros has it."""


@dataclass(slots=True)
class States:
    """The mbarrier at one address of every CTA; int64 arrays of one number a CTA."""

    pending: Array
    """Arrivals that the current phase still waits for."""
    expected: Array
    """Arrivals that the next phase will wait for."""
    bytes_left: Array
    """Bytes of transactions that the current phase still waits for."""
    phase: Array
    """Parity of the current phase."""
    valid: Array
    """Whether it is initialised."""

    @staticmethod
    def read(words: Array) -> States:
        """Out of the words of all CTAs, uint64."""
        bits = words.astype(U64)
        return States(
            pending=_field(bits, 0, _COUNT_BITS),
            expected=_field(bits, _COUNT_BITS, _COUNT_BITS),
            bytes_left=_field(bits, _BYTES_AT, _COUNT_BITS + 1) - _BIAS,
            phase=_field(bits, _PHASE_AT, 1),
            valid=_field(bits, _MARK_AT, 2) == _MARK,
        )

    def words(self) -> Array:
        """As the words of all CTAs."""
        return word(self.pending, self.expected, self.bytes_left, self.phase)

    def finish(self) -> None:
        """End the phase where nothing is waited for any more."""
        done = self.valid & (self.pending == 0) & (self.bytes_left == 0)
        self.phase = self.phase ^ done
        self.pending = np.where(done, self.expected, self.pending)

    def arrive(self, counts: Array, *, drop: bool = False) -> tuple[Array, Array]:
        """Let the threads of each CTA arrive one after the other.

        Args:
            counts: arrivals of each thread, (ctas, threads), 0 for those that do not arrive.
            drop: whether later phases wait for that many arrivals less.

        Returns:
            The token of each thread, and where a thread arrives more often than its phase waits for.
        """
        after = np.cumsum(counts, axis=1)
        before = after - counts
        first, later = self.pending[:, None], np.maximum(self.expected, 1)[:, None]
        inside = before < first
        turn = np.where(inside, 0, 1 + (before - first) // later)
        left = np.where(inside, first - before, later - (before - first) % later)
        held = (self.bytes_left != 0)[:, None] & (turn > 0)
        wrong = (counts > 0) & ((counts > left) | held)
        tokens = word(
            left, self.expected[:, None], self.bytes_left[:, None], self.phase[:, None] ^ (turn & 1)
        )
        total = after[:, -1]
        beyond = total - self.pending
        full = (beyond >= 0) & (self.bytes_left == 0) & (total > 0)
        ends = np.where(full, 1 + beyond // later[:, 0], 0)
        rest = later[:, 0] - beyond % later[:, 0]
        if drop:
            wrong = wrong | ((counts > 0) & (turn > 0))
            self.expected = rest = self.expected - total
        self.phase = self.phase ^ (ends & 1)
        self.pending = np.where(full, rest, self.pending - total)
        return tokens, wrong


def word(pending: Array, expected: Array, bytes_left: Array, phase: Array) -> Array:
    """The fields as uint64 words."""
    parts = pending | (expected << _COUNT_BITS) | ((bytes_left + _BIAS) << _BYTES_AT) | (_MARK << _MARK_AT)
    whole: Array = parts.astype(U64) | (phase.astype(U64) << np.uint64(_PHASE_AT))
    return whole


def phase_of(token: Array) -> Array:
    """Parity of the phase that a token was taken in."""
    return token >> np.uint64(_PHASE_AT)


def pending_of(token: Array) -> Array:
    """Pending arrivals that a token was taken with."""
    return token & np.uint64(MOST)


def _field(bits: Array, start: int, width: int) -> Array:
    return ((bits >> np.uint64(start)) & np.uint64((1 << width) - 1)).astype(S64)

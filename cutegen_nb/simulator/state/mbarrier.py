"""mbarrier objects: their 64-bit encoding, and the effect of arrivals (PTX ISA, "mbarrier").

The encoding in shared memory is the simulator's own, since PTX leaves it opaque. From bit 0: pending arrivals
(20 bits), expected arrivals of a phase (20), bytes of transactions still expected (21, biased), a mark of an
initialised object (2), parity of the phase (1). A token is the word as it was before the arrival that
returned it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import S64, U64, Array

MOST_ARRIVALS = (1 << 20) - 1
"""Most arrivals or bytes that a phase can expect (PTX ISA, "Contents of the mbarrier object")."""
_COUNT_BITS = 20
"""Bits of an arrival count."""
_BYTES_AT, _MARK_AT, _PHASE_AT = 40, 61, 63
"""Lowest bit of the byte count, of the mark and of the phase parity."""
_BIAS = 1 << 20
"""Added to the byte count, which is negative where bytes arrive before they are expected."""
_MARK = 2
"""Mark of an initialised object; memory filled with ones or with zeros does not have it."""


@dataclass(slots=True)
class States:
    """State of the mbarrier at one address in every CTA. Arrays of shape (ctas,), int64 except ``valid``."""

    pending: Array
    """Arrivals that the current phase still waits for."""
    expected: Array
    """Arrivals that the next phase will wait for."""
    bytes_left: Array
    """Bytes of transactions (tx-count) that the current phase still waits for."""
    phase: Array
    """Parity of the current phase."""
    valid: Array
    """True if the object is initialised."""

    @staticmethod
    def read(words: Array) -> States:
        """Decode the words of all CTAs, uint64."""
        bits = words.astype(U64)
        return States(
            pending=_field(bits, 0, _COUNT_BITS),
            expected=_field(bits, _COUNT_BITS, _COUNT_BITS),
            bytes_left=_field(bits, _BYTES_AT, _COUNT_BITS + 1) - _BIAS,
            phase=_field(bits, _PHASE_AT, 1),
            valid=_field(bits, _MARK_AT, 2) == _MARK,
        )

    def words(self) -> Array:
        """Encode the states as uint64 words, one per CTA."""
        return word(self.pending, self.expected, self.bytes_left, self.phase)

    def finish(self) -> None:
        """Complete the phase where no arrivals and no bytes are pending."""
        done = self.valid & (self.pending == 0) & (self.bytes_left == 0)
        self.phase = self.phase ^ done
        self.pending = np.where(done, self.expected, self.pending)

    def arrive(self, counts: Array, *, drop: bool = False) -> tuple[Array, Array]:
        """Let the threads of each CTA arrive one after the other.

        Args:
            counts: arrivals of each thread, (ctas, threads), 0 for threads that do not arrive.
            drop: True if later phases wait for that many arrivals fewer (``arrive_drop``).

        Returns:
            Token of each thread, and True where a thread arrives more often than its phase waits for.
        """
        # Arrivals of the CTA's earlier threads decide in which phase a thread arrives (``turn``, 0 for the
        # current one) and how many arrivals that phase still waits for (``left``).
        after = np.cumsum(counts, axis=1)
        before = after - counts
        first, later = self.pending[:, None], np.maximum(self.expected, 1)[:, None]
        inside = before < first
        turn = np.where(inside, 0, 1 + (before - first) // later)
        left = np.where(inside, first - before, later - (before - first) % later)
        # A phase with bytes outstanding cannot complete, so an arrival cannot belong to a later one.
        held = (self.bytes_left != 0)[:, None] & (turn > 0)
        wrong = (counts > 0) & ((counts > left) | held)
        tokens = word(
            left, self.expected[:, None], self.bytes_left[:, None], self.phase[:, None] ^ (turn & 1)
        )
        total = after[:, -1]
        beyond = total - self.pending
        full = (beyond >= 0) & (self.bytes_left == 0) & (total > 0)
        # Number of phases that these arrivals complete; the parity flips once for each.
        ends = np.where(full, 1 + beyond // later[:, 0], 0)
        rest = later[:, 0] - beyond % later[:, 0]
        if drop:
            wrong = wrong | ((counts > 0) & (turn > 0))
            self.expected = rest = self.expected - total
        self.phase = self.phase ^ (ends & 1)
        self.pending = np.where(full, rest, self.pending - total)
        return tokens, wrong


def word(pending: Array, expected: Array, bytes_left: Array, phase: Array) -> Array:
    """Encode the fields as uint64 words."""
    parts = pending | (expected << _COUNT_BITS) | ((bytes_left + _BIAS) << _BYTES_AT) | (_MARK << _MARK_AT)
    whole: Array = parts.astype(U64) | (phase.astype(U64) << np.uint64(_PHASE_AT))
    return whole


def phase_of(token: Array) -> Array:
    """Parity of the phase in which a token was taken."""
    return token >> np.uint64(_PHASE_AT)


def pending_of(token: Array) -> Array:
    """Pending arrivals before the arrival that returned the token."""
    return token & np.uint64(MOST_ARRIVALS)


def _field(bits: Array, start: int, width: int) -> Array:
    return ((bits >> np.uint64(start)) & np.uint64((1 << width) - 1)).astype(S64)

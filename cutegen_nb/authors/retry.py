"""Rate limits and retries: concurrent requests, requests a minute, and backoff between attempts."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cutegen_nb.authors.failures import FailureKind, RequestFailure
from cutegen_nb.authors.server_profile import RequestLimits
from cutegen_nb.core.ports import Progress

LONGEST_WAIT_S = 120.0
"""Longest wait in seconds that a server may ask for; beyond it the request fails."""
_WINDOW_S = 60.0
"""Length of the sliding window of ``requests_per_minute`` in seconds."""
_LONGEST_BACKOFF_S = 30.0
"""Upper limit of the exponential backoff in seconds."""
_RETRY_LIMITS = {
    FailureKind.NO_CONNECTION: 2,
    FailureKind.SLOW: 1,
    FailureKind.BROKEN: 1,
    FailureKind.GARBLED: 1,
}
"""Most retries for a kind of failure, where that is below the profile's number of retries."""
_NEVER = frozenset({FailureKind.BAD_REQUEST, FailureKind.NO_MODEL, FailureKind.REFUSED})
"""Kinds of failure that are never retried."""

Sleep = Callable[[float], Awaitable[None]]
"""Replacement for ``asyncio.sleep``, for tests."""


class RateLimiter:
    """Rate limiter: bounds concurrent requests and requests a minute."""

    def __init__(
        self,
        limits: RequestLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._per_minute = limits.requests_per_minute
        self._places = asyncio.Semaphore(limits.concurrency)
        self._begun: deque[float] = deque()
        self._now = now
        self._sleep = sleep

    @asynccontextmanager
    async def turn(self, progress: Progress) -> AsyncIterator[None]:
        """Hold a place for one request."""
        if self._places.locked():
            progress("waiting for another request to end")
        async with self._places:
            await self._wait_for_the_minute(progress)
            yield

    async def _wait_for_the_minute(self, progress: Progress) -> None:
        if self._per_minute is None:
            return
        while True:
            now = self._now()
            while self._begun and now - self._begun[0] >= _WINDOW_S:
                self._begun.popleft()
            if len(self._begun) < self._per_minute:
                break
            wait = _WINDOW_S - (now - self._begun[0])
            progress(f"{self._per_minute} requests were made in a minute: waiting {wait:.0f} s")
            await self._sleep(wait)
        self._begun.append(self._now())


class RetryPolicy:
    """Retry policy of one prompt."""

    def __init__(self, limits: RequestLimits, *, first_wait_s: float = 0.5) -> None:
        self._retries = limits.retries
        self._first_wait_s = first_wait_s
        self._seen: Counter[FailureKind] = Counter()

    @property
    def tries(self) -> int:
        """Number of failed requests so far."""
        return self._seen.total()

    def wait_s(self, setback: RequestFailure) -> float | None:
        """Return the seconds to wait before the next request; None to give up.

        The wait is the one that the server asks for, or exponential backoff. A random part keeps many clients
        from returning at the same moment.
        """
        before = self._seen.total()
        self._seen[setback.kind] += 1
        allowed = min(self._retries, _RETRY_LIMITS.get(setback.kind, self._retries))
        asked = setback.retry_after_s
        if setback.kind in _NEVER or self._seen[setback.kind] > allowed or before >= self._retries:
            return None
        if asked is not None:
            # Up to 10 % more than asked for, never less.
            return None if asked > LONGEST_WAIT_S else asked * (1 + 0.1 * _chance())
        # Doubles with each failure, from first_wait_s; then a random share between half and all of it
        # (jitter).
        longest = min(_LONGEST_BACKOFF_S, self._first_wait_s * 2.0**before)
        return longest * (0.5 + 0.5 * _chance())


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads waits; nothing is secret about it

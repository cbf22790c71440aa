"""How often and how long: requests at a time, requests a minute, and waits between repeated ones."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cutegen_nb.authors.server_profile import Limits
from cutegen_nb.authors.setbacks import Kind, Setback
from cutegen_nb.core.ports import Progress

LONGEST_WAIT_S = 120.0
"""A server that asks for more is not waited for; the person is told."""
_WINDOW_S = 60.0
_LONGEST_BACKOFF_S = 30.0
_SELDOM = {Kind.NO_CONNECTION: 2, Kind.SLOW: 1, Kind.BROKEN: 1, Kind.GARBLED: 1}
"""How often at most, where the profile's number of retries is not the limit."""
_NEVER = frozenset({Kind.BAD_REQUEST, Kind.NO_MODEL, Kind.REFUSED})

Sleep = Callable[[float], Awaitable[None]]


class Turns:
    """Lets requests go one after another, no more at a time and a minute than the limits say."""

    def __init__(
        self, limits: Limits, *, now: Callable[[], float] = time.monotonic, sleep: Sleep = asyncio.sleep
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


class Patience:
    """Whether and when a request is made again."""

    def __init__(self, limits: Limits, *, first_wait_s: float = 0.5) -> None:
        self._retries = limits.retries
        self._first_wait_s = first_wait_s
        self._seen: Counter[Kind] = Counter()

    @property
    def tries(self) -> int:
        """Requests that brought no answer."""
        return self._seen.total()

    def wait_s(self, setback: Setback) -> float | None:
        """Seconds to wait before the next request; None to give up.

        What the server asks for, or a doubling wait; a random part keeps many clients from coming back
        at the same moment.
        """
        before = self._seen.total()
        self._seen[setback.kind] += 1
        allowed = min(self._retries, _SELDOM.get(setback.kind, self._retries))
        asked = setback.retry_after_s
        if setback.kind in _NEVER or self._seen[setback.kind] > allowed or before >= self._retries:
            return None
        if asked is not None:
            return None if asked > LONGEST_WAIT_S else asked * (1 + 0.1 * _chance())
        longest = min(_LONGEST_BACKOFF_S, self._first_wait_s * 2.0**before)
        return longest * (0.5 + 0.5 * _chance())


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads waits; nothing is secret about it

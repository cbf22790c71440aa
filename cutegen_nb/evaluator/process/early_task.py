"""Task that may be started before its result is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class EarlyTask(Generic[T]):
    """Coroutine that runs once its result is asked for, or earlier."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Start nothing yet; `make` creates the coroutine, once more if a started one was given up."""
        self._make = make
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Start the coroutine, unless it runs or has ended."""
        if self._task is None:
            self._task = asyncio.create_task(self._make())

    async def settle(self, within_s: float) -> None:
        """Wait at most `within_s` seconds for a started coroutine; then give it up, to be run again later."""
        if self._task is None:
            return
        _, late = await asyncio.wait({self._task}, timeout=within_s)
        if late:
            await self.close()

    async def result(self) -> T:
        """Return the coroutine's result; it is started now if it was not, or was given up."""
        self.begin()
        assert self._task is not None
        return await self._task

    async def close(self) -> None:
        """Cancel the coroutine if it runs, and wait for its end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            # `gather` keeps the task's error and the cancellation of the caller apart.
            await asyncio.gather(task, return_exceptions=True)

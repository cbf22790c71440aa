"""Event loop in a thread for all sessions of this kernel, with the evaluators and stores that they share.

The kernel's own loop does not serve: a cell that computes for a minute would delay an evaluation's records
and a model's stream past their deadlines, and a sound kernel would get the verdict TIMED_OUT. Actions of a
person arrive by ``call_soon_threadsafe``, which wakes this loop under every ipykernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, open_store

T = TypeVar("T")
LATE_S = 10.0
"""Seconds after which a cell that waits for a result says so; most checks of an answer take one or two."""
_CLOSE_S = 10.0
"""Timeout in seconds of each step of `EventLoopThread.close`."""


class EventLoopThread:
    """Daemon thread with an event loop; evaluators and stores are shared between sessions."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="cutegen", daemon=True)
        self._thread.start()
        self._evaluators: dict[tuple[str, str | None, tuple[str, ...]], KernelEvaluator] = {}
        self._stores: dict[Path, tuple[SqliteStore, int]] = {}

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop. May be called from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def result(self, work: Coroutine[Any, Any, T], late: Callable[[], object] | None = None) -> T:
        """Run a coroutine and wait for its result; an interrupt of the cell cancels it.

        `late` is called once if there is no result after `LATE_S`. Raises any error of the coroutine.
        """
        future = self.submit(work)
        try:
            if late and not wait([future], LATE_S).done:
                late()
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def evaluator(self, settings: Settings) -> KernelEvaluator:
        """Return the evaluator for a device and baselines; its torch subprocess outlives a session."""
        key = (settings.device, settings.architecture, settings.baselines)
        if key not in self._evaluators:
            self._evaluators[key] = KernelEvaluator(
                device=settings.device, architecture=settings.architecture, baselines=settings.baselines
            )
        return self._evaluators[key]

    async def lease(self, settings: Settings) -> SqliteStore:
        """Open the folder's store for writing, or share the open one; `give_back` ends the lease.

        Raises StoreError, naming the process, if another process writes to the store.
        """
        folder = settings.folder
        store, users = self._stores.get(folder) or (open_store(settings), 0)
        self._stores[folder] = (store, users + 1)
        return store

    async def give_back(self, settings: Settings) -> None:
        """End a lease; the end of the last lease closes the store, so that another kernel may write."""
        store, users = self._stores.pop(settings.folder)
        if users > 1:
            self._stores[settings.folder] = (store, users - 1)
        else:
            store.close()

    def close(self) -> None:
        """Cancel all coroutines, end every subprocess of the evaluators, and stop the thread."""
        if not self._thread.is_alive():
            return
        # A timeout is not reported: the kernel is shutting down. When Python itself ends, no thread can be
        # started any more (RuntimeError); the subprocesses then end with their pipes.
        with contextlib.suppress(TimeoutError, RuntimeError):
            self.submit(self._end()).result(_CLOSE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_CLOSE_S)

    async def _end(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for evaluator in self._evaluators.values():
            await evaluator.close()
        self._evaluators.clear()

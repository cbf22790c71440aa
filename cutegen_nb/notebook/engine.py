"""One event loop in a thread of its own for every session of this kernel, and what the sessions share.

Not the kernel's own loop: a cell that computes for a minute would hold up an evaluation's records and a
model's stream until their deadlines had passed, and a sound kernel would be called TIMED_OUT. What a
person does is handed over with ``call_soon_threadsafe``, which wakes this loop under every ipykernel.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from cutegen_nb.gpu.evaluator import KernelEvaluator
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.wiring import Settings, open_store

T = TypeVar("T")
_CLOSE_S = 10.0


class Engine:
    """Runs coroutines for the notebook's main thread; evaluators and stores are shared between sessions."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="cutegen", daemon=True)
        self._thread.start()
        self._evaluators: dict[tuple[str, tuple[str, ...]], KernelEvaluator] = {}
        self._stores: dict[Path, tuple[SqliteStore, int]] = {}

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine; called from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine gives or raises, waited for; an interrupt of the cell cancels it."""
        future = self.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def evaluator(self, settings: Settings) -> KernelEvaluator:
        """The evaluator for these settings; its process that holds torch outlives a session."""
        key = (settings.device, settings.baselines)
        if key not in self._evaluators:
            self._evaluators[key] = KernelEvaluator(device=settings.device, baselines=settings.baselines)
        return self._evaluators[key]

    async def lease(self, settings: Settings) -> SqliteStore:
        """The folder's store, open for writing while a session of this kernel uses it; then `give_back`.

        Raises StoreError, naming the other process, when that writes to it.
        """
        folder = settings.folder
        store, users = self._stores.get(folder) or (open_store(settings), 0)
        self._stores[folder] = (store, users + 1)
        return store

    async def give_back(self, settings: Settings) -> None:
        """End a lease; the last one closes the store, so that another kernel may write."""
        store, users = self._stores.pop(settings.folder)
        if users > 1:
            self._stores[settings.folder] = (store, users - 1)
        else:
            store.close()

    def close(self) -> None:
        """Cancel what runs, end every process that was started, and stop the thread."""
        if not self._thread.is_alive():
            return
        # A kernel that goes down has other things to do than to hear why this took too long.
        with contextlib.suppress(TimeoutError):
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

"""One writer at a time, and the second is told who the first is."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import TextIO

from cutegen_nb.core.errors import StoreError


class WriterLock:
    """An advisory lock on a file beside the store; the kernel frees it however the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Take the lock. Raises StoreError, naming the process that holds it."""
        try:
            file = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            message = (
                f"cannot write in {self._path.parent}: {error.strerror}; choose another folder with --store"
            )
            raise StoreError(message) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            message = (
                f"{holder} is writing to the sessions in {self._path.parent}: "
                "wait for it, stop it, or use another --store"
            )
            raise StoreError(message) from error
        self._file = file
        self._sign(file)

    def _sign(self, file: TextIO) -> None:
        """Say who holds it. A disk too full for that is no reason to refuse: the lock itself is held."""
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} ({Path(sys.argv[0]).name or 'python'})")
            file.flush()
        except OSError:
            return

    def release(self) -> None:
        """Give the lock back; the file stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

"""Writer lock: one writer at a time; a second writer is told who holds the lock."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import TextIO

from cutegen_nb.core.errors import StoreError

_KERNEL = "ipykernel_launcher.py"
"""Program of a notebook's kernel; Jupyter tells it the notebook's path, which its child processes inherit."""
_IN_NOTEBOOK = "the notebook"
"""Words before the name of a holder that is the kernel of a notebook."""


class WriterLock:
    """Advisory lock on a file beside the store; the kernel releases it however the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None

    def acquire(self) -> None:
        """Acquire the lock. Raises StoreError, naming the process that holds it."""
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
            message = f"{holder} is writing to the sessions in {self._path.parent}: {_next_step(holder)}"
            raise StoreError(message) from error
        self._file = file
        self._sign(file)

    def _sign(self, file: TextIO) -> None:
        """Write the holder's name to the file: its notebook, or its process id and program.

        A full disk is no reason to fail: the lock itself is held.
        """
        try:
            file.truncate(0)
            file.write(_own_name())
            file.flush()
        except OSError:
            return

    def release(self) -> None:
        """Release the lock; the file stays."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _own_name() -> str:
    """Return the name of this process: its notebook where it is the kernel of one."""
    program = Path(sys.argv[0]).name or "python"
    notebook = Path(os.environ.get("JPY_SESSION_NAME", "")).name
    if program == _KERNEL and notebook:
        return f"{_IN_NOTEBOOK} {notebook}"
    return f"process {os.getpid()} ({program})"


def _next_step(holder: str) -> str:
    if holder.startswith(_IN_NOTEBOOK):
        return (
            "a session there has not ended. Decide in its panel until it has, run `%cutegen stop` there, or "
            "shut down the kernel of that notebook; then run this again. Or use another --store"
        )
    return "wait for it, stop it, or use another --store"

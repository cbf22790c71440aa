"""Ctrl-C on the command line: the first interrupt cancels the command, one seconds later ends the process."""

from __future__ import annotations

import time
from collections.abc import Callable

_ENDING_S = 2.0
"""Seconds that a cancelled command has before another interrupt ends the process. A terminal and a program
around this one may both send the same interrupt."""


class Interrupts:
    """Handler of SIGINT. Workers end with this process, so that ending it at once leaves nothing running."""

    def __init__(
        self,
        cancel: Callable[[], object],
        end: Callable[[], object],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Do nothing yet; `cancel` ends the command in order, `end` the process. `now` reads a clock in s."""
        self._cancel = cancel
        self._end = end
        self._now = now
        self._first: float | None = None

    def __call__(self) -> None:
        """Handle one interrupt."""
        if self._first is None:
            self._first = self._now()
            self._cancel()
        elif self._now() - self._first > _ENDING_S:
            self._end()

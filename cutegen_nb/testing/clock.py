"""A clock that stands still unless it is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FixedClock:
    """Starts at midnight of 1 January 2026, UTC; each look moves it on by `step_s`."""

    def __init__(self, step_s: float = 0.0) -> None:
        self._step_s = step_s
        self._elapsed_s = 0.0

    def now(self) -> str:
        """UTC, ISO 8601, whole seconds."""
        return (_START + timedelta(seconds=int(self._elapsed_s))).isoformat(timespec="seconds")

    def monotonic(self) -> float:
        """Seconds since it was made, as moved."""
        self._elapsed_s += self._step_s
        return self._elapsed_s

    def move(self, seconds: float) -> None:
        """Let time pass."""
        self._elapsed_s += seconds

"""Clock for tests that stands still unless it is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FixedClock:
    """Clock that starts at midnight of 1 January 2026, UTC; each `monotonic` call advances it by `step_s`."""

    def __init__(self, step_s: float = 0.0) -> None:
        self._step_s = step_s
        self._elapsed_s = 0.0

    def now(self) -> str:
        """Current time: UTC, ISO 8601, whole seconds."""
        return (_START + timedelta(seconds=int(self._elapsed_s))).isoformat(timespec="seconds")

    def monotonic(self) -> float:
        """Advance by `step_s`; return the seconds since the start."""
        self._elapsed_s += self._step_s
        return self._elapsed_s

    def move(self, seconds: float) -> None:
        """Advance the clock."""
        self._elapsed_s += seconds

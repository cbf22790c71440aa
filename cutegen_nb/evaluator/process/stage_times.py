"""Duration of each stage of an evaluation, taken from its progress messages."""

from __future__ import annotations

import time

from cutegen_nb.core.ports import Progress


class Stages:
    """Progress callback that passes messages on and records the start of each stage."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._began: list[tuple[str, float]] = [("starting", time.monotonic())]

    def __call__(self, text: str) -> None:
        """Record the start of the stage `text`; a repeated message continues the stage."""
        if text != self._began[-1][0]:
            self._began.append((text, time.monotonic()))
        self._progress(text)

    def seconds(self) -> tuple[tuple[str, float], ...]:
        """Stages so far in order, each with its duration in seconds; the last one runs until now."""
        ends = [*(start for _, start in self._began[1:]), time.monotonic()]
        return tuple(
            (text, round(end - start, 3)) for (text, start), end in zip(self._began, ends, strict=True)
        )

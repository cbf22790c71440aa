"""CUDA graphs: work that was captured instead of run, to be run at each replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class CapturedGraph:
    """Captured work, in the order of its capture."""

    steps: list[Callable[[], object]] = field(default_factory=list)
    """Launches, copies and torch operators, each run again by a call."""
    close: Callable[[], object] = lambda: None
    """Ends the capture into this graph, if it is under way."""
    kept: list[object] = field(default_factory=list)
    """Tensors that were made during the capture; their memory is the graph's own."""

    def replay(self) -> None:
        """Run every step with the contents that memory has now."""
        for step in self.steps:
            step()

"""Loops over a row, in blocks with partial sums where the row is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.templates import indented

LONGEST_RUN = 1024
"""Longest sum in one register, in terms. In float32, 32768 equal terms came out 3e-4 too small."""
BLOCK_TURNS = 256
"""Turns of the loop over a block: up to 1024 terms with four elements a turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRange:
    """Range of a generated loop, as text."""

    counter: str
    """Name of the variable: ``col`` or ``chunk``."""
    start: str = "0"
    """First value of the variable."""
    stop: str
    """End of the range, exclusive."""
    step: str = "1"
    """Step of the variable."""
    unroll: bool = True
    """True if the loads of several turns are issued together."""

    def loop(self, body: Sequence[str]) -> list[str]:
        """Single loop over the range."""
        return self._for(self.start, self.stop, body)

    def blocks(self, body: Sequence[str], *, before: Sequence[str], after: Sequence[str]) -> list[str]:
        """Loop over blocks of the range, with statements before and after each block."""
        # BLOCK counts turns, so a block spans BLOCK steps of the variable.
        stride = "BLOCK" if self.step == "1" else f"BLOCK * {self.step}"
        inner = self._for("block", f"cutlass.min(block + {stride}, {self.stop})", body)
        return [
            "# What is added to a large total loses digits, so each block of a row has a sum of its own.",
            f"for block in cutlass.range({self.start}, {self.stop}, {stride}):",
            *indented([*before, *inner, *after]),
        ]

    def _for(self, start: str, stop: str, body: Sequence[str]) -> list[str]:
        bounds = [stop] if (start, self.step) == ("0", "1") else [start, stop]
        bounds += [] if self.step == "1" else [self.step]
        bounds += ["unroll=UNROLL"] if self.unroll else []
        return [f"for {self.counter} in cutlass.range({', '.join(bounds)}):", *indented(body)]


def row_run(counter: str, size: str, *, lanes: str, partial: bool, coalesced: bool) -> LoopRange:
    """Range of one thread's part of a row of `size` elements.

    `lanes` says who shares the row: a thread, a warp or a CTA; with `partial`, several of them.
    """
    if lanes == "thread":
        if partial:
            return LoopRange(counter=counter, start="split", stop=size, step="SPLITS")
        return LoopRange(counter=counter, stop=size)
    if lanes == "warp":
        return LoopRange(counter=counter, start="lane", stop=size, step="32")
    if not coalesced:
        return LoopRange(counter=counter, start="first", stop="last")
    if partial:
        return LoopRange(counter=counter, start="split * THREADS + tidx", stop=size, step="SPLITS * THREADS")
    return LoopRange(counter=counter, start="tidx", stop=size, step="THREADS")

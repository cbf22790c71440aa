"""Places in the Python source that the ``.loc`` and ``.file`` lines of a PTX text give its statements."""

from __future__ import annotations

import re
from collections.abc import Sequence

Location = tuple[tuple[int, int, int], ...]
"""File index, line and column, the innermost place of an inlined call first."""

_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|nvidia_cutlass_dsl|lib[/\\]python3[^/\\]*)[/\\]")
"""Paths of installed libraries, which are not the user's source."""


class PtxPlaces:
    """State of the line information while a text is read from top to bottom."""

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        """Paths by index. The ``.file`` lines stand at the end of the text, so they come last."""
        self.location: Location = ()
        """Location of the statements that follow."""
        self.inside_asm = False
        """True between the comments that begin and end inline assembly."""
        self._chains: dict[tuple[int, int, int], Location] = {}

    def take(self, words: Sequence[str]) -> None:
        """Take the words of a ``.loc`` or ``.file`` line, without commas."""
        if words[0] == ".file":
            self.files[int(words[1])] = words[2].strip('"')
            return
        if self.inside_asm:
            return  # the compiler counts lines of the inline assembly as if they were lines of Python
        numbers = (int(words[1]), int(words[2]), int(words[3]))
        if numbers[2] == 0 and self.location:
            return  # the DSL gives the line of @cute.jit where it lost the place: atomics, some branches
        chain: Location = (numbers,)
        if "inlined_at" in words:
            at = words.index("inlined_at")
            outer = (int(words[at + 1]), int(words[at + 2]), int(words[at + 3]))
            chain = (numbers, *self._chains.get(outer, (outer,)))
        self._chains[numbers] = chain
        self.location = chain

    def place(self, chain: Location) -> tuple[str, int, int]:
        """Return file, line and column of the innermost place outside installed libraries.

        ``("", 0, 0)`` where the compiler gave none.
        """
        named = [(self.files.get(number, ""), line, column) for number, line, column in chain if line]
        mine = [one for one in named if not _LIBRARY.search(one[0])] or named
        return mine[0] if mine else ("", 0, 0)

"""Text of a compiled kernel, PTX or SASS, with the line of Python that each instruction came from."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

MOST_ROWS = 40_000
"""Most rows that the listings of one evaluation keep together."""
_LONGEST_ROW = 1_000
"""Characters of a row at most; a longer one is cut."""
_LARGEST_BYTES = MOST_ROWS * 256
"""Bytes that a packed listing may unpack to. A bundle from elsewhere could hold more than it seems."""
UNCOUNTED = -1
"""Value of `CodeRow.executions` where nothing was counted: a label, a declaration, code of a GPU."""


@dataclass(frozen=True, slots=True)
class CodeRow:
    """One row of a listing: an instruction, a label or a declaration."""

    text: str
    """Text of the row."""
    line: int = 0
    """Line of the candidate's file that the row came from, from 1; 0 where none is known."""
    executions: int = UNCOUNTED
    """Executions by warps, summed over the launches of one call; `UNCOUNTED` where nothing was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeListing:
    """Code of one kernel in one language. The rows are packed, so that a stored round stays small."""

    kernel: str
    """Name of the kernel in the PTX."""
    language: str
    """``PTX`` or ``SASS``."""
    packed: str
    """The rows, compressed by zlib and written in base 85; see `packed_rows`."""
    note: str = ""
    """Sentence on what is missing from the text; empty where nothing is."""

    def rows(self) -> tuple[CodeRow, ...]:
        """Unpack the rows. Raises ValueError where the packed text is damaged or too large."""
        unpack = zlib.decompressobj()
        try:
            data = unpack.decompress(base64.b85decode(self.packed), _LARGEST_BYTES)
        except zlib.error as error:
            raise ValueError(f"the listing of {self.kernel} is damaged ({error})") from error
        if not unpack.eof:
            raise ValueError(f"the listing of {self.kernel} is cut or unpacks to over {_LARGEST_BYTES} bytes")
        return tuple(_row(one) for one in data.decode().split("\n") if one)


def packed_rows(rows: Sequence[CodeRow]) -> str:
    """Return rows as `CodeListing.packed`: a line each of line, executions and text between tabs."""
    text = "\n".join(f"{one.line}\t{one.executions}\t{one.text[:_LONGEST_ROW]}" for one in rows)
    return base64.b85encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode()


def _row(written: str) -> CodeRow:
    line, executions, text = written.split("\t", 2)
    return CodeRow(text, int(line), int(executions))

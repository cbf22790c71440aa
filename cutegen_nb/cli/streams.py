"""Standard output and error as they are: with few letters, closed, full, or read only in part."""

from __future__ import annotations

import codecs
import os
import sys
from typing import TextIO

_PLAIN = {
    "─": "-", "│": "|", "–": "-", "—": "-", "−": "-", "×": "x", "÷": "/", "·": ".", "…": "...", "→": "->",
    "↳": ">", "●": "o", "○": ".", "★": "*", "µ": "u", "≤": "<=", "≥": ">=", "²": "2", "³": "3", "±": "+-",
}  # fmt: skip
_HANDLER = "cutegen_nb.plain"


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in letters), error.end


def use_plain_letters() -> None:
    """Where a stream's encoding lacks a letter, write one that it has: a table is never lost to a dash."""
    codecs.register_error(_HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def write_out(text: str) -> str:
    """Write `text` and a line end to standard output; why it could not be written, empty where it was.

    A reader who has seen enough (``| head``) is no failure.
    """
    if not text:
        return ""
    out: TextIO | None = sys.stdout
    if out is None:
        return "standard output is closed; open it, or send it to a file"
    try:
        print(text, file=out, flush=True)
    except BrokenPipeError:
        _discard(out)
    except OSError as error:
        _discard(out)
        return f"standard output could not be written ({error.strerror}); free space, or send it elsewhere"
    return ""


def _discard(out: TextIO) -> None:
    """Let what is left in the buffer go nowhere: Python would fail on it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, out.fileno())
    os.close(nowhere)

"""Output to streams that are closed, full, cut off by a reader, or lack letters in their encoding."""

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
"""Name of the codec error handler that writes `_PLAIN`."""


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in letters), error.end


def use_plain_letters() -> None:
    """Replace a letter that a stream's encoding lacks by an ASCII one, instead of raising an error."""
    codecs.register_error(_HANDLER, _plain)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def write_out(text: str) -> str:
    """Write `text` and a line end to standard output; return the reason of a failure, empty for none.

    A reader that closes the pipe early (``| head``) is no failure.
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
    """Redirect the stream to the null device, so that Python's final flush does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, out.fileno())
    os.close(nowhere)

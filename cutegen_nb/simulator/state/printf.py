"""Device-side ``printf``: C format strings filled in from argument bytes.

Source: CUDA C++ Programming Guide, "Formatted Output". This module does not know lanes or memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

LIMIT = 1 << 20
"""Most characters kept of a launch: 1 MiB, the bytes that CUDA's own buffer holds."""
_SPEC = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcspn%])")
"""A conversion of C's printf: flags, width, precision, length modifier, letter."""
_WORD, _LONG = 4, 8
"""Bytes of an ``int`` argument, and of a ``long``, ``double`` or pointer argument."""


@dataclass(slots=True)
class Printed:
    """Text that the threads of a launch printed, in thread order."""

    parts: list[str] = field(default_factory=list)
    """Pieces of the text."""
    size: int = 0
    """Characters kept so far."""

    @property
    def full(self) -> bool:
        """True if the limit is reached and no more text is kept."""
        return self.size >= LIMIT

    def add(self, text: str) -> None:
        """Append text, cut at the limit."""
        piece = text[: LIMIT - self.size]
        self.parts.append(piece)
        self.size += len(piece)

    def text(self) -> str:
        """Return the whole text, followed by a note if the limit was reached."""
        note = f"\n[kernel output cut after {LIMIT} characters]\n" if self.full else ""
        return "".join(self.parts) + note


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One conversion of a format string, with the literal text before it."""

    before: str
    """Literal text before the conversion."""
    python: str
    """The conversion in the syntax of Python's ``%`` operator; empty for none."""
    letter: str
    """Letter of the conversion, such as ``d``; empty for none."""
    offset: int
    """Byte offset of the argument in the thread's argument buffer."""
    width: int
    """Bytes of the argument; 0 for none."""


@lru_cache(maxsize=256)
def pieces_of(text: str) -> tuple[Piece, ...]:
    """Split a format string at its conversions and compute the offset of each argument."""
    found, offset, at = [], 0, 0
    for match in _SPEC.finditer(text):
        flags, width, precision, length, letter = match.groups()
        before, at = text[at : match.start()], match.end()
        if letter in "%n":
            literal = before + "%" * (letter == "%")
            found.append(Piece(before=literal, python="", letter="", offset=0, width=0))
            continue
        # C's default argument promotions: float arrives as double. Pointers (%s, %p) have 8 bytes.
        wide = letter in "eEfFgGaAsp" or length in {"l", "ll", "j", "z", "t"}
        size = _LONG if wide else _WORD
        offset = -(-offset // size) * size  # each argument is aligned to its own size
        python = f"%{flags}{width}{precision or ''}{_PYTHON.get(letter, letter)}"
        found.append(Piece(before=before, python=python, letter=letter, offset=offset, width=size))
        offset += size
    found.append(Piece(before=text[at:], python="", letter="", offset=0, width=0))
    return tuple(found)


_PYTHON = {"i": "d", "u": "d", "p": "s", "a": "s", "A": "s", "c": "s"}
"""C conversion letter → Python's if it differs. Arguments of ``p``, ``a``, ``A``, ``c`` become strings."""


def filled(
    pieces: tuple[Piece, ...], raw: bytes, double: Callable[[bytes], float], text_at: Callable[[int], str]
) -> str:
    """Return the text that one thread prints.

    Args:
        pieces: pieces of the format string.
        raw: the thread's argument buffer.
        double: function that reads eight bytes as a float.
        text_at: function that reads the C string at an address.
    """
    result = []
    for piece in pieces:
        result.append(piece.before)
        if not piece.width:
            continue
        bits = raw[piece.offset : piece.offset + piece.width]
        result.append(piece.python % _argument(piece.letter, bits, double, text_at))
    return "".join(result)


def _argument(
    letter: str, bits: bytes, double: Callable[[bytes], float], text_at: Callable[[int], str]
) -> float | int | str:
    if letter in "eEfFgG":
        return double(bits)
    if letter in "aA":
        shown = double(bits).hex()
        return shown.upper() if letter == "A" else shown
    number = int.from_bytes(bits, "little", signed=letter in "di")
    if letter == "s":
        return text_at(number)
    if letter == "c":
        return chr(number & 0xFF)
    return f"{number:#x}" if letter == "p" else number

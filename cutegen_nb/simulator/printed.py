"""What a kernel prints, as text: C's format strings filled in from bytes.

CUDA C++ Programming Guide, "Formatted Output". Nothing here knows of lanes or memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

LIMIT = 1 << 20
"""Characters kept of a launch: as many bytes as CUDA's own buffer holds."""
_SPEC = re.compile(r"%([-+ #0]*)(\d*)(\.\d+)?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcspn%])")
_WORD, _LONG = 4, 8


@dataclass(slots=True)
class Printed:
    """Text of a launch, in the order of its threads."""

    parts: list[str] = field(default_factory=list)
    """Pieces of it."""
    size: int = 0
    """Characters so far."""

    @property
    def full(self) -> bool:
        """Whether no more is kept."""
        return self.size >= LIMIT

    def add(self, text: str) -> None:
        """Keep a piece, as far as there is room."""
        piece = text[: LIMIT - self.size]
        self.parts.append(piece)
        self.size += len(piece)

    def text(self) -> str:
        """All of it, with a line that says so where it was cut."""
        note = f"\n[kernel output cut after {LIMIT} characters]\n" if self.full else ""
        return "".join(self.parts) + note


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One conversion of a format, with the literal text before it."""

    before: str
    """Text that stands before."""
    python: str
    """The conversion as Python's ``%`` takes it; empty for none."""
    letter: str
    """Its letter."""
    offset: int
    """Byte of its argument in the buffer."""
    width: int
    """Bytes of its argument; 0 for none."""


@lru_cache(maxsize=256)
def pieces_of(text: str) -> tuple[Piece, ...]:
    """A format string cut at its conversions, with where each argument lies."""
    found, offset, at = [], 0, 0
    for match in _SPEC.finditer(text):
        flags, width, precision, length, letter = match.groups()
        before, at = text[at : match.start()], match.end()
        if letter in "%n":
            literal = before + "%" * (letter == "%")
            found.append(Piece(before=literal, python="", letter="", offset=0, width=0))
            continue
        wide = letter in "eEfFgGaAsp" or length in {"l", "ll", "j", "z", "t"}
        size = _LONG if wide else _WORD
        offset = -(-offset // size) * size
        python = f"%{flags}{width}{precision or ''}{_PYTHON.get(letter, letter)}"
        found.append(Piece(before=before, python=python, letter=letter, offset=offset, width=size))
        offset += size
    found.append(Piece(before=text[at:], python="", letter="", offset=0, width=0))
    return tuple(found)


_PYTHON = {"i": "d", "u": "d", "p": "s", "a": "s", "A": "s", "c": "s"}
"""Conversions whose argument is made ready before Python formats it."""


def filled(
    pieces: tuple[Piece, ...], raw: bytes, double: Callable[[bytes], float], text_at: Callable[[int], str]
) -> str:
    """The text of one thread.

    Args:
        pieces: of the format.
        raw: the thread's argument buffer.
        double: reads eight bytes as a float.
        text_at: reads the C string at an address.
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

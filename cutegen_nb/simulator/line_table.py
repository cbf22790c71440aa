"""Which line of Python each machine instruction came from: the ``.debug_line`` section of a cubin.

The format is DWARF's line number program, version 2 to 4 (DWARF Debugging Information Format, version 4,
section 6.2). Where an instruction was inlined, the table names the innermost place, as PTX's ``.loc`` does.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

_VERSIONS = range(2, 5)
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE = 1, 2, 3
_MOST_ROWS = 1_000_000
"""A damaged table may claim more; a kernel never has so many instructions."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Rows of one function, by rising address."""

    operand_at: int
    """Where in the section its first address stands: the relocation at this place names the function."""
    addresses: tuple[int, ...]
    """Bytes from the function's beginning."""
    places: tuple[tuple[str, int], ...]
    """File and line from each address on."""

    def place(self, address: int) -> tuple[str, int]:
        """File and line of an instruction; no file and line 0 before the first row."""
        index = bisect_right(self.addresses, address)
        return self.places[index - 1] if index else ("", 0)


def sequences(section: bytes) -> list[Sequence]:
    """Every sequence of a section.

    Raises:
        ValueError: the table is of a version that is not known, or damaged.
        struct.error, IndexError: it ends too early.
    """
    found: list[Sequence] = []
    at = 0
    while at < len(section):
        length, version, header = struct.unpack_from("<IHI", section, at)
        end = at + 4 + length
        if version not in _VERSIONS or end > len(section):
            raise ValueError(f"a line table of version {version} and {length} bytes")
        found += _Program(section, at + 6, at + 10 + header, end, version).run()
        at = end
    return found


class _Program:
    """One line number program, with the registers of its state machine."""

    def __init__(self, data: bytes, length_at: int, start: int, end: int, version: int) -> None:
        self._data, self._at, self._end = data, start, end
        at = length_at + 4
        self._step = data[at]
        at += 2 if version >= 4 else 1  # noqa: PLR2004 - version 4 has instructions per bundle as well
        self._base, self._range, self._first = struct.unpack_from("<xbBB", data, at)
        self._operands = data[at + 4 : at + 3 + self._first]
        self._files = _files(data, at + 3 + self._first, start)
        if not self._range:
            raise ValueError("a line table without a range of lines")
        self._found: list[Sequence] = []
        self._begin()

    def _begin(self) -> None:
        self._address, self._file, self._line, self._operand_at = 0, 1, 1, -1
        self._rows: list[tuple[int, tuple[str, int]]] = []

    def run(self) -> list[Sequence]:
        """Execute it."""
        while self._at < self._end:
            code = self._data[self._at]
            self._at += 1
            if code >= self._first:
                self._special(code - self._first)
            elif code:
                self._standard(code)
            else:
                self._extended()
        return self._found

    def _special(self, code: int) -> None:
        self._address += code // self._range * self._step
        self._line += self._base + code % self._range
        self._row()

    def _row(self) -> None:
        if len(self._rows) >= _MOST_ROWS:
            raise ValueError("a line table without an end")
        self._rows.append((self._address, (self._files.get(self._file, ""), max(0, self._line))))

    def _standard(self, code: int) -> None:
        if code == _COPY:
            self._row()
        elif code == _ADVANCE_PC:
            self._address += self._unsigned() * self._step
        elif code == _ADVANCE_LINE:
            self._line += self._signed()
        elif code == _SET_FILE:
            self._file = self._unsigned()
        elif code == _CONST_ADD_PC:
            self._address += (255 - self._first) // self._range * self._step
        elif code == _FIXED_ADVANCE_PC:
            (added,) = struct.unpack_from("<H", self._data, self._at)
            self._address += added
            self._at += 2
        else:
            for _ in range(self._operands[code - 1]):
                self._unsigned()

    def _extended(self) -> None:
        size = self._unsigned()
        at, self._at = self._at, self._at + size
        code = self._data[at] if size else 0
        if code == _END_SEQUENCE:
            rows = sorted(self._rows, key=lambda row: row[0])
            self._found.append(
                Sequence(self._operand_at, tuple(row[0] for row in rows), tuple(row[1] for row in rows))
            )
            self._begin()
        elif code == _SET_ADDRESS:
            self._address = int.from_bytes(self._data[at + 1 : at + size], "little")
            self._operand_at = at + 1
        elif code == _DEFINE_FILE:
            raise ValueError("a line table that names files on its way")

    def _unsigned(self) -> int:
        value, self._at = _leb(self._data, self._at)
        return value

    def _signed(self) -> int:
        start = self._at
        value = self._unsigned()
        bits = 7 * (self._at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _leb(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number and where the next byte stands."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:  # noqa: PLR2004 - the top bit says whether more follows
            return value, at


def _files(data: bytes, at: int, end: int) -> dict[int, str]:
    """Number of each file → its path."""
    folders = [""]
    while data[at]:
        text, at = _string(data, at)
        folders.append(text)
    at += 1
    found: dict[int, str] = {}
    while at < end and data[at]:
        text, at = _string(data, at)
        folder, at = _leb(data, at)
        _, at = _leb(data, at)
        _, at = _leb(data, at)
        within = folders[folder] if folder < len(folders) else ""
        found[len(found) + 1] = f"{within}/{text}" if within and not text.startswith("/") else text
    return found


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(errors="replace"), end + 1

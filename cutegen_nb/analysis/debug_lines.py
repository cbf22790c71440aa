"""Which line of Python each machine instruction came from: the line table of a cubin, read with no tool.

The compiler writes ``.debug_line`` as DWARF has it (version 2; read up to 5), one sequence of rows for each
kernel. NVIDIA adds extended opcodes for inlined calls; they carry their length and are passed over. Checked
against ``nvdisasm -g``.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import PurePosixPath

from cutegen_nb.analysis.elf import RELOCATIONS, Section, sections_of, symbol_section, text_at

_VERSIONS = range(2, 6)
_COUNTS_OPERATIONS = 4
"""From this version on the header has the most operations of an instruction."""
_LISTS_FILES = 5
"""From this version on files and directories are listed by a form that the header describes."""
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_LINE_STRINGS, _BLOCK16, _STRING, _UDATA, _DATA1, _DATA2, _DATA4, _DATA8, _STRINGS = (
    0x1F, 0x1E, 0x08, 0x0F, 0x0B, 0x05, 0x06, 0x07, 0x0E,
)  # fmt: skip
_PATH, _DIRECTORY = 1, 2


class BadLineTable(ValueError):
    """The bytes are no cubin, or its line table is not as DWARF has it."""


@dataclass(frozen=True, slots=True)
class LineTable:
    """Where the instructions of one kernel came from."""

    offsets: tuple[int, ...]
    """Byte offsets into the kernel's code, ascending; each begins a run of instructions of one line."""
    places: tuple[tuple[str, int], ...]
    """File and line, from 1, of each run."""

    def at(self, offset: int) -> tuple[str, int]:
        """File and line of the instruction at a byte offset; an empty file and 0 where none is known."""
        index = bisect_right(self.offsets, offset) - 1
        return self.places[index] if index >= 0 else ("", 0)


@dataclass(slots=True)
class _Row:
    address: int = 0
    file: int = 1
    line: int = 1
    kernel: str = ""


def lines_of(cubin: bytes) -> dict[str, LineTable]:
    """The line table of every kernel of a cubin, by the kernel's name; empty where it was built without.

    Raises:
        BadLineTable: it is no 64-bit ELF file, or its line table ends early or is of an unknown version.
    """
    try:
        sections = sections_of(cubin)
        table = next((one.data for one in sections if one.name == ".debug_line"), b"")
        kernels = _relocations(sections)
        only = [one.name.removeprefix(".text.") for one in sections if one.name.startswith(".text.")]
        runs: dict[str, list[tuple[int, tuple[str, int]]]] = {}
        at = 0
        while at < len(table):
            (size,) = struct.unpack_from("<I", table, at)
            program = _Program(table, at, at + 4 + size, _strings(sections))
            for kernel, offset, place in program.rows(kernels, only[0] if len(only) == 1 else ""):
                runs.setdefault(kernel, []).append((offset, place))
            at += 4 + size
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as problem:
        raise BadLineTable(
            f"Cannot read the line table of a cubin of {len(cubin)} bytes ({problem!r}); its counts have no "
            "lines."
        ) from problem
    return {
        kernel: LineTable(tuple(one[0] for one in ordered), tuple(one[1] for one in ordered))
        for kernel, found in runs.items()
        if kernel and (ordered := sorted(found, key=lambda one: one[0]))
    }


def _strings(sections: list[Section]) -> dict[int, bytes]:
    """String sections that version 5 refers to, by the form that does."""
    by_name = {one.name: one.data for one in sections}
    return {_LINE_STRINGS: by_name.get(".debug_line_str", b""), _STRINGS: by_name.get(".debug_str", b"")}


def _relocations(sections: list[Section]) -> dict[int, str]:
    """The kernel whose address belongs at an offset of the line table."""
    found: dict[int, str] = {}
    for one in sections:
        if one.kind != RELOCATIONS or one.name != ".rela.debug_line":
            continue
        symbols = sections[one.link]
        for offset, info, _ in struct.iter_unpack("<QQq", one.data):
            found[offset] = symbol_section(info >> 32, symbols, sections).name.removeprefix(".text.")
    return found


class _Program:
    """One unit of the line table: its header is read at once, its rows are run through."""

    def __init__(self, table: bytes, start: int, end: int, strings: dict[int, bytes]) -> None:
        self._table, self._end, self._strings = table, end, strings
        self._at = start + 4
        self.version = self._number("<H")
        if self.version not in _VERSIONS:
            raise BadLineTable(f"version {self.version}")
        if self.version >= _LISTS_FILES:  # it has the sizes of addresses and segments first
            self._at += 2
        length = self._number("<I")
        self._body = self._at + length
        self._step = self._number("<B")
        if self.version >= _COUNTS_OPERATIONS:
            self._at += 1
        self._at += 1
        self._base = self._number("<b")
        self._range = self._number("<B")
        first = self._number("<B")
        self._arguments = [self._number("<B") for _ in range(first - 1)]
        self._files = self._listed() if self.version >= _LISTS_FILES else self._counted()

    def rows(self, kernels: dict[int, str], only: str) -> list[tuple[str, int, tuple[str, int]]]:
        """Kernel, offset and place of each row; `only` is the kernel of sequences without a relocation."""
        self._at = self._body
        found: list[tuple[str, int, tuple[str, int]]] = []
        row = _Row(kernel=only)
        first = len(self._arguments) + 1
        while self._at < self._end:
            code = self._number("<B")
            if code >= first:
                row.address += (code - first) // self._range * self._step
                row.line += self._base + (code - first) % self._range
                found.append(self._place(row))
            elif code == _COPY:
                found.append(self._place(row))
            elif code == 0:
                row = self._extended(row, kernels, only)
            else:
                self._standard(code, row, first)
        return found

    def _place(self, row: _Row) -> tuple[str, int, tuple[str, int]]:
        return row.kernel, row.address, (self._files.get(row.file, ""), row.line)

    def _extended(self, row: _Row, kernels: dict[int, str], only: str) -> _Row:
        size = self._unsigned()
        code, end = self._table[self._at], self._at + size
        if code == _END_SEQUENCE:
            row = _Row(kernel=only)
        elif code == _SET_ADDRESS:
            (address,) = struct.unpack_from("<Q", self._table, self._at + 1)
            row.address, row.kernel = address, kernels.get(self._at + 1, only)
        self._at = end
        return row

    def _standard(self, code: int, row: _Row, first: int) -> None:
        if code == _ADVANCE_PC:
            row.address += self._unsigned() * self._step
        elif code == _ADVANCE_LINE:
            row.line += self._signed()
        elif code == _SET_FILE:
            row.file = self._unsigned()
        elif code == _CONST_ADD_PC:
            row.address += (255 - first) // self._range * self._step
        elif code == _FIXED_ADVANCE_PC:
            row.address += self._number("<H")
        else:
            for _ in range(self._arguments[code - 1]):
                self._unsigned()

    def _counted(self) -> dict[int, str]:
        """Files of versions 2 to 4, from 1."""
        directories = [""]
        while text := self._string():
            directories.append(text)
        files: dict[int, str] = {}
        while name := self._string():
            directory = self._unsigned()
            self._unsigned()
            self._unsigned()
            files[len(files) + 1] = str(PurePosixPath(directories[directory]) / name)
        return files

    def _listed(self) -> dict[int, str]:
        """Files of version 5, from 0."""
        directories = [str(one.get(_PATH, "")) for one in self._entries()]
        return {
            number: str(PurePosixPath(directories[int(one.get(_DIRECTORY, 0))]) / str(one.get(_PATH, "")))
            for number, one in enumerate(self._entries())
        }

    def _entries(self) -> list[dict[int, int | str]]:
        shape = [(self._unsigned(), self._unsigned()) for _ in range(self._number("<B"))]
        return [{kind: self._form(form) for kind, form in shape} for _ in range(self._unsigned())]

    def _form(self, form: int) -> int | str:
        if form == _STRING:
            return self._string()
        if form in self._strings:
            return text_at(self._strings[form], self._number("<I"))
        if form == _UDATA:
            return self._unsigned()
        if form == _BLOCK16:
            self._at += 16
            return 0
        return self._number({_DATA1: "<B", _DATA2: "<H", _DATA4: "<I", _DATA8: "<Q"}[form])

    def _string(self) -> str:
        text = text_at(self._table, self._at)
        self._at += len(text.encode()) + 1
        return text

    def _number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._table, self._at)
        self._at += struct.calcsize(form)
        return int(value)

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._table[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - the bit that says another byte follows
                return value

    def _signed(self) -> int:
        start = self._at
        value = self._unsigned()
        bits = 7 * (self._at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

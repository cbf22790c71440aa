"""Reader of the DWARF line table of a cubin: machine instructions to lines of Python.

The compiler writes ``.debug_line`` as DWARF defines it (version 2; versions up to 5 are read), one sequence
of rows for each kernel. NVIDIA adds extended opcodes for inlined calls; they carry their length and are
skipped. The result was checked against ``nvdisasm -g``.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import PurePosixPath

from cutegen_nb.analysis.binary.elf import RELOCATIONS, ElfSection, sections_of, symbol_section, text_at

_VERSIONS = range(2, 6)
"""Versions of the DWARF line table that can be read."""
_COUNTS_OPERATIONS = 4
"""First version whose header has the field ``maximum_operations_per_instruction``."""
_LISTS_FILES = 5
"""First version whose header describes the form of its lists of files and directories."""
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
"""Standard opcodes ``DW_LNS_…`` that change the state."""
_END_SEQUENCE, _SET_ADDRESS = 1, 2
"""Extended opcodes ``DW_LNE_end_sequence`` and ``DW_LNE_set_address``."""
_LINE_STRINGS, _BLOCK16, _STRING, _UDATA, _DATA1, _DATA2, _DATA4, _DATA8, _STRINGS = (
    0x1F, 0x1E, 0x08, 0x0F, 0x0B, 0x05, 0x06, 0x07, 0x0E,
)  # fmt: skip
"""Attribute forms ``DW_FORM_…`` of file and directory entries in version 5."""
_PATH, _DIRECTORY = 1, 2
"""Content types ``DW_LNCT_path`` and ``DW_LNCT_directory_index`` of version 5."""


class BadLineTable(ValueError):
    """Bytes that are no cubin, or whose line table is not valid DWARF."""


@dataclass(frozen=True, slots=True)
class LineTable:
    """Source lines of one kernel's instructions."""

    offsets: tuple[int, ...]
    """Byte offsets into the kernel's code, ascending; each starts a run of instructions of one line."""
    places: tuple[tuple[str, int], ...]
    """File and line (from 1) of each run."""

    def at(self, offset: int) -> tuple[str, int]:
        """Return file and line of the instruction at a byte offset; ``("", 0)`` where none is known."""
        index = bisect_right(self.offsets, offset) - 1
        return self.places[index] if index >= 0 else ("", 0)


@dataclass(slots=True)
class _Row:
    """Registers of the line-number state machine, with their initial values (DWARF 6.2.2)."""

    address: int = 0
    file: int = 1
    line: int = 1
    kernel: str = ""


def lines_of(cubin: bytes) -> dict[str, LineTable]:
    """Return the line table of every kernel by name; empty for a cubin built without line information.

    Raises:
        BadLineTable: no 64-bit ELF file, or a line table that ends early or has an unknown version.
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


def _strings(sections: list[ElfSection]) -> dict[int, bytes]:
    """Return the string sections that version 5 refers to, by the form that refers to each."""
    by_name = {one.name: one.data for one in sections}
    return {_LINE_STRINGS: by_name.get(".debug_line_str", b""), _STRINGS: by_name.get(".debug_str", b"")}


def _relocations(sections: list[ElfSection]) -> dict[int, str]:
    """Return the kernel whose address is relocated to each offset of the line table."""
    found: dict[int, str] = {}
    for one in sections:
        if one.kind != RELOCATIONS or one.name != ".rela.debug_line":
            continue
        symbols = sections[one.link]
        for offset, info, _ in struct.iter_unpack("<QQq", one.data):
            # The upper half of ``r_info`` is the symbol's number (ELF-64).
            found[offset] = symbol_section(info >> 32, symbols, sections).name.removeprefix(".text.")
    return found


class _Program:
    """One unit of the line table: its header, read at once, and its line-number program."""

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
        """Run the program and return kernel, offset and place of each row.

        `only` is the kernel of sequences whose address has no relocation.
        """
        self._at = self._body
        found: list[tuple[str, int, tuple[str, int]]] = []
        row = _Row(kernel=only)
        first = len(self._arguments) + 1
        while self._at < self._end:
            code = self._number("<B")
            if code >= first:
                # Special opcode: advances address and line together and appends a row (DWARF 6.2.5.1).
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
            # Advances the address as special opcode 255 would (DW_LNS_const_add_pc).
            row.address += (255 - first) // self._range * self._step
        elif code == _FIXED_ADVANCE_PC:
            row.address += self._number("<H")
        else:
            # Unknown standard opcodes are skipped: the header gives the number of their LEB128 arguments.
            for _ in range(self._arguments[code - 1]):
                self._unsigned()

    def _counted(self) -> dict[int, str]:
        """Read the file table of versions 2 to 4, numbered from 1."""
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
        """Read the file table of version 5, numbered from 0."""
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
        """Read an unsigned LEB128 number: 7 bits a byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._table[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - the bit that says another byte follows
                return value

    def _signed(self) -> int:
        """Read a signed LEB128 number: bit 6 of the last byte is the sign."""
        start = self._at
        value = self._unsigned()
        bits = 7 * (self._at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

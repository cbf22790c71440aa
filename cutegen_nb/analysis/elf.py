"""Sections and symbols of a 64-bit ELF file, which a cubin is, with the standard library.

Offsets and numbers are those of the ELF-64 object file format, version 1.5. A file that ends before its
tables do, or points outside itself, raises what reading it gives: struct.error, IndexError, ValueError or
UnicodeDecodeError; who reads a certain kind of file says what is missing then.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SYMBOLS = 2
"""``SHT_SYMTAB``."""
RELOCATIONS = 4
"""``SHT_RELA``."""
_NO_BYTES = 8
"""``SHT_NOBITS``: a section with a size and no bytes in the file."""
_SYMBOL_BYTES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of the file."""

    name: str
    """As the file names it: ``.text.KERNEL``."""
    kind: int
    """``SHT_…`` of the format."""
    data: bytes
    """Empty where the file holds none."""
    size: int
    """Bytes, also of a section that the file holds none of."""
    link: int
    """Number of the section that it refers to."""


def sections_of(file: bytes) -> list[Section]:
    """Every section, in the order of their numbers. Raises ValueError for what is no 64-bit ELF file."""
    if file[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    (table,) = struct.unpack_from("<Q", file, 0x28)
    entry, count, names = struct.unpack_from("<HHH", file, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", file, table + index * entry) for index in range(count)]
    strings = file[headers[names][4] : headers[names][4] + headers[names][5]]
    return [
        Section(
            name=text_at(strings, name),
            kind=kind,
            data=b"" if kind == _NO_BYTES else file[offset : offset + size],
            size=size,
            link=link,
        )
        for name, kind, _, _, offset, size, link, _ in headers
    ]


def text_at(strings: bytes, offset: int) -> str:
    """The text that begins at an offset and ends at the next zero byte."""
    return strings[offset : strings.index(b"\0", offset)].decode()


def symbol_name(number: int, symbols: Section, sections: list[Section]) -> str:
    """Name of a symbol of a table of symbols."""
    (name,) = struct.unpack_from("<I", symbols.data, number * _SYMBOL_BYTES)
    return text_at(sections[symbols.link].data, name)


def symbol_section(number: int, symbols: Section, sections: list[Section]) -> Section:
    """The section that a symbol is defined in."""
    (section,) = struct.unpack_from("<H", symbols.data, number * _SYMBOL_BYTES + 6)
    return sections[int(section)]

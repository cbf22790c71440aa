"""Reader of sections and symbols of a 64-bit ELF file, such as a cubin.

Offsets and numbers are those of the ELF-64 object file format, version 1.5. A file that ends before its
tables do, or points outside itself, raises struct.error, IndexError, ValueError or UnicodeDecodeError.
Callers turn these into an error of their own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

SYMBOLS = 2
"""Section type ``SHT_SYMTAB``."""
RELOCATIONS = 4
"""Section type ``SHT_RELA``."""
_NO_BYTES = 8
"""Section type ``SHT_NOBITS``: a section with a size but no bytes in the file."""
_SYMBOL_BYTES = 24
"""Bytes of a symbol-table entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfSection:
    """One section of an ELF file."""

    name: str
    """Name in the file: ``.text.KERNEL``."""
    kind: int
    """Section type, ``SHT_…``."""
    data: bytes
    """Bytes of the section; empty where the file holds none."""
    size: int
    """Size in bytes, also of a section without bytes in the file."""
    link: int
    """Number of the section that this one refers to (``sh_link``)."""


def sections_of(file: bytes) -> list[ElfSection]:
    """Return every section, by number. Raises ValueError for a file that is not 64-bit ELF."""
    if file[:5] != b"\x7fELF\x02":
        raise ValueError("no 64-bit ELF file")
    # e_shoff; then e_shentsize, e_shnum and e_shstrndx.
    (table,) = struct.unpack_from("<Q", file, 0x28)
    entry, count, names = struct.unpack_from("<HHH", file, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", file, table + index * entry) for index in range(count)]
    strings = file[headers[names][4] : headers[names][4] + headers[names][5]]
    return [
        ElfSection(
            name=text_at(strings, name),
            kind=kind,
            data=b"" if kind == _NO_BYTES else file[offset : offset + size],
            size=size,
            link=link,
        )
        for name, kind, _, _, offset, size, link, _ in headers
    ]


def text_at(strings: bytes, offset: int) -> str:
    """Return the text from an offset to the next zero byte."""
    return strings[offset : strings.index(b"\0", offset)].decode()


def symbol_name(number: int, symbols: ElfSection, sections: list[ElfSection]) -> str:
    """Return the name of a symbol of a symbol table."""
    (name,) = struct.unpack_from("<I", symbols.data, number * _SYMBOL_BYTES)
    return text_at(sections[symbols.link].data, name)


def symbol_section(number: int, symbols: ElfSection, sections: list[ElfSection]) -> ElfSection:
    """Return the section that defines a symbol."""
    # st_shndx lies 6 bytes into the entry.
    (section,) = struct.unpack_from("<H", symbols.data, number * _SYMBOL_BYTES + 6)
    return sections[int(section)]

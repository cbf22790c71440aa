"""The DWARF line table leads an instruction to its line, whatever its offset."""

import struct

import pytest

from cutegen_nb.analysis.binary.debug_lines import BadLineTable, LineTable, lines_of


def elf(sections):
    """A 64-bit ELF file of sections without symbols."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*sections, ".shstrtab"))
    bodies = [b"", *sections.values(), names]
    headers, data = b"", b""
    for name, body in zip(("", *sections, ".shstrtab"), bodies, strict=True):
        at = names.index(b"\0" + name.encode() + b"\0") + 1 if name else 0
        headers += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, 64 + len(data), len(body), 0, 0, 1, 0)
        data += body
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, 64 + len(data))
    struct.pack_into("<HHH", head, 0x3A, 64, len(bodies), len(bodies) - 1)
    return bytes(head) + data + headers


def line_program(*operations, version=2):
    """Unit of one file ``k.py`` whose special opcodes advance 16 bytes and any of -5 to 8 lines."""
    arguments = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1))
    head = bytes((16, 1)) + struct.pack("<bBB", -5, 14, 10) + arguments
    head += b"folder\0\0" + b"k.py\0\1\0\0\0"
    body = struct.pack("<HI", version, len(head)) + head + b"".join(operations)
    return struct.pack("<I", len(body)) + body


START = b"\x00\x09\x02" + struct.pack("<Q", 0)
END = b"\x00\x01\x01"


def special(lines, steps):
    return bytes((10 + (lines + 5) + 14 * steps,))


def test_rows_lead_each_offset_to_file_and_line():
    program = line_program(START, special(6, 0), special(2, 1), b"\x03\x7d", special(0, 2), END)
    table = lines_of(elf({".text.kernel": b"", ".debug_line": program}))["kernel"]
    assert table.offsets == (0, 16, 48)
    assert [table.at(offset) for offset in (0, 15, 16, 47, 4096)] == [
        ("folder/k.py", 7), ("folder/k.py", 7), ("folder/k.py", 9), ("folder/k.py", 9), ("folder/k.py", 6),
    ]  # fmt: skip


def test_before_the_first_row_no_line_is_known():
    assert LineTable((16,), (("k.py", 3),)).at(0) == ("", 0)


def test_a_cubin_without_line_information_has_none():
    assert lines_of(elf({".text.kernel": b""})) == {}


@pytest.mark.parametrize(
    "file",
    [
        b"no cubin",
        elf({".debug_line": line_program(START, version=9)}),
        elf({".debug_line": line_program(START)[:20]}),
    ],
)
def test_what_cannot_be_read_is_one_sentence(file):
    with pytest.raises(BadLineTable, match=f"a cubin of {len(file)} bytes"):
        lines_of(file)

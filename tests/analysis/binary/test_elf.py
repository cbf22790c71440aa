"""Sections and symbols of a cubin that ptxas wrote."""

from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.elf import SYMBOLS, sections_of, symbol_name, symbol_section, text_at

CUBIN = (Path(__file__).parents[2] / "simulator" / "data" / "spills.sm_80.cubin").read_bytes()


@pytest.fixture(scope="module")
def sections():
    return {one.name: one for one in sections_of(CUBIN)}


def test_the_code_of_the_kernel_has_its_bytes(sections):
    code = sections[".text.kernel"]
    assert len(code.data) == code.size == 5632
    assert code.data in CUBIN


def test_a_symbol_leads_to_its_section(sections):
    every, table = sections_of(CUBIN), sections[".symtab"]
    assert table.kind == SYMBOLS
    names = {symbol_name(number, table, every): number for number in range(table.size // 24)}
    assert symbol_section(names["kernel"], table, every).name == ".text.kernel"


def test_a_text_ends_at_its_zero():
    assert text_at(b"one\0two\0", 4) == "two"
    with pytest.raises(ValueError, match="subsection not found"):
        text_at(b"endless", 0)


@pytest.mark.parametrize("file", [b"", b"\x7fELF\x01" + bytes(100), b"PK\x03\x04"])
def test_another_file_is_refused(file):
    with pytest.raises(ValueError, match="64-bit ELF"):
        sections_of(file)

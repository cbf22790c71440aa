"""Names of machine instructions from their encoding, as the disassembler prints them."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

from cutegen_nb.analysis.binary.machine_code import instructions

DATA = Path(__file__).parents[2] / "simulator" / "data"
_WIDTH = re.compile(r"\.[US]?(8|16|64|128)(?=\.|$)")


def plain(name):
    """An instruction's name as the disassembler writes it, cut to what is read here."""
    first = name.split(".")[0].replace("REDG", "RED")
    if first in {"LD", "LDG", "LDS", "LDL", "ST", "STG", "STS", "STL", "LDGSTS"}:
        widths = _WIDTH.findall(name)
        return f"{first}.{widths[-1] if widths else 32}"
    return first


def test_instructions_of_four_architectures_have_the_names_that_were_recorded():
    recorded = json.loads((DATA / "sass_names.json").read_text())
    assert len({architecture for architecture, *_ in recorded["instructions"]}) >= 4
    for architecture, low, high, name in recorded["instructions"]:
        code = struct.pack("<QQ", int(low, 16), int(high, 16))
        found = [one.replace("REDG", "RED") for _, one in instructions(code, architecture)]
        assert found == ([] if name.startswith("NOP") else [plain(name)]), (architecture, name)

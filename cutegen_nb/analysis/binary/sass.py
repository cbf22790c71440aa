"""Instructions of a compiled kernel, counted by name and by line of Python."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

from cutegen_nb.analysis.binary.cubin import BadCubin, spills_of
from cutegen_nb.analysis.binary.debug_lines import BadLineTable, LineTable, lines_of
from cutegen_nb.analysis.binary.elf import sections_of
from cutegen_nb.analysis.binary.machine_code import instructions
from cutegen_nb.core.profile import CodeLine, CompiledCode

Place = tuple[str, int]
"""File and line."""


def code_of_cubin(cubin: bytes, kernel: str, architecture: str) -> CompiledCode:
    """Count the instructions of one kernel of a cubin.

    SASS names do not hold the shapes of matrix products, so the result has none.

    Args:
        cubin: machine code of a module.
        kernel: its name in the cubin.
        architecture: architecture it was compiled for: ``sm_90a``.

    Raises:
        BadCubin: the bytes are no readable cubin, or it has no such kernel.
    """
    try:
        sections = sections_of(cubin)
        code = {one.name: one.data for one in sections}[f".text.{kernel}"]
        spills = spills_of(kernel, sections)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as problem:
        raise BadCubin(f"Cannot read the machine code of {kernel} ({problem!r}).") from problem
    table = _line_table(cubin, kernel)
    found = list(instructions(code, architecture))
    places, moved = Counter[Place](), Counter[Place]()
    if table is not None:
        places.update(table.at(offset) for offset, _ in found)
        # A spill is attributed to the line of the code it was made for, as the line table has it.
        for offset, (_, size) in spills.items():
            moved[table.at(offset)] += size
    return CompiledCode(
        language="SASS", instructions=by_name(name for _, name in found), lines=code_lines(places, moved)
    )


def _line_table(cubin: bytes, kernel: str) -> LineTable | None:
    """Return the kernel's line table; None if none can be read, which leaves the counts without lines."""
    try:
        return lines_of(cubin).get(kernel)
    except BadLineTable:
        return None


def code_lines(places: Counter[Place], moved: Counter[Place]) -> tuple[CodeLine, ...]:
    """Return the instructions and spilled bytes of each line, in file and line order."""
    return tuple(
        CodeLine(file=file, line=line, instructions=places[file, line], spill_bytes=moved[file, line])
        for file, line in sorted(places)
        if line > 0
    )


def by_name(names: Iterable[str]) -> dict[str, int]:
    """Return counts by name, the largest first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))

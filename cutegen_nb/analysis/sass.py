"""What a kernel's machine code holds: instructions by name, and what its lines of Python became."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

from cutegen_nb.analysis.cubin_facts import BadCubin, spills_of
from cutegen_nb.analysis.debug_lines import BadLineTable, LineTable, lines_of
from cutegen_nb.analysis.elf import sections_of
from cutegen_nb.analysis.machine_code import instructions
from cutegen_nb.core.profile import CodeLine, CompiledCode

Place = tuple[str, int]
"""File and line."""


def code_of_cubin(cubin: bytes, kernel: str, architecture: str) -> CompiledCode:
    """The instructions of one kernel; shapes of matrix products are not in their names.

    Args:
        cubin: machine code of a module.
        kernel: its name there.
        architecture: what it was compiled for: ``sm_90a``.

    Raises:
        BadCubin: it is no cubin that can be read, or has no such kernel.
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
        # A spill has no line of its own: the table has it beside what it was made for.
        for offset, (_, size) in spills.items():
            moved[table.at(offset)] += size
    return CompiledCode(
        language="SASS", instructions=by_name(name for _, name in found), lines=code_lines(places, moved)
    )


def _line_table(cubin: bytes, kernel: str) -> LineTable | None:
    """None where the cubin has none that can be read: instructions count without lines, too."""
    try:
        return lines_of(cubin).get(kernel)
    except BadLineTable:
        return None


def code_lines(places: Counter[Place], moved: Counter[Place]) -> tuple[CodeLine, ...]:
    """Lines with the instructions and spilled bytes of each, in file and line order."""
    return tuple(
        CodeLine(file=file, line=line, instructions=places[file, line], spill_bytes=moved[file, line])
        for file, line in sorted(places)
        if line > 0
    )


def by_name(names: Iterable[str]) -> dict[str, int]:
    """Counts by name, the most first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))

"""Tables of a kernel's compiled instructions. None needs a GPU."""

from __future__ import annotations

from cutegen_nb.analysis.binary.instruction_classes import by_class
from cutegen_nb.analysis.figures.quantity import count, share
from cutegen_nb.analysis.tables.compiled_code_text import distinct, names_text
from cutegen_nb.analysis.tables.counts import CountTable, kernel_name
from cutegen_nb.core.profile import CompiledCode, Profile

_SOURCES = {
    "SASS": "Machine code as it stands: a loop's instructions count once, however often they run. The bits "
    "after a memory access are those that each thread moves.",
    "PTX": "The machine code could not be read: this is PTX, which the assembler changes further. A loop's "
    "instructions count once, however often they run.",
}
"""Note below each table, by language of the code."""


def compiled(profile: Profile) -> tuple[CountTable, ...]:
    """Return one table of instructions by class of work for each kernel whose code was read."""
    found: dict[str, CompiledCode] = {}
    for launch in distinct(profile):
        if launch.code is not None and launch.code.instructions:
            found.setdefault(kernel_name(launch), launch.code)
    return tuple(_table(name, code, alone=len(found) == 1) for name, code in found.items())


def _table(name: str, code: CompiledCode, *, alone: bool) -> CountTable:
    total = sum(code.instructions.values())
    rows = [
        (kind, count(sum(names.values())), share(sum(names.values()) / total), names_text(names))
        for kind, names in by_class(code).items()
    ]
    if code.mma_shapes:
        products = sum(code.mma_shapes.values())
        rows.append(("matrix products, by shape", count(products), "", names_text(code.mma_shapes)))
    which = "" if alone else f" of {name}"
    return CountTable(
        title=f"Instructions{which} in the compiled code ({code.language}, {count(total)} in all)",
        columns=(("Kind", False), ("Instructions", True), ("Share", True), ("Which", False)),
        rows=tuple(rows),
        note=_SOURCES[code.language],
    )

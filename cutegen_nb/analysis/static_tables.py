"""What the compiler made of each kernel, as tables of words. No GPU is needed for any of it."""

from __future__ import annotations

from cutegen_nb.analysis.count_tables import CountTable, kernel_name
from cutegen_nb.analysis.quantity import count, share
from cutegen_nb.analysis.static_classes import by_class
from cutegen_nb.analysis.static_text import distinct, names_text
from cutegen_nb.core.profile import CompiledCode, Profile

_SOURCES = {
    "SASS": "Machine code as it stands: a loop's instructions count once, however often they run. The bits "
    "after a memory access are those that each thread moves.",
    "PTX": "The machine code could not be read: this is PTX, which the assembler changes further. A loop's "
    "instructions count once, however often they run.",
}


def compiled(profile: Profile) -> tuple[CountTable, ...]:
    """Instructions of each kernel by kind of work; one table a kernel, none where its code was not read."""
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

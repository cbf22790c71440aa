"""What a kernel was compiled to: machine code where it can be read, else PTX, with the lines of Python."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

from cutegen_nb.core.profile import CodeLine, CompiledCode
from cutegen_nb.simulator.cubin_facts import BadCubin, Section, sections_of, spills_of
from cutegen_nb.simulator.line_table import Sequence, sequences
from cutegen_nb.simulator.machine_code import instructions
from cutegen_nb.simulator.ptx_model import TYPE_BYTES, Instruction, Kernel

_SHAPED = {"mma": "sync", "wgmma": "mma_async", "wmma": "mma"}
"""Instructions that say the shape of their matrix product, with the word that they have to have."""
_MEMORY = frozenset({"ld", "st", "ldu", "cp", "atom", "red"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_NARROW = frozenset({"s4", "u4", "b1"})
_SYMBOL_BYTES = 24
_Place = tuple[str, int]
"""File and line."""
_KEPT = 64
_known: dict[tuple[int, str], tuple[object, CompiledCode]] = {}


def code_of(kernel: Kernel, cubin: bytes, architecture: str) -> CompiledCode:
    """A kernel's instructions, read once for each parsed kernel.

    Args:
        kernel: as parsed from the PTX.
        cubin: machine code of its module; empty where there is none.
        architecture: what the machine code was compiled for.
    """
    key = (id(kernel), architecture)
    known = _known.get(key)
    if known is None or known[0] is not kernel:
        if len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        known = _known[key] = (kernel, _read(kernel, cubin, architecture))
    return known[1]


def _read(kernel: Kernel, cubin: bytes, architecture: str) -> CompiledCode:
    try:
        return _from_sass(kernel, cubin, architecture)
    except (BadCubin, struct.error, IndexError, KeyError, ValueError):  # a compiler of tomorrow
        return _from_ptx(kernel)


# -- machine code --------------------------------------------------------------------------------------------
def _from_sass(kernel: Kernel, cubin: bytes, architecture: str) -> CompiledCode:
    sections = sections_of(cubin)
    code = {one.name: one.data for one in sections}[f".text.{kernel.name}"]
    found = list(instructions(code, architecture))
    table = _table(kernel.name, sections)
    places, moved = Counter[_Place](), Counter[_Place]()
    if table is not None:
        places.update(table.place(offset) for offset, _ in found)
        # A spill has no line of its own: the table has it beside what it was made for.
        for offset, (_, size) in spills_of(kernel.name, sections).items():
            moved[table.place(offset)] += size
    return CompiledCode(
        language="SASS",
        instructions=_ordered(name for _, name in found),
        mma_shapes=_ordered(filter(None, map(_shape, kernel.body))),
        lines=_lines(places, moved),
    )


def _table(kernel: str, sections: list[Section]) -> Sequence | None:
    """The kernel's part of the line table; None where there is none."""
    by_name = {one.name: one for one in sections}
    table = by_name.get(".debug_line")
    if table is None:
        return None
    owners = _owners(by_name.get(".rela.debug_line") or by_name.get(".rel.debug_line"), sections)
    found = sequences(table.data)
    own = [one for one in found if owners.get(one.operand_at) == f".text.{kernel}"]
    return own[0] if own else None


def _owners(relocations: Section | None, sections: list[Section]) -> dict[int, str]:
    """Place of each relocation in the line table → section that it stands for."""
    if relocations is None:
        return {}
    symbols = next(one for one in sections if one.name == ".symtab").data
    form = "<QQq" if relocations.name.startswith(".rela") else "<QQ"
    found = {}
    for entry in struct.iter_unpack(form, relocations.data):
        symbol = entry[1] >> 32
        (section,) = struct.unpack_from("<H", symbols, symbol * _SYMBOL_BYTES + 6)
        found[entry[0]] = sections[section].name
    return found


def _lines(places: Counter[_Place], moved: Counter[_Place]) -> tuple[CodeLine, ...]:
    return tuple(
        CodeLine(file=file, line=line, instructions=places[file, line], spill_bytes=moved[file, line])
        for file, line in sorted(places)
        if line > 0
    )


# -- PTX -----------------------------------------------------------------------------------------------------
def _from_ptx(kernel: Kernel) -> CompiledCode:
    places = Counter((item.file, item.line) for item in kernel.body)
    return CompiledCode(
        language="PTX",
        instructions=_ordered(map(_ptx_name, kernel.body)),
        mma_shapes=_ordered(filter(None, map(_shape, kernel.body))),
        lines=_lines(places, Counter()),
    )


def _ptx_name(item: Instruction) -> str:
    """``fma.f32``, ``ld.global.128``: the operation, the space, and the type or the bits a thread moves."""
    kind = next((one for one in reversed(item.modifiers) if one in TYPE_BYTES), "")
    if item.opcode not in _MEMORY:
        return f"{item.opcode}.{kind}" if kind else item.opcode
    space = next(
        (one for one in item.modifiers if one in {"global", "shared", "local", "param", "const"}), ""
    )
    if item.opcode == "cp":
        return "cp.async" if "bulk" not in item.modifiers else "cp.async.bulk"
    count = next((_VECTORS[one] for one in item.modifiers if one in _VECTORS), 1)
    bits = 8 * TYPE_BYTES[kind] * count if kind else 0
    return ".".join(part for part in (item.opcode, space, str(bits) if bits else "") if part)


def _shape(item: Instruction) -> str:
    """Shape and types of a matrix product: ``m16n8k16.f32.f16.f16.f32``; empty for anything else."""
    if _SHAPED.get(item.opcode) not in item.modifiers:
        return ""
    shape = next((one for one in item.modifiers if one[:1] == "m" and one[1:2].isdigit()), "")
    kinds = [one for one in item.modifiers if one in TYPE_BYTES or one in _NARROW]
    return ".".join([shape, *kinds]) if shape else ""


def _ordered(names: Iterable[str]) -> dict[str, int]:
    """Counts by name, the most first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))

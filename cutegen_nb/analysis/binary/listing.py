"""Listings of compiled kernels: PTX without its debug information, and SASS.

SASS has its operands where `nvdisasm` printed it. Without that program the names and offsets of the
instructions come from their encoding.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.binary.debug_lines import BadLineTable, LineTable, lines_of
from cutegen_nb.analysis.binary.elf import sections_of
from cutegen_nb.analysis.binary.machine_code import instructions
from cutegen_nb.analysis.binary.ptx_places import PtxPlaces
from cutegen_nb.core.compiled.listing import MOST_ROWS, UNCOUNTED, CodeListing, CodeRow, packed_rows
from cutegen_nb.core.profile import is_own

Disassemble = Callable[[bytes], str]
"""Function that returns what ``nvdisasm -c`` prints for a cubin; empty where there is no such program."""

_CUT = f"The code of an evaluation is kept up to {MOST_ROWS:,} lines: the rest is left out."
_NAMES_ONLY = (
    "Names and offsets only, read from the machine code: nvdisasm, which prints the operands, was not found "
    "or printed nothing. `pip install nvidia-cuda-nvdisasm` brings it for the next evaluation."
)
_UNREAD = "The machine code of this kernel could not be read."
_ITEM = re.compile(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(entry|func)\b")
"""Beginning of a kernel or a function in PTX."""
_ENTRY = re.compile(r"^\s*(?:\.(?:visible|weak)\s+)*\.entry\s+([\w$]+)", re.MULTILINE)
_WORDS = re.compile(r'"[^"]*"|[^\s,]+')
_NOISE = frozenset({"", ".loc", ".file", ".pragma"})
"""First words of lines that are left out."""
_LABEL = re.compile(r"[\w$%]+:")
_LISTED = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
"""Instruction in the output of nvdisasm: its offset and text."""
_SECTION = re.compile(r"\s*\.section\s+\.text\.([^\s,]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCode:
    """Output of the compiler for one kernel."""

    kernel: str
    """Name of the kernel in the PTX."""
    ptx: str
    """PTX of its module."""
    cubin: bytes = b""
    """Machine code of its module; empty where the compiler left none."""
    executions: Mapping[int, int] | None = None
    """Executions by warps of the instruction that begins in each line of the PTX, from 1; None where nothing
    was counted."""


def listings_of(
    codes: Sequence[KernelCode], architecture: str, disassemble: Disassemble
) -> tuple[CodeListing, ...]:
    """Return the PTX and the SASS of each kernel, with `MOST_ROWS` rows in all."""
    found: list[CodeListing] = []
    left = MOST_ROWS
    disassembled: dict[bytes, str] = {}
    for code in codes:
        texts = [("PTX", ptx_rows(code.ptx, code.kernel, code.executions), "")]
        if code.cubin:
            if code.cubin not in disassembled:
                disassembled[code.cubin] = disassemble(code.cubin)
            texts.append(("SASS", *_sass(code, architecture, disassembled[code.cubin])))
        for language, rows, note in texts:
            kept, is_cut = rows[:left], len(rows) > left
            left -= len(kept)
            notes = (note, _CUT if is_cut else "")
            found.append(
                CodeListing(
                    kernel=code.kernel, language=language, packed=packed_rows(kept),
                    note=" ".join(filter(None, notes)),
                )
            )  # fmt: skip
    return tuple(found)


def kernel_names(ptx: str) -> list[str]:
    """Return the names of the kernels of a PTX module, in order."""
    return _ENTRY.findall(ptx)


# -- PTX -----------------------------------------------------------------------------------------------------
def ptx_rows(text: str, kernel: str, executions: Mapping[int, int] | None = None) -> list[CodeRow]:
    """Return the rows of a kernel and of its module's functions, without debug information.

    Args:
        text: PTX of the whole module.
        kernel: name of the kernel.
        executions: executions by warps by line of the PTX; None where nothing was counted.
    """
    lines = text.split("\n")
    places = PtxPlaces()
    for line in lines:
        if line.lstrip().startswith(".file"):
            places.take(_WORDS.findall(line))
    rows: list[CodeRow] = []
    for begin, end in _items(lines):
        entry = _ENTRY.search(lines[begin])
        if entry is None or entry[1] == kernel:
            rows += _body(lines, begin, end, places, executions)
    return rows


def _items(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Iterate over the first line of each kernel and function with a body, from 0, and the line after it."""
    begin, depth, has_body = None, 0, False
    for index, line in enumerate(lines):
        code = _code(line)
        if begin is None:
            if not _ITEM.match(code):
                continue
            begin, depth, has_body = index, 0, False
        depth += code.count("{") - code.count("}")
        has_body = has_body or "{" in code
        if has_body and depth <= 0:
            yield begin, index + 1
            begin = None
        elif not has_body and code.endswith(";"):  # a function that is declared only
            begin = None


def _body(
    lines: Sequence[str], begin: int, end: int, places: PtxPlaces, executions: Mapping[int, int] | None
) -> Iterator[CodeRow]:
    """Iterate over the rows of one kernel or function."""
    places.location, places.inside_asm = (), False
    depth, is_open = 0, False
    for index in range(begin, end):
        raw, code = lines[index].strip(), _code(lines[index])
        if raw.startswith("//"):
            if "inline asm" in raw:
                places.inside_asm = "begin" in raw
            continue
        first = code.split(maxsplit=1)[0] if code else ""
        if first == ".loc":
            places.take(_WORDS.findall(code))
        if first in _NOISE:
            continue
        is_label = _LABEL.fullmatch(code) is not None
        is_code = depth > 0 and not is_label and not code.startswith(".") and code.strip("{};") != ""
        # Declarations of a function's head and labels stand at the margin, as the compiler writes them.
        is_outside = depth == 0 and first != ".param"
        shown = (
            code
            if is_outside or is_label or (code == "}" and depth == 1)
            else f"    {' '.join(code.split())}"
        )
        depth += code.count("{") - code.count("}")
        if not is_code:
            yield CodeRow(shown)
        else:
            file, line, _ = places.place(places.location)
            counted = UNCOUNTED
            if executions is not None:
                counted = executions.get(index + 1, UNCOUNTED if is_open else 0)
            yield CodeRow(shown, line if is_own(file, line) else 0, counted)
            is_open = not code.endswith((";", "{", "}"))  # a call goes on in the next lines


def _code(line: str) -> str:
    return line.partition("//")[0].strip()


# -- SASS ----------------------------------------------------------------------------------------------------
def _sass(code: KernelCode, architecture: str, printed: str) -> tuple[list[CodeRow], str]:
    """Return the rows of a kernel's machine code, with a note on what they lack."""
    try:
        table = lines_of(code.cubin).get(code.kernel)
    except BadLineTable:
        table = None
    rows = printed_rows(printed, code.kernel, table)
    if rows:
        return rows, ""
    try:
        text = next(one.data for one in sections_of(code.cubin) if one.name == f".text.{code.kernel}")
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, StopIteration):
        return [], _UNREAD
    named = [_instruction(offset, name, table) for offset, name in instructions(text, architecture)]
    return named, _NAMES_ONLY


def printed_rows(printed: str, kernel: str, table: LineTable | None) -> list[CodeRow]:
    """Return the rows of a kernel from the output of ``nvdisasm -c``; none where it is not in there."""
    rows: list[CodeRow] = []
    is_inside = False
    for line in printed.split("\n"):
        section = _SECTION.match(line)
        if section:
            is_inside = section[1] == kernel
        elif is_inside and (found := _LISTED.match(line)):
            rows.append(_instruction(int(found[1], 16), found[2], table))
        elif is_inside and line.startswith(".L_") and line.rstrip().endswith(":"):
            rows.append(CodeRow(line.strip()))
    while rows and rows[-1].text.rpartition(" ")[2] in {"NOP", "NOP;"}:
        rows.pop()  # what fills the last lines of the instruction cache
    return rows


def _instruction(offset: int, text: str, table: LineTable | None) -> CodeRow:
    file, line = table.at(offset) if table else ("", 0)
    return CodeRow(f"    /*{offset:04x}*/ {' '.join(text.split())}", line if is_own(file, line) else 0)

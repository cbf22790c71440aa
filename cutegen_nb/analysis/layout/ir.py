"""Reader of layouts from the IR text that the CuTe DSL traces, before any lowering.

Each operation there carries its types in full and its place in the source: ``%1 = cute.make_view(%0, %l) :
!cute.memref<f16, smem, "(8,8):(8,1)"> loc("sA = …"("k.py":12:8))``. Operations that cannot be parsed are left
out, so that a kernel never fails because of this reader.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from cutegen_nb.analysis.layout.layout import parse_layout, parse_tiler
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout

LONGEST_TEXT = 40 << 20
"""Most characters of a program that are read; tensor-core products with epilogues have half a million."""
MOST_RECORDS = 64
"""Number of layouts of one candidate after which reading stops."""

LayoutQuery = Callable[[str, str], str]
"""Query of the compiler: (type, attribute) → the layout of a tiled copy or MMA, or an empty text."""

_READ = (
    "cute.make_layout", "cute.make_composed_layout", "cute.tile_to_shape", "cute.make_view",
    "cute.make_tiled_copy", "cute.make_tiled_mma",
    "cute.tiled.copy.partition_S", "cute.tiled.copy.partition_D",
)  # fmt: skip
"""Operations whose types hold a layout."""
_OPERATION = re.compile(
    r"^\s*(%\w+)(?::\d+)? = (" + "|".join(re.escape(name) for name in _READ) + r")[ (<](.*)$"
)
"""Operation that is read: its value, its name and the rest of the line."""
_TENSOR = re.compile(r"%\w+, (%\w+)[,)]")
"""Second operand of a partition operation: the tensor."""
_ROW = re.compile(r"\d+:1")
"""Compact one-dimensional layouts, which a drawing says nothing about."""
_ALIAS = re.compile(r"^(!\w+) = (.*)$")
"""Type alias: ``!name = type``."""
_PLACE = re.compile(r"^#loc(\d*) = loc\((.*)\)\s*$")
"""Location alias: ``#loc7 = loc(…)``."""
_OWN_PLACE = re.compile(r" loc\((.*)\)\s*$")
"""Location at the end of an operation."""
_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')
"""File and line within a location."""
_REFERENCE = re.compile(r"#loc(\d*)")
"""Reference to a location alias."""
_MEMREF = re.compile(r'!cute\.memref<(\w+), smem(?:, align<\d+>)?(?:, (S<[^>]*>))?, "([^"]*)">')
"""Tensor in shared memory: element type, pointer swizzle and layout."""
_LAYOUT = re.compile(r'!cute\.(?:composed_)?layout<"([^"]*)">')
"""Layout of a layout type, plain or composed."""
_TILED = re.compile(r"!cute\.tiled_(?:copy|mma)<(.*), (?:layout_copy_tv|atom_layout_MNK) = ")
"""Atom of a tiled copy or MMA type."""
_TILER = re.compile(r'(?:tiler_mn|permutation_MNK) = <"([^"]*)">')
"""Tile of a tiled copy, or permutation of a tiled MMA."""
_BITS = re.compile(r"(\d+) b>$")
"""Bits per access at the end of a copy atom's type."""
_PLAIN_COPY = re.compile(r"universal_copy<[a-z]+(\d+)\w*>$")
"""Copy atom of one element at a time."""
_ELEMENT = re.compile(r"(?:val_type = |<)([a-z]+\d+\w*)[,>]")
"""Element type of a copy atom."""
_ROW_BITS = 128
"""Bits that each lane's address stands for in ldmatrix and stmatrix: a matrix row of 16 bytes."""


def read_layouts(text: str, ask: LayoutQuery) -> tuple[LayoutRecord, ...]:
    """Read the layouts of a traced program, in its order, each once.

    Empty for a text longer than `LONGEST_TEXT`; reading stops after `MOST_RECORDS`.
    """
    if len(text) > LONGEST_TEXT:
        return ()
    lines = text.split("\n")
    # Aliases of types and locations may stand anywhere in the text, so they are collected first.
    types = {match[1]: match[2] for line in lines if (match := _ALIAS.match(line))}
    places = {match[1]: match[2] for line in lines if (match := _PLACE.match(line))}
    found: dict[LayoutRecord, None] = {}
    made: dict[str, int] = {}
    for line in lines:
        match = _OPERATION.match(line)
        if match is None:
            continue
        value, operation, rest = match.groups()
        file, number = _place(rest, places)
        made[value] = number
        whole = _without_aliases(_OWN_PLACE.sub("", rest), types)
        tensor = _TENSOR.match(rest)
        tensor_line = made.get(tensor[1], 0) if tensor and "partition" in operation else 0
        for record in _records(operation, whole, ask):
            found.setdefault(replace(record, file=file, line=number, tensor_line=tensor_line))
        if len(found) >= MOST_RECORDS:
            break
    return tuple(found)


def named(records: tuple[LayoutRecord, ...], source: str) -> tuple[LayoutRecord, ...]:
    """Return records with the names that the source gives them, the first of each kind and name.

    Layouts and tensors without a name are left out. So are plain layouts that a tensor, copy or MMA repeats.
    """
    names = _names(source)
    found: dict[tuple[LayoutKind, str, str], LayoutRecord] = {}
    for record in records:
        name = names.get(record.line, "")
        # An access is named after its tensor rather than after the partition.
        if record.kind is LayoutKind.ACCESS:
            name = names.get(record.tensor_line, "") or name
        elif record.kind in {LayoutKind.LAYOUT, LayoutKind.SHARED} and not name:
            continue
        detail = "" if name and record.kind is not LayoutKind.ACCESS else f"{record.atom}{record.views}"
        found.setdefault((record.kind, name, detail), replace(record, name=name))
    others = [record for record in found.values() if record.kind is not LayoutKind.LAYOUT]
    # A layout is repeated if another record has its text, or was made in its line.
    said = {record.text for record in others} | {str(record.line) for record in others}
    return tuple(
        record
        for record in found.values()
        if record.kind is not LayoutKind.LAYOUT
        or not (_ROW.fullmatch(record.text) or {record.text, str(record.line)} & said)
    )


def _records(operation: str, text: str, ask: LayoutQuery) -> Iterator[LayoutRecord]:
    if operation == "cute.make_view":
        yield from _shared(text)
    elif operation == "cute.make_tiled_copy":
        yield from _copies(text, ask)
    elif operation == "cute.make_tiled_mma":
        yield from _products(text, ask)
    elif operation.startswith("cute.tiled.copy.partition"):
        yield from _accesses(text, ask, reads=operation.endswith("_S"))
    else:
        layouts = _LAYOUT.findall(text)
        if layouts and _is_drawable(layouts[-1]):
            yield LayoutRecord(kind=LayoutKind.LAYOUT, text=layouts[-1])


def _shared(text: str) -> Iterator[LayoutRecord]:
    match = _MEMREF.search(text)
    if match and _is_drawable(match[3]):
        yield LayoutRecord(
            kind=LayoutKind.SHARED, text=match[3], element=match[1], pointer_swizzle=match[2] or ""
        )


def _copies(text: str, ask: LayoutQuery) -> Iterator[LayoutRecord]:
    kind = _type_of(text, "!cute.tiled_copy<")
    tiler = _TILER.search(kind)
    if not tiler:
        return
    views = [
        TvLayout(role=role, text=found, tiler=tiler[1])
        for role, name in (("source", "layout_src_tv_tiled"), ("destination", "layout_dst_tv_tiled"))
        if (found := ask(kind, name))
    ]
    if views:
        yield LayoutRecord(
            kind=LayoutKind.COPY,
            element=_element(kind),
            atom=_atom(kind),
            access_bits=_access_bits(kind),
            views=tuple(views),
        )


def _products(text: str, ask: LayoutQuery) -> Iterator[LayoutRecord]:
    kind = _type_of(text, "!cute.tiled_mma<")
    tiler = _TILER.search(kind)
    shape, threads = ask(kind, "shape_mnk"), ask(kind, "thr_layout_vmnk")
    if not tiler or not shape or not threads:
        return
    tile = mma_tile(tiler[1], shape, threads)
    if not tile:
        return
    views = tuple(
        TvLayout(role=role, text=found, tiler=f"[{tile[one]};{tile[other]}]")
        for role, one, other in (("A", 0, 2), ("B", 1, 2), ("C", 0, 1))
        if (found := ask(kind, f"layout_{role.lower()}_tv_tiled"))
    )
    if views:
        yield LayoutRecord(kind=LayoutKind.MMA, atom=_atom(kind), views=views)


def mma_tile(permutation: str, shape: str, threads: str) -> tuple[str, ...]:
    """Return the three modes of a tiled MMA's tile.

    The inputs are the permutation ``[32:1;_;16:1]``, the atom's shape ``(16,8,16)`` and the layout of its
    threads. A mode without permutation (``_``) spans all atoms side by side. Empty where the three do not
    fit.
    """
    modes = permutation.strip("[]").split(";")
    atom = [extent.cosize for extent in parse_tiler(shape)]
    # The threads' layout has the modes (V, M, N, K): threads within an atom, then atoms along each mode.
    by_mode = [parse_layout(threads).mode(number).size for number in (1, 2, 3)]
    if len(modes) != len(atom):
        return ()
    return tuple(
        # Atom's extent × atoms along the mode, contiguous.
        f"{extent * count}:1" if mode.strip() == "_" else mode.strip()
        for mode, extent, count in zip(modes, atom, by_mode, strict=True)
    )


def _accesses(text: str, ask: LayoutQuery, *, reads: bool) -> Iterator[LayoutRecord]:
    kind = _type_of(text, "!cute.tiled_copy<")
    tensor = _MEMREF.search(text.partition("->")[0])
    tiler = _TILER.search(kind)
    if not tiler or tensor is None or not _is_drawable(tensor[3]):
        return
    role, name = ("source", "layout_src_tv_tiled") if reads else ("destination", "layout_dst_tv_tiled")
    view = ask(kind, name)
    if view:
        yield LayoutRecord(
            kind=LayoutKind.ACCESS,
            text=tensor[3],
            element=tensor[1],
            pointer_swizzle=tensor[2] or "",
            atom=_atom(kind),
            access_bits=_access_bits(kind),
            views=(TvLayout(role=role, text=view, tiler=tiler[1]),),
        )


def _atom(kind: str) -> str:
    match = _TILED.match(kind)
    return match[1].removeprefix("!cute_nvgpu.").removeprefix("atom.") if match else ""


def _element(kind: str) -> str:
    match = _ELEMENT.search(kind)
    return match[1] if match else ""


def _access_bits(kind: str) -> int:
    atom = _atom(kind)
    # Each lane's address names one matrix row of 16 bytes.
    if atom.startswith(("ldsm", "stsm")):
        return _ROW_BITS
    match = _BITS.search(atom) or _PLAIN_COPY.match(atom)
    return int(match[1]) if match else 0


def _is_drawable(text: str) -> bool:
    """Return whether all numbers of a layout are known and it has more than one element."""
    try:
        return parse_layout(text).size > 1
    except UsageError:
        return False


def _type_of(text: str, beginning: str) -> str:
    """Return the first type in a text with this beginning, up to its closing bracket."""
    start = text.find(beginning)
    if start < 0:
        return ""
    depth, quoted = 0, False
    for at in range(start, len(text)):
        mark = text[at]
        if mark == '"':
            quoted = not quoted
        elif mark == "<" and not quoted:
            depth += 1
        # The ``>`` of an arrow ``->`` closes nothing.
        elif mark == ">" and not quoted and text[at - 1] != "-":
            depth -= 1
            if not depth:
                return text[start : at + 1]
    return ""


def _without_aliases(text: str, types: Mapping[str, str]) -> str:
    """Replace type aliases by their types."""
    return re.sub(r"!\w+(?![\w.])", lambda match: types.get(match[0], match[0]), text)


def _place(text: str, places: Mapping[str, str]) -> tuple[str, int]:
    """Return the file and line of an operation's location; ``("", 0)`` where it leads to none."""
    own = _OWN_PLACE.search(text)
    at = own[1] if own else ""
    # A location may refer to another one; at most eight steps are followed.
    for _ in range(8):
        match = _FILE.search(at)
        if match:
            return match[1], int(match[2])
        reference = _REFERENCE.search(at)
        if reference is None or reference[1] not in places:
            break
        at = places[reference[1]]
    return "", 0


def _names(source: str) -> dict[int, str]:
    """Return the name of each line's value: the target of its assignment, or the function that returns it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    names: dict[int, str] = {}
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Return):
                    names |= dict.fromkeys(_lines(node), function.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name | ast.Attribute):
                names |= dict.fromkeys(_lines(node), ast.unparse(target))
    return names


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)

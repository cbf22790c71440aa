"""Instruction counts of a compiled kernel: from its machine code (SASS), else from its PTX."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from cutegen_nb.analysis.binary.cubin import BadCubin
from cutegen_nb.analysis.binary.sass import by_name, code_lines, code_of_cubin
from cutegen_nb.core.profile import CompiledCode
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction, Kernel

_SHAPED = {"mma": "sync", "wgmma": "mma_async", "wmma": "mma"}
"""Matrix-product opcode → the modifier that tells the product from other instructions of that opcode."""
_MEMORY = frozenset({"ld", "st", "ldu", "cp", "atom", "red"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_NARROW = frozenset({"s4", "u4", "b1"})
_KEPT = 64
_known: dict[tuple[int, str], tuple[object, CompiledCode]] = {}


def code_of(kernel: Kernel, cubin: bytes, architecture: str) -> CompiledCode:
    """Instruction counts of a kernel, cached for each parsed kernel.

    Args:
        kernel: the kernel as parsed from the PTX.
        cubin: machine code of the kernel's module; empty where there is none.
        architecture: target of the machine code, ``sm_80``.
    """
    key = (id(kernel), architecture)
    known = _known.get(key)
    # An id may be reused after its kernel is freed, so the kernel itself is compared too.
    if known is None or known[0] is not kernel:
        if len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        known = _known[key] = (kernel, _read(kernel, cubin, architecture))
    return known[1]


def _read(kernel: Kernel, cubin: bytes, architecture: str) -> CompiledCode:
    try:
        code = code_of_cubin(cubin, kernel.name, architecture)
    except BadCubin:  # a compiler of tomorrow, or none that left machine code
        return _from_ptx(kernel)
    return replace(code, mma_shapes=_shapes(kernel))


def _shapes(kernel: Kernel) -> dict[str, int]:
    return by_name(filter(None, map(_shape, kernel.body)))


def _from_ptx(kernel: Kernel) -> CompiledCode:
    places = Counter((item.file, item.line) for item in kernel.body)
    return CompiledCode(
        language="PTX",
        instructions=by_name(map(_ptx_name, kernel.body)),
        mma_shapes=_shapes(kernel),
        lines=code_lines(places, Counter()),
    )


def _ptx_name(item: Instruction) -> str:
    """Short name of a PTX instruction: ``fma.f32`` (type), ``ld.global.128`` (space, bits a thread moves)."""
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

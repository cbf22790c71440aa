"""``mma.sync``: tensor-core products of whole warps (PTX ISA, "Matrix multiply-accumulate instructions").

Model of the arithmetic: products are exact, their sum and the accumulator are added in float64 (integers
exactly), and the result is rounded once to the type of D. A GPU adds in an order and with an alignment that
the PTX ISA leaves open, so against hardware results agree within the accumulation-order bound,
``(K + 1) × 2**-23 × Σ|a·b|`` for a float32 accumulator. Operands of tf32 lose their low 13 bits, as there.
"""

from __future__ import annotations

from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.lowering import Lowering, Operation, items, opcode
from cutegen_nb.simulator.matrix_fragments import ELEMENTS, GROUPS, INTEGERS, PLACES
from cutegen_nb.simulator.matrix_products import Form, Product
from cutegen_nb.simulator.matrix_quads import quads
from cutegen_nb.simulator.ptx_model import Instruction

_SHAPES: dict[str, dict[tuple[int, int, int], tuple[str, ...]]] = {
    "f16": {(16, 8, 8): ("f16", "f32"), (16, 8, 16): ("f16", "f32")},
    "bf16": {(16, 8, 8): ("f32",), (16, 8, 16): ("f32",)},
    "tf32": {(16, 8, 4): ("f32",), (16, 8, 8): ("f32",)},
    "f64": dict.fromkeys(((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)), ("f64",)),
    "fp8": {(16, 8, 16): ("f16", "f32"), (16, 8, 32): ("f16", "f32")},
    "8": dict.fromkeys(((8, 8, 16), (16, 8, 16), (16, 8, 32)), ("s32",)),
    "4": dict.fromkeys(((8, 8, 32), (16, 8, 32), (16, 8, 64)), ("s32",)),
    "b1": dict.fromkeys(((8, 8, 128), (16, 8, 128), (16, 8, 256)), ("s32",)),
}
"""Family of A and B → shape → types of C and D."""
_FAMILY = {"e4m3": "fp8", "e5m2": "fp8", "s8": "8", "u8": "8", "s4": "4", "u4": "4"}
_PIPE = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8", "u4": "s4"}
"""Names that FLOPs are counted under where it is not the type of A."""
_PARTS = 9
"""sync, aligned, shape, two layouts, four types."""


# -- reading the instruction ---------------------------------------------------------------------------------
@opcode(
    "mma",
    forms="sync aligned: f16 m8n8k4, f16 and bf16 m16n8k8/k16, tf32 m16n8k4/k8, f64 m8n8k4 m16n8k4/k8/k16, "
    "e4m3 e5m2 m16n8k16/k32, s8 u8 m8n8k16 m16n8k16/k32, s4 u4 m8n8k32 m16n8k32/k64, "
    "b1 m8n8k128 m16n8k128/k256 (and, xor); f16, f32, f64, s32 accumulators; satfinite",
)
def _mma(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers[:3] == ("sync", "aligned", "m8n8k4") and "f64" not in instruction.modifiers:
        return quads(instruction, lowering)
    form = _form(instruction)
    d, a, b, c = (items(one) for one in instruction.operands)
    wanted = (_registers(form.m, form.n, form.d), *_inputs(form), _registers(form.m, form.n, form.c))
    if tuple(len(one) for one in (d, a, b, c)) != wanted:
        raise unsupported(instruction, "number of registers")
    lowering.tally.flop_kind = f"tensor.{_PIPE.get(form.a.name, form.a.name)}"
    lowering.tally.flops_each = form.flops // 32
    kinds = [
        f"b{8 * form.a.word.itemsize}",
        f"b{8 * form.b.word.itemsize}",
        "b64" if form.c == "f64" else "b32",
    ]
    slots = [
        tuple(lowering.source(instruction, one, kind) for one in fragment)
        for fragment, kind in zip((a, b, c), kinds, strict=True)
    ]
    slots.append(tuple(lowering.source(instruction, one, "b32") for one in d))
    return Product(form, instruction, slots, [lowering.writer(instruction, one) for one in d])


def _form(instruction: Instruction) -> Form:
    """Shape and types that the name says.

    Raises:
        UnsupportedOpcode: no form of sm_80 to sm_89.
    """
    left = list(instruction.modifiers)
    saturate = "satfinite" in left
    xor = "xor" in left
    if xor or "and" in left:
        left.remove("xor" if xor else "and")
        if "popc" not in left:
            raise unsupported(instruction)
        left.remove("popc")
    if saturate:
        left.remove("satfinite")
    if len(left) != _PARTS or left[:2] != ["sync", "aligned"] or left[3:5] != ["row", "col"]:
        raise unsupported(instruction)
    shape = _shape(left[2])
    d, a, b, c = left[5:]
    family = _FAMILY.get(a, a)
    if _FAMILY.get(b, b) != family or {c, d} - set(_SHAPES.get(family, {}).get(shape, ())):
        raise unsupported(instruction)
    if saturate and a not in INTEGERS - {"b1"}:
        raise unsupported(instruction)
    m, n, k = shape
    return Form(m=m, n=n, k=k, a=ELEMENTS[a], b=ELEMENTS[b], c=c, d=d, saturate=saturate, xor=xor)


def _shape(text: str) -> tuple[int, int, int]:
    """``m16n8k16`` → 16, 8, 16; zeros where it is no shape."""
    parts = text.replace("m", " ").replace("n", " ").replace("k", " ").split()
    if len(parts) != 3 or not all(one.isdecimal() for one in parts):  # noqa: PLR2004 - m, n, k
        return 0, 0, 0
    return int(parts[0]), int(parts[1]), int(parts[2])


def _inputs(form: Form) -> tuple[int, int]:
    """Registers of A and of B."""
    return (
        form.m // GROUPS * (form.k // (PLACES * form.a.packed)),
        form.k // (PLACES * form.b.packed),
    )


def _registers(m: int, n: int, kind: str) -> int:
    """Registers of C or D: two values of 16 bits share one."""
    return m * n // 32 // (2 if kind == "f16" else 1)

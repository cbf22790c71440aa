"""``mma.sync``: tensor-core products of whole warps (PTX ISA, "Matrix multiply-accumulate instructions").

Model of the arithmetic: products are exact, their sum and the accumulator are added in float64 (integers
exactly), and the result is rounded once to the type of D. A GPU adds in an order and with an alignment that
the PTX ISA leaves open. Results therefore agree with hardware within the accumulation-order bound,
``(K + 1) × 2**-23 × Σ|a·b|`` for a float32 accumulator. tf32 operands lose their low 13 bits, as on a GPU.
"""

from __future__ import annotations

from cutegen_nb.simulator.ops.lowering import Lowering, Operation, items, opcode
from cutegen_nb.simulator.ops.warp.fragments import ELEMENTS, GROUPS, INTEGERS, PLACES
from cutegen_nb.simulator.ops.warp.mma_batching import BatchedProduct, Form
from cutegen_nb.simulator.ops.warp.mma_m8n8k4 import quads
from cutegen_nb.simulator.ops.warp.mma_scaled import is_of_kind, lower_scaled
from cutegen_nb.simulator.ops.warp.mma_sparse import SHAPES as SPARSE_SHAPES
from cutegen_nb.simulator.ops.warp.mma_sparse import SparseProduct, selectors
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction

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
"""Types of C and D by family of A and B and by shape (m, n, k)."""
_FAMILY = {"e4m3": "fp8", "e5m2": "fp8", "s8": "8", "u8": "8", "s4": "4", "u4": "4"}
"""Family of an element type; A and B may differ within one. Other types are a family of their own."""
_PIPE = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8", "u4": "s4"}
"""Name under which FLOPs are counted, where it differs from the type of A."""
_PARTS = 9
"""Modifiers of a plain form: sync, aligned, shape, two layouts, four types."""


# -- reading the instruction ---------------------------------------------------------------------------------
@opcode(
    "mma",
    forms="sync aligned: f16 m8n8k4, f16 and bf16 m16n8k8/k16, tf32 m16n8k4/k8, f64 m8n8k4 m16n8k4/k8/k16, "
    "e4m3 e5m2 m16n8k16/k32, s8 u8 m8n8k16 m16n8k16/k32, s4 u4 m8n8k32 m16n8k32/k64, "
    "b1 m8n8k128 m16n8k128/k256 (and, xor); f16, f32, f64, s32 accumulators; satfinite; kinds f8f6f4, "
    "mxf8f6f4, mxf4, mxf4nvf4; sp and sp::ordered_metadata, without a kind: f16 and bf16 m16n8k16/k32, "
    "tf32 m16n8k8/k16, e4m3 e5m2 m16n8k64, s8 u8 m16n8k32/k64, s4 u4 m16n8k64/k128",
)
def _mma(instruction: Instruction, lowering: Lowering) -> Operation:
    # f16 m8n8k4 has fragments of its own: four products share a warp.
    if instruction.modifiers[:3] == ("sync", "aligned", "m8n8k4") and "f64" not in instruction.modifiers:
        return quads(instruction, lowering)
    if is_of_kind(instruction):
        return lower_scaled(instruction, lowering)
    sparse = instruction.modifiers[0] in {"sp", "sp::ordered_metadata"}
    form = _form(instruction, sparse=sparse)
    d, a, b, c = (items(one) for one in instruction.operands[:4])
    wanted = (
        _registers(form.m, form.n, form.d), *_inputs(form, sparse=sparse),
        _registers(form.m, form.n, form.c),
    )  # fmt: skip
    if tuple(len(one) for one in (d, a, b, c)) != wanted:
        raise unsupported(instruction, "number of registers")
    lowering.tally.flop_kind = f"tensor.{_PIPE.get(form.a.name, form.a.name)}"
    # Counted a thread, done by the warp; elements that are left out are not multiplied.
    lowering.tally.flops_each = form.flops // 32 // (2 if sparse else 1)
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
    product = BatchedProduct(form, instruction, slots, [lowering.writer(instruction, one) for one in d])
    return _sparse(product, lowering) if sparse else product


def _sparse(product: BatchedProduct, lowering: Lowering) -> Operation:
    """Operation of ``mma.sp``. Raises UnsupportedOpcode if its selector is none of the form."""
    instruction, form = product.instruction, product.form
    _, _, _, _, metadata, selector = instruction.operands
    if not isinstance(selector, Immediate) or selector.value not in range(selectors(form.a.name, form.k)):
        raise unsupported(instruction, "sparsity selector")
    return SparseProduct(product, lowering.source(instruction, metadata, "b32"), int(selector.value))


def _form(instruction: Instruction, *, sparse: bool) -> Form:
    """Shape and types in the instruction's name.

    Raises:
        UnsupportedOpcode: not a form of sm_80 to sm_89.
    """
    left = list(instruction.modifiers[1:] if sparse else instruction.modifiers)
    shapes = SPARSE_SHAPES if sparse else _SHAPES
    saturate = "satfinite" in left
    xor = "xor" in left
    if xor or "and" in left:  # b1: ``.and.popc`` or ``.xor.popc``
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
    # A and B may differ within a family (e4m3 with e5m2, s8 with u8), and C and D among its accumulators.
    if _FAMILY.get(b, b) != family or {c, d} - set(shapes.get(family, {}).get(shape, ())):
        raise unsupported(instruction)
    if saturate and a not in INTEGERS - {"b1"}:
        raise unsupported(instruction)
    m, n, k = shape
    return Form(m=m, n=n, k=k, a=ELEMENTS[a], b=ELEMENTS[b], c=c, d=d, saturate=saturate, xor=xor)


def _shape(text: str) -> tuple[int, int, int]:
    """Shape (m, n, k) of a name such as ``m16n8k16``; zeros if the text is no shape."""
    parts = text.replace("m", " ").replace("n", " ").replace("k", " ").split()
    if len(parts) != 3 or not all(one.isdecimal() for one in parts):  # noqa: PLR2004 - m, n, k
        return 0, 0, 0
    return int(parts[0]), int(parts[1]), int(parts[2])


def _inputs(form: Form, *, sparse: bool) -> tuple[int, int]:
    """Numbers of registers of A and of B a thread."""
    return (
        # A register spans 4 threads × packed elements along K and 8 rows.
        form.m // GROUPS * (form.k // (2 if sparse else 1) // (PLACES * form.a.packed)),
        form.k // (PLACES * form.b.packed),
    )


def _registers(m: int, n: int, kind: str) -> int:
    """Number of registers of C or D a thread; two f16 values share a register."""
    return m * n // 32 // (2 if kind == "f16" else 1)

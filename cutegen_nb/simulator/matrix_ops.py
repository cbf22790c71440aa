"""``mma.sync``: tensor-core products of whole warps (PTX ISA, "Matrix multiply-accumulate instructions").

Model of the arithmetic: products are exact, their sum and the accumulator are added in float64 (integers
exactly), and the result is rounded once to the type of D. A GPU adds in an order and with an alignment that
the PTX ISA leaves open, so against hardware results agree within the accumulation-order bound,
``(K + 1) × 2**-23 × Σ|a·b|`` for a float32 accumulator. Operands of tf32 lose their low 13 bits, as there.

Neighbouring instructions that do not depend on each other run as one matrix product: fragments that several
of them share are unpacked once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.async_ops import no_effect
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.formats import F16
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.lowering import Lowering, Operation, items, opcode
from cutegen_nb.simulator.matrix_fragments import (
    ELEMENTS,
    GROUPS,
    INTEGERS,
    PLACES,
    Element,
    by_lane,
    chosen_warps,
    gathered,
    half,
    require_whole_warps,
    words_of,
)
from cutegen_nb.simulator.matrix_quads import quads
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import F32, F64, S32, S64, U32, Array, Value

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
_ACCUMULATORS: dict[str, np.dtype[Any]] = {"f32": F32, "f64": F64, "s32": S32}
RegisterWriter = Callable[[Lanes, Mask | None, Value], None]
_PARTS = 9
"""sync, aligned, shape, two layouts, four types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Shape and types of a product."""

    m: int
    """Rows of A and D."""
    n: int
    """Columns of B and D."""
    k: int
    """Columns of A and rows of B."""
    a: Element
    """Type of A."""
    b: Element
    """Type of B."""
    c: str
    """Type of C."""
    d: str
    """Type of D."""
    saturate: bool = False
    """Whether integer results are clamped to 32 bits instead of wrapping (``.satfinite``)."""
    xor: bool = False
    """Whether bits are combined by exclusive or instead of and."""

    @property
    def flops(self) -> int:
        """Floating-point or integer operations of a warp."""
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One mma.sync, ready to run."""

    form: Form
    """Shape and types."""
    instruction: Instruction
    """For messages."""
    a: tuple[int, ...]
    """Slots of A's registers."""
    b: tuple[int, ...]
    """Slots of B's registers."""
    c: tuple[int, ...]
    """Slots of C's registers."""
    d: tuple[int, ...]
    """Slots of D's registers."""
    puts: tuple[RegisterWriter, ...]
    """Writers of D's registers."""

    def __call__(self, lanes: Lanes, mask: Mask | None) -> None:
        """Run it alone."""
        run_together((self,), lanes, mask)


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
    return Product(
        form=form, instruction=instruction, a=slots[0], b=slots[1], c=slots[2],
        d=tuple(lowering.source(instruction, one, "b32") for one in d),
        puts=tuple(lowering.writer(instruction, one) for one in d),
    )  # fmt: skip


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


# -- running together ----------------------------------------------------------------------------------------
def grouped(operations: Sequence[Operation]) -> list[Operation]:
    """Operations with each run of independent products of one form joined, at the place of its first."""
    result = list(operations)
    start = 0
    while start < len(result):
        run = _independent(result, start)
        if len(run) > 1:
            result[start : start + len(run)] = [_together(run), *[no_effect] * (len(run) - 1)]
        start += max(1, len(run))
    return result


def _independent(operations: Sequence[Operation], start: int) -> tuple[Product, ...]:
    """Products from ``start`` on that have one form and do not read what another of them writes."""
    run: list[Product] = []
    written: set[int] = set()
    for one in operations[start:]:
        if not isinstance(one, Product) or (run and one.form != run[0].form):
            break
        if written & {*one.a, *one.b, *one.c}:
            break
        written.update(one.d)
        run.append(one)
    return tuple(run)


def _together(products: tuple[Product, ...]) -> Operation:
    return lambda lanes, mask: run_together(products, lanes, mask)


def run_together(products: Sequence[Product], lanes: Lanes, mask: Mask | None) -> None:
    """Compute products of one form that do not depend on each other.

    Raises:
        PartialWarp: a warp executes them with some of its threads only.
    """
    form = products[0].form
    require_whole_warps(lanes, mask, products[0].instruction)
    warps = chosen_warps(lanes, mask)
    lefts = {one: index for index, one in enumerate(dict.fromkeys(product.a for product in products))}
    rights = {one: index for index, one in enumerate(dict.fromkeys(product.b for product in products))}
    left = gathered(lanes, list(lefts), form.m, form.a, warps)
    right = gathered(lanes, list(rights), form.n, form.b, warps)
    if form.a.name not in INTEGERS:
        left, right = left.astype(F64), right.astype(F64)
    every = len(lefts) * len(rights) == len({(one.a, one.b) for one in products})
    whole = _product(form, left, right) if every else None
    for one in products:
        rows, columns = lefts[one.a] * form.m, rights[one.b] * form.n
        if whole is None:
            tile = _product(form, left[:, rows : rows + form.m], right[:, columns : columns + form.n])
        else:
            tile = whole[:, rows : rows + form.m, columns : columns + form.n]
        for put, words in zip(one.puts, _accumulated(form, tile, lanes, one.c, warps), strict=True):
            put(lanes, mask, by_lane(lanes, words, warps))


def _product(form: Form, left: Array, right: Array) -> Array:
    """Sums of products, (warps, rows, K) by (warps, columns, K)."""
    sums: Array = np.matmul(left, right.transpose(0, 2, 1))
    if form.xor:
        # A bit of a ^ b is set where one of the two is: |a| + |b| − 2 |a & b|.
        return left.sum(axis=2)[:, :, None] + right.sum(axis=2)[:, None, :] - 2 * sums
    return sums


def _accumulated(form: Form, tile: Array, lanes: Lanes, c: Sequence[int], warps: Array | None) -> list[Array]:
    """D's registers, each (warps, 8, 4), out of the sums (warps, m, n) and C's registers."""
    parts = tile.reshape(len(tile), form.m // GROUPS, GROUPS, PLACES, 2)
    result: list[Array] = []
    for upper in range(form.m // GROUPS):
        part = parts[:, upper]
        if form.c == "f16":
            pair = half(np.ascontiguousarray(words_of(lanes, c[upper], U32, warps)))
            sums = [part[..., one] + pair[..., one::2] for one in (0, 1)]
        else:
            dtype = _ACCUMULATORS[form.c]
            added = [words_of(lanes, c[2 * upper + one], dtype, warps) for one in (0, 1)]
            sums = [_sum(form, part[..., one], added[one]) for one in (0, 1)]
        if form.d == "f16":
            low, high = (one.astype(F16).view(np.uint16).astype(U32) for one in sums)
            result.append(low | (high << np.uint32(16)))
        else:
            result.extend(one.astype(_ACCUMULATORS[form.d]) for one in sums)
    return result


def _sum(form: Form, part: Array, added: Array) -> Array:
    if form.d != "s32":
        total: Array = part + added
        return total
    wide = part.astype(S64) + added
    return np.clip(wide, -(1 << 31), (1 << 31) - 1) if form.saturate else wide


__all__ = ["Form", "Product", "grouped", "run_together"]

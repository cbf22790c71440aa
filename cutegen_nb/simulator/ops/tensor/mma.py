"""``tcgen05.mma``: one thread has a product of whole matrices carried out (PTX ISA, ``tcgen05.mma``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.findings import ASYNC_HAZARD
from cutegen_nb.simulator.numbers.values import U32, U64, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation
from cutegen_nb.simulator.ops.tensor.descriptors import (
    KINDS,
    SCALED,
    ProductDescriptor,
    UnknownTensorDescriptor,
    decode_product,
)
from cutegen_nb.simulator.ops.tensor.places import (
    TensorAddress,
    column_of,
    memory_of,
    require_allocated,
    tensor_address,
)
from cutegen_nb.simulator.ops.tensor.product import Operands, Product
from cutegen_nb.simulator.ops.tensor.work import issue
from cutegen_nb.simulator.ptx.faults import place, unsupported
from cutegen_nb.simulator.ptx.model import Address, Immediate, Instruction, Operand, Register, Vector
from cutegen_nb.simulator.state.batch import Batch, Mask

_VECTORS = ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")
_COLLECTORS = tuple(f"collector::a::{use}" for use in ("fill", "use", "lastuse", "discard"))
_PIPES = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "s8": "s8", "u8": "s8", "e4m3": "fp8", "e5m2": "fp8",
    "e2m3": "fp6", "e3m2": "fp6", "e2m1": "fp4",
}  # fmt: skip
"""Type of A → name of the tensor-core pipe in counts of operations."""
_WORD = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    """Operands and options of one ``tcgen05.mma``."""

    kind: str
    ctas: int
    d: TensorAddress
    a: TensorAddress | None
    """Address of A in tensor memory; None if it is in shared memory."""
    a_slot: int
    b_slot: int
    descriptor: int
    scales: tuple[TensorAddress, TensorAddress] | None
    disabled: tuple[int, ...]
    """Slots of the lanes not to be written, empty for none."""
    adds: int
    divisor: int
    blocks: int


def lower_mma(instruction: Instruction, lowering: Lowering, modifiers: Modifiers, ctas: int) -> Operation:
    """Operation of ``tcgen05.mma``.

    Raises:
        UnsupportedOpcode: a sparse or weight-stationary product, or a kind that is not known.
    """
    parts = _parsed(instruction, lowering, modifiers, ctas)
    tally = lowering.tally

    def run(lanes: Batch, mask: Mask | None) -> None:
        threads = np.arange(lanes.lane_count) if mask is None else mask.index
        given = _operands(lanes, parts, threads)
        descriptors = _of(lanes, parts.descriptor, U32, threads)
        for bits in np.unique(descriptors):
            form = _form(instruction, parts, int(bits))
            rows = np.flatnonzero(descriptors == bits)
            product = Product(
                instruction=instruction, form=form, pair=ctas > 1, in_tensor_memory=parts.a is not None,
                divisor=parts.divisor, blocks=parts.blocks, threads=threads[rows], given=given.some(rows),
            )  # fmt: skip
            _check(lanes, product)
            tally.add_product(
                f"tensor.{_PIPES[form.a]}", f"{form.m}x{form.n}x{form.k} {form.a}", len(rows),
                2 * form.m * form.n * form.k,
            )  # fmt: skip
            issue(lanes, product)

    return run


def _parsed(instruction: Instruction, lowering: Lowering, modifiers: Modifiers, ctas: int) -> _Instruction:
    kind = modifiers.one(*(f"kind::{one}" for one in KINDS)).removeprefix("kind::")
    scaled = modifiers.flag("block_scale")
    vector = modifiers.one(*_VECTORS)
    modifiers.one(*_COLLECTORS)
    modifiers.done()
    if not kind or scaled != (kind in SCALED):
        raise unsupported(instruction)
    d, a, b, descriptor, *rest = instruction.operands
    scales = None
    if scaled:
        first, second, *rest = rest
        scales = (tensor_address(instruction, lowering, first), tensor_address(instruction, lowering, second))
    lanes: tuple[Operand, ...] = ()
    if isinstance(rest[0], Vector):
        lanes, rest = rest[0].items, rest[1:]
    adds, *scale = rest
    in_tensor_memory = isinstance(a, Address)
    return _Instruction(
        kind=kind, ctas=ctas, d=tensor_address(instruction, lowering, d),
        a=tensor_address(instruction, lowering, a) if in_tensor_memory else None,
        a_slot=-1 if in_tensor_memory else lowering.source(instruction, a, "b64"),
        b_slot=lowering.source(instruction, b, "b64"),
        descriptor=lowering.source(instruction, descriptor, "b32"), scales=scales,
        disabled=tuple(lowering.source(instruction, one, "b32") for one in lanes),
        adds=_predicate(instruction, lowering, adds), divisor=_constant(instruction, scale),
        blocks=_blocks(kind, vector),
    )  # fmt: skip


def _predicate(instruction: Instruction, lowering: Lowering, operand: Operand) -> int:
    if isinstance(operand, Register) and operand.negated:
        raise unsupported(instruction, "negated predicate")
    return lowering.source(instruction, operand, "pred")


def _constant(instruction: Instruction, operands: list[Operand]) -> int:
    if not operands:
        return 0
    if not isinstance(operands[0], Immediate):
        raise unsupported(instruction, "scale of D in a register")
    return int(operands[0].value)


def _blocks(kind: str, vector: str) -> int:
    """Scales along K of one row (PTX ISA, table of ``.scale_vectorsize``)."""
    if kind not in SCALED:
        return 0
    if kind == "mxf8f6f4":
        return 1
    return 4 if vector in {"scale_vec::4X", "block16"} else 2


def _form(instruction: Instruction, parts: _Instruction, bits: int) -> ProductDescriptor:
    try:
        return decode_product(bits, parts.kind, parts.ctas)
    except UnknownTensorDescriptor as problem:
        raise unsupported(instruction, str(problem)) from problem


def _of(lanes: Batch, slot: int, dtype: np.dtype[np.generic], threads: Array) -> Array:
    return lanes.full(lanes.registers[slot], dtype).reshape(-1)[threads]


def _operands(lanes: Batch, parts: _Instruction, threads: Array) -> Operands:
    a = parts.a.of(lanes, threads) if parts.a is not None else _of(lanes, parts.a_slot, U64, threads)
    disabled = None
    if parts.disabled:
        words = np.stack([_of(lanes, slot, U32, threads) for slot in parts.disabled], axis=1)
        if words.any():
            disabled = (words[..., None] >> np.arange(_WORD, dtype=np.uint32) & U32.type(1)).astype(np.bool_)
            disabled = disabled.reshape(len(threads), -1)
    scales = None if parts.scales is None else tuple(one.of(lanes, threads) for one in parts.scales)
    return Operands(
        d=parts.d.of(lanes, threads), a=a, b=_of(lanes, parts.b_slot, U64, threads),
        adds=np.broadcast_to(lanes.registers[parts.adds], (lanes.ctas, lanes.threads)).reshape(-1)[threads],
        scales=None if scales is None else (scales[0], scales[1]), disabled=disabled,
    )  # fmt: skip


def _check(lanes: Batch, product: Product) -> None:
    """Check the tensor memory of a product when it is issued."""
    rows = np.arange(len(product.threads))
    threads, given = product.threads, product.given
    memory = memory_of(lanes)
    width = product.width
    needed = [(column_of(given.d), width, "multiplies into")]
    if product.in_tensor_memory:
        needed.append((column_of(given.a), 8, "reads A from"))
    for ctas in product.ctas_of(lanes, rows):
        for first, columns, verb in needed:
            require_allocated(lanes, product.instruction, threads, ctas, first, columns, verb)
            stored = memory.unwaited[ctas[:, None], first[:, None] + np.arange(columns)]
            reads = stored.any(axis=1) & (given.adds if verb.startswith("multiplies") else True)
            if reads.any() and not lanes.findings.seen(ASYNC_HAZARD, product.instruction):
                thread, cta = lanes.place_of(int(threads[np.flatnonzero(reads)[0]]))
                lanes.findings.add(
                    ASYNC_HAZARD,
                    f"Thread {thread} of CTA {cta} {verb} tensor memory that a tcgen05.st wrote, and no "
                    f"tcgen05.wait::st of the storing warp followed ({product.instruction.name}, "
                    f"{place(product.instruction)}). Wait there before the product is issued.",
                    product.instruction, thread=thread, cta=cta,
                )  # fmt: skip

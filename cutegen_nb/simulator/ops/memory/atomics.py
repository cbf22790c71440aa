"""Atomics and reductions on global and shared memory (PTX ISA, ``atom``, ``red``).

Threads act in lane order. If no instruction reads the old values, the whole request is one unbuffered NumPy
operation. Otherwise threads that share an address take turns, so a request costs as many array operations as
its busiest address has threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats
from cutegen_nb.simulator.numbers.values import DTYPES, F32, Array, Value
from cutegen_nb.simulator.ops.cluster import memory as cluster
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items, opcode
from cutegen_nb.simulator.ops.memory import global_ as global_ops
from cutegen_nb.simulator.ops.memory import global_traffic, shared
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.ops.memory.load_store import BASES, HINTS, address_of, windows
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Instruction
from cutegen_nb.simulator.state.addressing import AddressOperand, listed
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

_NAMES = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_TYPES: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "s64", "f32", "f64", *_HALVES),
    "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"),
    "exch": ("b32", "b64"), "cas": ("b16", "b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip
"""Types of each operation (PTX ISA, ``atom``)."""
_VECTOR_TYPES = {"min": _HALVES, "max": _HALVES}
"""Types that only the vector forms of sm_90 have, by operation."""
Combine = Callable[..., Array]
"""Function from old value, operand and, for cas, a second operand to the new value."""


@opcode(
    "atom",
    forms="global, shared, generic; add, min, max, and, or, xor, exch, cas (b16–b64), inc, dec; "
    "add of f16, bf16, x2, f32, f64; v2–v8 with min, max of halves",
)
def _atom(instruction: Instruction, lowering: Lowering) -> Operation:
    return _atomic(instruction, lowering, returns=True)


def lower_reduction(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of a plain ``red``.

    Raises:
        UnsupportedOpcode: a form that is not known.
    """
    return _atomic(instruction, lowering, returns=False)


def _atomic(instruction: Instruction, lowering: Lowering, *, returns: bool) -> Operation:
    modifiers = Modifiers(instruction)
    kind = modifiers.only_type()
    space = modifiers.one("global", "shared", "shared::cta", "shared::cluster").split("::")[0]
    name = modifiers.one(*_NAMES)
    modifiers.skip(*HINTS, "noftz")
    count = int(modifiers.one("v2", "v4", "v8", default="v1")[1])
    modifiers.done()
    if kind not in _TYPES.get(name, ()) and (count == 1 or kind not in _VECTOR_TYPES.get(name, ())):
        raise unsupported(instruction)
    operands = list(instruction.operands)
    target = operands.pop(0) if returns else None
    slot, offset, own = address_of(instruction, lowering, operands[0])
    sources = [
        [lowering.source(instruction, one, kind) for one in items(operand)]
        for operand in operands[1 : 3 if name == "cas" else 2]
    ]
    puts = [lowering.writer(instruction, one) for one in items(target)] if target is not None else []
    wanted = target is not None and any(lowering.is_read(one) for one in items(target))
    function = function_of(instruction, name, kind)
    width, single = TYPE_BYTES[kind], kind == "f32"
    forms = (
        GlobalForm(
            instruction=instruction, tally=lowering.tally, width=width, count=count, stores=True, atomic=True
        ),
        SharedAccessForm(
            instruction=instruction, tally=lowering.tally, width=width, count=count, stores=True
        ),
    )
    if kind.startswith(("f", "bf")) and name == "add":
        lowering.tally.flop_kind = f"cuda.{kind.removesuffix('x2')}"
        lowering.tally.flops_each = count * (2 if kind.endswith("x2") else 1)

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        given = [[_flat(lanes, registers[one], width) for one in group] for group in sources]
        olds = [np.zeros(lanes.lane_count, UNSIGNED[width]) for _ in range(count)] if wanted else []
        for place in _places(lanes, mask, AddressOperand(registers[slot], offset), own or space, forms):
            elements, index, chosen = place
            flushes = single and not np.may_share_memory(elements, lanes.shared)
            for element in range(count):
                parts = [one[element] if chosen is None else one[element][chosen] for one in given]
                first, raw = _first_seen(elements, index + element) if single and wanted else (None, None)
                if flushes:
                    # The addition takes subnormals of operands and memory as zeros. The first thread at
                    # an address still returns the bits that were there (``raw``).
                    parts = [formats.flushed(np.ascontiguousarray(one).view(F32)) for one in parts]
                    _settle(elements, index + element, flush=True)
                old = apply(elements, index + element, parts, function, wanted=wanted)
                if first is not None and old is not None:
                    old[first] = raw
                if single:
                    _settle(elements, index + element, flush=flushes)
                if old is not None:
                    olds[element][slice(None) if chosen is None else chosen] = old
        for put, old in zip(puts, olds, strict=False):
            put(lanes, mask, old.reshape(lanes.ctas, lanes.threads))

    return run


def _first_seen(elements: Array, index: Array) -> tuple[Array, Array]:
    """Index of the first thread at each address, and the bits that it finds there, not flushed."""
    places, first = np.unique(index, return_index=True)
    return first, elements[places]


def _settle(elements: Array, index: Array, *, flush: bool) -> None:
    """Replace NaN by the canonical one and, with ``flush``, subnormals by zeros.

    ``atom.add.f32`` flushes in global memory and keeps subnormals in shared memory (PTX ISA, ``atom``).
    """
    memory = elements.view(F32)
    touched = memory[index]
    settled = formats.canonical(formats.flushed(touched) if flush else touched) if len(touched) else touched
    if settled is not touched:
        memory[index] = settled


def _flat(lanes: Batch, value: Value, width: int) -> Array:
    """Value as unsigned bits of every lane, flat."""
    plain = value.view(UNSIGNED[width]) if value.dtype is not UNSIGNED[width] else value
    return np.broadcast_to(plain, (lanes.ctas, lanes.threads)).reshape(-1)


def _places(
    lanes: Batch,
    mask: Mask | None,
    at: AddressOperand,
    space: str,
    forms: tuple[GlobalForm, SharedAccessForm],
) -> list[tuple[Array, Array, Array | None]]:
    """Memory as elements, the index of each address, and the lanes of the addresses (None for all)."""
    if space == "shared":
        return [_in_shared(lanes, mask, at, forms[1])]
    if space == "global":
        return _in_global(lanes, mask, at, forms[0])
    if space:
        raise unsupported(forms[0].instruction, f"atomic on .{space}")
    found: list[tuple[Array, Array, Array | None]] = []
    for window, active in windows(lanes, mask, at):
        found += _places(lanes, active, AddressOperand(at.value, at.offset - BASES[window]), window, forms)
    return found


def _in_shared(
    lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm
) -> tuple[Array, Array, Array | None]:
    request = listed(lanes, mask, at)
    if cluster.is_far(request):
        rows, offsets = cluster.places(lanes, request, form)
        elements = lanes.shared.view(UNSIGNED[form.width])
        return elements.reshape(-1), rows * elements.shape[1] + offsets // form.width, request.lanes
    request = shared.checked(lanes, mask, at, form)
    shared.report_access(lanes, mask, request, form)
    elements = lanes.shared.view(UNSIGNED[form.width]).reshape(-1)
    return elements, shared.flat_addresses(lanes, request) // form.width, request.lanes


def _in_global(
    lanes: Batch, mask: Mask | None, at: AddressOperand, form: GlobalForm
) -> list[tuple[Array, Array, Array | None]]:
    request = listed(lanes, mask, at)
    global_traffic.count(lanes, mask, form)
    lanes.flag_accessed(mask, form.instruction, stores=True)
    found = []
    for allocation, positions in global_ops.resolve(lanes, request, form):
        elements, start = allocation.elements(form.width)
        addresses = request.addresses if positions is None else request.addresses[positions]
        found.append(
            (elements, (addresses - start) // form.width, global_traffic.targets(request, positions))
        )
    return found


# -- functions -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class AtomicFunction:
    """Function of an atomic, and the type it works on."""

    combine: Combine
    """Function from old values and operands to new values."""
    dtype: np.dtype[Any]
    """dtype as which memory and operands are viewed."""


def function_of(instruction: Instruction, name: str, kind: str) -> AtomicFunction:
    """Function of an atomic by the name of its operation and its PTX type.

    Raises:
        UnsupportedOpcode: there is no such operation on that type.
    """
    dtype = DTYPES[kind]
    bits = UNSIGNED[dtype.itemsize]
    one, zero = dtype.type(1), dtype.type(0)
    # inc wraps from the limit to 0, dec from 0 or from beyond the limit to the limit (PTX ISA, ``atom``).
    unusual: dict[str, AtomicFunction] = {
        "exch": AtomicFunction(lambda _, new: new, bits),
        "cas": AtomicFunction(_exchanged_if_equal, bits),
        "inc": AtomicFunction(lambda old, limit: np.where(old >= limit, zero, old + one), dtype),
        "dec": AtomicFunction(
            lambda old, limit: np.where((old == 0) | (old > limit), limit, old - one), dtype
        ),
        "and": AtomicFunction(np.bitwise_and, bits),
        "or": AtomicFunction(np.bitwise_or, bits),
        "xor": AtomicFunction(np.bitwise_xor, bits),
    }
    if name in unusual:
        return unusual[name]
    if kind in {"f32", "f64"} or (dtype.kind in "iu" and kind[0] in "us"):
        return AtomicFunction({"add": np.add, "min": np.minimum, "max": np.maximum}[name], dtype)
    half = kind.removesuffix("x2")
    if half not in {"f16", "bf16"}:
        raise unsupported(instruction)
    combine = _on_halves(half, {"add": np.add, "min": np.fmin, "max": np.fmax}[name])
    if kind == half:
        return AtomicFunction(combine, formats.U16)
    return AtomicFunction(lambda old, new: formats.paired(combine, old, new), DTYPES["u32"])


def _exchanged_if_equal(old: Array, expected: Array, new: Array) -> Array:
    return np.where(old == expected, new, old)


def _on_halves(half: str, ufunc: np.ufunc) -> Combine:
    widen = formats.half_to_single if half == "f16" else formats.bfloat_to_single
    narrow = formats.single_to_half if half == "f16" else formats.single_to_bfloat
    return lambda old, new: narrow(ufunc(widen(old), widen(new)))


def apply(
    elements: Array, index: Array, operands: list[Array], function: AtomicFunction, *, wanted: bool
) -> Array | None:
    """Apply an atomic to ``elements[index]`` in lane order; returns the old values if ``wanted``."""
    combine, dtype = function.combine, function.dtype
    memory = elements.view(dtype)
    given = [np.ascontiguousarray(one).view(dtype) for one in operands]
    if isinstance(combine, np.ufunc) and not wanted:
        combine.at(memory, index, given[0])  # unbuffered: repeated indices act one after the other
        return None
    # Sorted by address, threads of one address are neighbours; ``turn`` numbers them from 0 in lane order.
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    if combine is np.add and dtype.kind in "iu":
        return _sum_before(memory, index, order, starts, given[0])
    olds = np.zeros(len(index), dtype)
    by_turn = np.argsort(turn, kind="stable")
    counts = np.bincount(turn) if len(turn) else np.zeros(0, np.int64)
    at = 0
    for count in counts:  # in one turn no address occurs twice
        who = order[by_turn[at : at + count]]
        at += int(count)
        old = memory[index[who]]
        olds[who] = old
        memory[index[who]] = combine(old, *(one[who] for one in given))
    return olds.view(elements.dtype) if wanted else None


def _sum_before(memory: Array, index: Array, order: Array, starts: Array, given: Array) -> Array:
    """Carry out integer additions; old values are the value in memory plus what earlier threads added."""
    dtype = memory.dtype
    added = given[order]
    # Exclusive prefix sum within each address, modulo 2**bits.
    before = np.cumsum(added, dtype=dtype) - added
    lengths = np.diff(np.append(starts, len(order)))
    before = before - np.repeat(before[starts], lengths)
    olds = np.empty(len(index), dtype)
    olds[order] = memory[index[order]] + before
    np.add.at(memory, index, given)
    return olds.view(UNSIGNED[dtype.itemsize])

"""Shuffles, votes, matches and reductions of a warp (PTX ISA, "Parallel Synchronization and Communication").

Values are reshaped to (ctas, warps, 32); a last warp that is not full is padded with inactive threads. The
scheduler (``machine.schedule``) brings the threads that a ``.sync`` names to the instruction together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator.checkers.findings import UNINITIALISED
from cutegen_nb.simulator.numbers.values import DTYPES, S64, U32, U64, Array, Value
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import place, unsupported
from cutegen_nb.simulator.ptx.model import Instruction, Register, Vector
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask, warp_bits

_ALL = np.uint32(0xFFFFFFFF)
_LANE: Array = np.arange(WARP)
_BIT: Array = np.uint32(1) << np.arange(WARP, dtype=np.uint32)
"""Bit of each lane in a mask of its warp."""


def by_warp(lanes: Batch, value: Value, dtype: np.dtype[Any]) -> Array:
    """Reshape an array value to (1 or ctas, warps, 32)."""
    plain = value if value.dtype is dtype else value.view(dtype)
    if plain.shape[1] != lanes.threads:
        plain = np.broadcast_to(plain, (plain.shape[0], lanes.threads))
    padding = lanes.warps_per_cta * WARP - lanes.threads
    if padding:
        plain = np.pad(plain, ((0, 0), (0, padding)))
    return plain.reshape(plain.shape[0], lanes.warps_per_cta, WARP)


def by_thread(lanes: Batch, array: Array) -> Array:
    """Reshape (n, warps, 32) back to (n, threads), without the padding."""
    return array.reshape(array.shape[0], -1)[:, : lanes.threads]


def active_bits(lanes: Batch, mask: Mask | None) -> Array:
    """Active lanes of each warp as 32-bit numbers, shape (1 or ctas, warps)."""
    if mask is not None:
        return mask.bits()
    bits = np.full((1, lanes.warps_per_cta), _ALL, np.uint32)
    left = lanes.threads % WARP
    if left:
        bits[0, -1] = (1 << left) - 1
    return bits


def spread(lanes: Batch, per_warp: Array) -> Array:
    """Repeat one number a warp for each of its threads."""
    return by_thread(lanes, np.broadcast_to(per_warp[..., None], (*per_warp.shape, WARP)))


# -- shfl ----------------------------------------------------------------------------------------------------
@opcode("shfl", forms="sync up, down, bfly, idx; b32; with predicate")
def _shuffle(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    synchronised, mode = modifiers.flag("sync"), modifiers.one("up", "down", "bfly", "idx")
    modifiers.done()
    if not synchronised or not mode or kind != "b32":
        raise unsupported(instruction)
    target, origin, *rest = instruction.operands
    first, second = target.items if isinstance(target, Vector) else (target, None)
    put = lowering.writer(instruction, first)
    put_predicate = lowering.writer(instruction, second) if second is not None else None
    a = lowering.source(instruction, origin, "b32")
    b, c = (lowering.source(instruction, one, "u32") for one in rest[:2])

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        value, amount, control = registers[a], registers[b].view(U32), registers[c].view(U32)
        if value.dtype is None:
            value = value.view(U32)
        narrow = value.ndim == 0 or value.shape[1] == 1
        if narrow and put_predicate is None and lanes.threads % WARP == 0:
            put(lanes, mask, value)  # every lane holds the same
            return
        if narrow:
            value = np.broadcast_to(value, (1 if value.ndim == 0 else value.shape[0], lanes.threads))
        warps = by_warp(lanes, value, U32)
        if amount.ndim == 0 and control.ndim == 0:
            source, inside = _sources(mode, int(amount), int(control))
            moved = (
                warps.take(source, axis=2)
                if mode != "bfly" or not inside.all()
                else _butterfly(warps, int(amount) & 31)
            )
            truth = np.broadcast_to(inside, warps.shape)
        else:
            source, truth = _sources_each(lanes, mode, amount, control)
            shape = np.broadcast_shapes(warps.shape, source.shape)
            moved = np.take_along_axis(np.broadcast_to(warps, shape), np.broadcast_to(source, shape), axis=2)
        absent = _absent(lanes, mask, source)
        if absent is not None:
            moved = np.where(absent, np.resize(lanes.filling, U32.itemsize).view(U32), moved)
            _doubt(lanes, instruction, absent)
        put(lanes, mask, by_thread(lanes, moved))
        if put_predicate is not None:
            put_predicate(lanes, mask, by_thread(lanes, truth))

    return run


def _absent(lanes: Batch, mask: Mask | None, source: Array) -> Array | None:
    """Active lanes whose source lane is not active, shape (n, warps, 32); None for none."""
    if mask is None and lanes.threads % WARP == 0:
        return None
    bits = active_bits(lanes, mask)
    if (bits == _ALL).all():
        return None
    active = (bits[..., None] & _BIT) != 0
    shape = np.broadcast_shapes(active.shape, source.shape)
    there = np.take_along_axis(np.broadcast_to(active, shape), np.broadcast_to(source, shape), axis=2)
    absent = active & ~there
    return absent if absent.any() else None


def _doubt(lanes: Batch, instruction: Instruction, absent: Array) -> None:
    """Note a doubt: a lane takes a value from one that does not take part (PTX ISA, ``shfl.sync``)."""
    cta, thread = np.argwhere(by_thread(lanes, absent))[0]
    name, block = lanes.place_of(int(cta * lanes.threads + thread))
    lanes.findings.add(
        UNINITIALISED,
        f"Thread {name} of CTA {block} takes a value from a lane of its warp that does not take part in the "
        f"shuffle ({instruction.name}, {place(instruction)}); it may be any. Let all 32 lanes come to the "
        "shuffle: it belongs outside the branch.",
        instruction, thread=name, cta=block, doubt=True,
    )  # fmt: skip


def _butterfly(warps: Array, amount: int) -> Array:
    """Value of lane ``lane ^ amount``: by a reversed view for amounts of 4, 8 and 16, else by a gather."""
    if amount & (amount - 1) or amount < WARP // 8:
        return warps.take(_LANE ^ amount, axis=2)
    pairs = warps.reshape(warps.shape[0], -1, 2, amount)
    return np.ascontiguousarray(pairs[:, :, ::-1]).reshape(warps.shape)


def _sources(mode: str, amount: int, control: int) -> tuple[Array, Array]:
    """Source lane of each lane, and whether it lies inside its segment (PTX ISA, ``shfl.sync``)."""
    source, inside = _source_of(mode, _LANE, np.int64(amount & 31), np.int64(control))
    return source, np.broadcast_to(inside, source.shape)


def _sources_each(lanes: Batch, mode: str, amount: Value, control: Value) -> tuple[Array, Array]:
    each = by_warp(lanes, np.broadcast_to(amount, np.broadcast_shapes(amount.shape, (1, lanes.threads))), U32)
    which = by_warp(
        lanes, np.broadcast_to(control, np.broadcast_shapes(control.shape, (1, lanes.threads))), U32
    )
    return _source_of(mode, _LANE, (each & np.uint32(31)).astype(S64), which.astype(S64))


def _source_of(mode: str, lane: Array, amount: Value, control: Value) -> tuple[Array, Array]:
    """Source lane and predicate, after the pseudocode of PTX ISA, ``shfl.sync`` (maxLane, minLane)."""
    # Operand c: bits 0 to 4 clamp the source lane, bits 8 to 12 divide the warp into segments.
    clamp, segment = control & 31, (control >> 8) & 31
    # ``segment`` has the bits of the lane that name its segment; the others are the place within it.
    greatest = (lane & segment) | (clamp & ~segment)
    least = lane & segment
    if mode == "up":
        source = lane - amount
        inside = source >= greatest
    elif mode == "down":
        source = lane + amount
        inside = source <= greatest
    elif mode == "bfly":
        source = lane ^ amount
        inside = source <= greatest
    else:
        source = least | (amount & ~segment)
        inside = source <= greatest
    return np.where(inside, source, lane), inside  # outside, a lane reads its own value


# -- votes ---------------------------------------------------------------------------------------------------
def _members(lanes: Batch, value: Value) -> Array:
    """Member mask of each thread, 32 bits: one number for all, or (n, warps, 32)."""
    named = value.view(U32)
    if named.ndim == 0:
        return named
    return by_warp(lanes, np.broadcast_to(named, (named.shape[0], lanes.threads)), U32)


@opcode("vote", forms="sync all, any, uni (pred), ballot (b32)")
def _vote(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    synchronised, mode = modifiers.flag("sync"), modifiers.one("all", "any", "uni", "ballot")
    modifiers.done()
    if not synchronised or not mode or kind != ("b32" if mode == "ballot" else "pred"):
        raise unsupported(instruction)
    origin = instruction.operands[1]
    p = lowering.source(instruction, origin, "pred")
    member = lowering.source(instruction, instruction.operands[2], "b32")
    negated = isinstance(origin, Register) and origin.negated
    put = lowering.writer(instruction, instruction.operands[0])

    def run(lanes: Batch, mask: Mask | None) -> None:
        value = lanes.registers[p]
        truth = np.broadcast_to(value, (value.shape[0] if value.ndim else 1, lanes.threads))
        votes = warp_bits(np.ascontiguousarray(np.logical_not(truth) if negated else truth))
        named = _members(lanes, lanes.registers[member])
        present = active_bits(lanes, mask)[..., None] & named
        yes = votes[..., None] & present
        if mode == "ballot":
            result = yes
        else:
            every, some = yes == present, yes != 0
            result = {"all": every, "any": some, "uni": every | ~some}[mode]  # uni: all true or all false
        put(lanes, mask, _each_lane(lanes, result))

    return run


def _each_lane(lanes: Batch, array: Array) -> Array:
    """Reshape (n, warps, 1 or 32) to one value a thread."""
    return by_thread(lanes, np.broadcast_to(array, (*array.shape[:2], WARP)))


@opcode("activemask", forms="b32")
def _activemask(instruction: Instruction, lowering: Lowering) -> Operation:
    put = lowering.writer(instruction, instruction.operands[0])

    def run(lanes: Batch, mask: Mask | None) -> None:
        put(lanes, mask, spread(lanes, active_bits(lanes, mask)))

    return run


@opcode("elect", forms="sync")
def _elect(instruction: Instruction, lowering: Lowering) -> Operation:
    """Elect the lowest active lane that the mask names; the PTX ISA leaves the choice open."""
    if instruction.modifiers != ("sync",):
        raise unsupported(instruction)
    target = instruction.operands[0]
    first, second = target.items if isinstance(target, Vector) else (None, target)
    member = lowering.source(instruction, instruction.operands[1], "b32")
    put_lane = lowering.writer(instruction, first) if first is not None else None
    assert second is not None
    put = lowering.writer(instruction, second)

    def run(lanes: Batch, mask: Mask | None) -> None:
        bits = active_bits(lanes, mask)[..., None] & _members(lanes, lanes.registers[member])
        lowest = bits & (~bits + np.uint32(1))  # x & −x: the lowest bit set
        put(lanes, mask, by_thread(lanes, lowest == _BIT))
        if put_lane is not None:
            put_lane(lanes, mask, _each_lane(lanes, np.bitwise_count(lowest - np.uint32(1)).astype(U32)))

    return run


# -- reductions over a warp ----------------------------------------------------------------------------------
def _of_floats(name: str, *, keeps_nan: bool) -> tuple[np.ufunc, Value]:
    """Minimum or maximum of floats and its neutral element; NaN loses without ``.NaN``."""
    least = name == "min"
    if keeps_nan:
        return np.minimum if least else np.maximum, np.float32(np.inf if least else -np.inf)
    return np.fmin if least else np.fmax, np.float32(np.nan)


@opcode("redux", forms="sync add, min, max (u32, s32; min and max f32), and, or, xor (b32)")
def _redux(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    synchronised, name = modifiers.flag("sync"), modifiers.one("add", "min", "max", "and", "or", "xor")
    absolute, keeps_nan = modifiers.flag("abs"), modifiers.flag("NaN")
    modifiers.done()
    kinds = {"u32", "s32"} if name in {"add", "min", "max"} else {"b32"}
    if name in {"min", "max"} and (kind == "f32" or not (absolute or keeps_nan)):
        kinds = kinds | {"f32"}
    elif absolute or keeps_nan:
        raise unsupported(instruction)
    if not synchronised or not name or kind not in kinds:
        raise unsupported(instruction)
    dtype = DTYPES[kind]
    a, member = lowering.sources(instruction, (kind, "b32"))
    put = lowering.writer(instruction, instruction.operands[0])
    ufunc, neutral = _REDUCTIONS[name](dtype) if kind != "f32" else _of_floats(name, keeps_nan=keeps_nan)

    def run(lanes: Batch, mask: Mask | None) -> None:
        value = lanes.registers[a].view(dtype)
        value = np.abs(value) if absolute else value
        whole = by_warp(
            lanes, np.broadcast_to(value, (value.shape[0] if value.ndim else 1, lanes.threads)), dtype
        )
        named = lanes.registers[member].view(U32)
        each = named if named.ndim == 0 else by_warp(lanes, named, U32)
        # Threads outside the mask contribute the neutral element, which changes no result.
        present = (active_bits(lanes, mask)[..., None] & _BIT & each) != 0
        if named.ndim == 0:
            reduced = ufunc.reduce(np.where(present, whole, neutral), axis=2, dtype=dtype)
            put(lanes, mask, spread(lanes, reduced))
            return
        # Threads of one warp may name different groups: one reduction for each mask that occurs.
        result = np.zeros(np.broadcast_shapes(whole.shape, each.shape), dtype)
        for group in np.unique(each):
            inside = present & (each == group)
            reduced = ufunc.reduce(np.where(inside, whole, neutral), axis=2, dtype=dtype)
            result = np.where(each == group, reduced[..., None], result)
        put(lanes, mask, by_thread(lanes, result))

    return run


_REDUCTIONS: dict[str, Callable[[np.dtype[Any]], tuple[Any, Any]]] = {
    "add": lambda dtype: (np.add, dtype.type(0)),
    "min": lambda dtype: (np.minimum, dtype.type(np.iinfo(dtype).max)),
    "max": lambda dtype: (np.maximum, dtype.type(np.iinfo(dtype).min)),
    "and": lambda dtype: (np.bitwise_and, ~dtype.type(0)),
    "or": lambda dtype: (np.bitwise_or, dtype.type(0)),
    "xor": lambda dtype: (np.bitwise_xor, dtype.type(0)),
}
"""Function from dtype to ufunc and its neutral element, which stands for threads that do not take part."""


@opcode("match", forms="sync any, all (with predicate); b32, b64")
def _match(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    synchronised, mode = modifiers.flag("sync"), modifiers.one("any", "all")
    modifiers.done()
    if not synchronised or not mode or kind not in {"b32", "b64"}:
        raise unsupported(instruction)
    dtype = U64 if kind == "b64" else U32
    a = lowering.source(instruction, instruction.operands[1], kind)
    member = lowering.source(instruction, instruction.operands[2], "b32")
    target = instruction.operands[0]
    first, second = target.items if isinstance(target, Vector) else (target, None)
    put = lowering.writer(instruction, first)
    put_predicate = lowering.writer(instruction, second) if second is not None else None

    def run(lanes: Batch, mask: Mask | None) -> None:
        value = lanes.registers[a].view(dtype)
        whole = by_warp(
            lanes, np.broadcast_to(value, (value.shape[0] if value.ndim else 1, lanes.threads)), dtype
        )
        present = active_bits(lanes, mask)[..., None] & _members(lanes, lanes.registers[member])
        # Compare each lane with each: row i gets the bits of the lanes whose value equals that of lane i.
        same = whole[..., :, None] == whole[..., None, :]
        bits = np.bitwise_or.reduce(np.where(same, _BIT, np.uint32(0)), axis=-1) & present
        if mode == "any":
            put(lanes, mask, by_thread(lanes, bits))
            return
        # ``match.all``: the mask where all values are equal, else 0, and the predicate that says so.
        equal = bits == present
        put(lanes, mask, by_thread(lanes, np.where(equal, bits, np.uint32(0))))
        if put_predicate is not None:
            put_predicate(lanes, mask, by_thread(lanes, equal))

    return run


def warp_count(lanes: Batch, taken: Array, mask: Mask | None) -> int:
    """Number of warps of the batch in which some active lanes take a branch and others do not."""
    threads = np.broadcast_to(taken, (taken.shape[0], lanes.threads))
    yes = warp_bits(np.ascontiguousarray(threads))
    every = active_bits(lanes, mask)
    split = (yes != 0) & ((every & ~yes) != 0)
    # One row stands for every CTA.
    return int(np.count_nonzero(split)) * (lanes.ctas if split.shape[0] == 1 else 1)

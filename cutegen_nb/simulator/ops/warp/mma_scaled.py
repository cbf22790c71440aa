"""``mma.sync`` of kinds f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4, the last three with scales of blocks (sm_120).

A 4-bit element of the kinds for 8 bits lies in bits 2 to 5 of its byte, a 6-bit one in the lowest bits
(CUTLASS, ``mma_traits_sm120.hpp``). The scales of a row of A come from one thread of a pair in its quad,
those of a column of B from one thread of the quad (PTX ISA, "Block Scaling for mma.sync").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.formats import F16
from cutegen_nb.simulator.numbers.small_floats import VALUES, scale_values
from cutegen_nb.simulator.numbers.values import F32, F64, U32, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Operation, items
from cutegen_nb.simulator.ops.warp.fragments import (
    ELEMENTS,
    GROUPS,
    PLACES,
    Element,
    by_lane,
    chosen_warps,
    gathered,
    half,
    require_whole_warps,
    words_of,
)
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Operand
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

_M, _N = 16, 8
_KINDS = {"kind::f8f6f4": 32, "kind::mxf8f6f4": 32, "kind::mxf4": 64, "kind::mxf4nvf4": 64}
"""Kind → K."""
_VECTORS = {"scale_vec::1X": 1, "scale_vec::2X": 2, "scale_vec::4X": 4}
_FOUR_BITS = 64
"""K of the kinds that pack 4-bit elements."""
_PIPES = {"e2m1": "fp4", "e2m3": "fp6", "e3m2": "fp6"}


def _nibbles(words: Array) -> Array:
    octets = words.view(np.uint8)
    codes = np.stack((octets & np.uint8(0xF), octets >> np.uint8(4)), axis=-1)
    return VALUES["e2m1"][codes.reshape(*octets.shape[:-1], -1)]


_IN_BYTES = {
    "e4m3": ELEMENTS["e4m3"],
    "e5m2": ELEMENTS["e5m2"],
    "e2m1": Element(
        name="e2m1", bits=8, decode=lambda words: VALUES["e2m1"][words.view(np.uint8) >> 2 & 0xF]
    ),
    "e2m3": Element(name="e2m3", bits=8, decode=lambda words: VALUES["e2m3"][words.view(np.uint8) & 0x3F]),
    "e3m2": Element(name="e3m2", bits=8, decode=lambda words: VALUES["e3m2"][words.view(np.uint8) & 0x3F]),
}
"""Types that take a byte each."""
_PACKED = Element(name="e2m1", bits=4, decode=_nibbles)


def is_of_kind(instruction: Instruction) -> bool:
    """Return whether an ``mma`` names a kind."""
    return any(one in _KINDS for one in instruction.modifiers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scales:
    """Scales of one factor: the register, and the operands that choose its bytes and its threads."""

    data: int
    first: int
    """Slot of the first byte's number."""
    thread: int
    """Slot of the number of the thread, or pair of threads, in a quad."""


def lower_scaled(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of an ``mma`` of one of these kinds.

    Raises:
        UnsupportedOpcode: a shape or types that the kind does not have.
    """
    left = [
        one for one in instruction.modifiers if one not in {"sync", "aligned", "row", "col", "block_scale"}
    ]
    kind = next(one for one in left if one in _KINDS)
    blocks = next((_VECTORS[one] for one in left if one in _VECTORS), 1 if kind == "kind::mxf8f6f4" else 2)
    left = [one for one in left if one not in _VECTORS and one != kind]
    k = _KINDS[kind]
    scaled = kind != "kind::f8f6f4"
    if left[:1] != [f"m16n8k{k}"] or len(left) != (6 if scaled else 5):
        raise unsupported(instruction)
    d, a, b, c, *scale = left[1:]
    elements = {"e2m1": _PACKED} if k == _FOUR_BITS else _IN_BYTES
    if a not in elements or b not in elements or not {c, d} <= ({"f32"} if scaled else {"f32", "f16"}):
        raise unsupported(instruction)
    target, first, second, third, *rest = instruction.operands
    lowering.tally.flop_kind = f"tensor.{_PIPES.get(a, 'fp8')}"
    lowering.tally.flops_each = 2 * _M * _N * k // WARP  # counted a thread, done by the warp
    sources = [
        tuple(lowering.source(instruction, one, "b32") for one in items(part))
        for part in (first, second, third)
    ]
    scales = _scales(instruction, lowering, rest) if scaled else None
    puts = [lowering.writer(instruction, one) for one in items(target)]
    shape = (elements[a], elements[b])

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        warps = chosen_warps(lanes, mask)
        left = gathered(lanes, [sources[0]], _M, shape[0], warps).astype(F64)
        right = gathered(lanes, [sources[1]], _N, shape[1], warps).astype(F64)
        if scales is not None:
            of_a, of_b = (_bytes(lanes, one, warps, blocks) for one in scales)
            left = left * np.repeat(
                scale_values(_rows(of_a[0], of_a[1], blocks), scale[0]), k // blocks, axis=2
            )
            right = right * np.repeat(
                scale_values(_columns(of_b[0], of_b[1], blocks), scale[0]), k // blocks, axis=2
            )
        sums = np.matmul(left, right.swapaxes(1, 2)) + _before(lanes, sources[2], warps, c)
        for put, value in zip(puts, _registers(sums, d), strict=True):
            put(lanes, mask, by_lane(lanes, value, warps))

    return run


def _scales(instruction: Instruction, lowering: Lowering, operands: list[Operand]) -> tuple[_Scales, _Scales]:
    found = []
    for data, chosen in (operands[:2], operands[2:4]):
        (register,) = items(data)
        first, thread = (_small(instruction, lowering, one) for one in items(chosen))
        found.append(_Scales(data=lowering.source(instruction, register, "b32"), first=first, thread=thread))
    return found[0], found[1]


def _small(instruction: Instruction, lowering: Lowering, operand: Operand) -> int:
    return lowering.source(instruction, operand, "u32" if isinstance(operand, Immediate) else "u16")


def _bytes(lanes: Batch, scales: _Scales, warps: Array | None, blocks: int) -> tuple[Array, int]:
    """Bytes that each thread gives, (warps, 8, 4, blocks), and the number of the thread or pair chosen."""
    first, thread = (int(np.asarray(lanes.registers[slot]).flat[0]) for slot in (scales.first, scales.thread))
    words = words_of(lanes, scales.data, U32, warps).reshape(-1, GROUPS, PLACES)
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape, 4)
    return octets[..., first : first + blocks], thread


def _rows(octets: Array, pair: int, blocks: int) -> Array:
    """Scales of A's 16 rows: the pair's first thread has row g, its second row g + 8; (warps, 16, blocks)."""
    both = octets[:, :, 2 * pair : 2 * pair + 2]
    return both.swapaxes(1, 2).reshape(len(octets), _M, blocks)


def _columns(octets: Array, thread: int, blocks: int) -> Array:
    """Scales of B's 8 columns, (warps, 8, blocks)."""
    return octets[:, :, thread].reshape(len(octets), _N, blocks)


def _before(lanes: Batch, slots: tuple[int, ...], warps: Array | None, kind: str) -> Array:
    """C, float64 (warps, 16, 8)."""
    words = np.stack(
        [words_of(lanes, slot, U32, warps).reshape(-1, GROUPS, PLACES) for slot in slots], axis=1
    )
    if kind == "f16":  # a register has the two columns of a place
        pairs = half(np.ascontiguousarray(words)).reshape(len(words), 2, GROUPS, PLACES, 2)
        return pairs.reshape(len(words), _M, _N).astype(F64)
    numbers = words.view(F32).reshape(len(words), 2, 2, GROUPS, PLACES)  # rows, columns, groups, places
    return numbers.transpose(0, 1, 3, 4, 2).reshape(len(words), _M, _N).astype(F64)


def _registers(sums: Array, kind: str) -> list[Array]:
    """Registers of D, each (warps, 8 groups, 4 places)."""
    parts = sums.reshape(-1, 2, GROUPS, PLACES, 2)
    if kind == "f16":
        words = np.ascontiguousarray(parts.astype(F16)).view(U32)[..., 0]
        return [words[:, row] for row in range(2)]
    words = np.ascontiguousarray(parts.astype(F32)).view(U32)
    return [words[:, row, :, :, column] for row in range(2) for column in range(2)]

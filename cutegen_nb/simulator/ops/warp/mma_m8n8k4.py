"""``mma.sync.m8n8k4`` of float16: four products of 8 by 4 by 8 in one warp.

Product ``q`` belongs to the threads ``4q … 4q + 3`` and ``16 + 4q … 16 + 4q + 3``. The formulas of rows and
columns are those of PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cutegen_nb.simulator.numbers.formats import F16
from cutegen_nb.simulator.numbers.values import F32, F64, U32, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Operation, items
from cutegen_nb.simulator.ops.warp.fragments import half, require_whole_warps
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

_ROWS, _COLUMNS, _DEPTH, _QUADS = 8, 8, 4, 4
"""m, n, k of each product, and products in a warp."""
_UPPER = WARP // 2
"""First lane of the threads that hold the upper 4 rows or columns."""
_Place = Callable[[int, int], tuple[int, int]]
"""Function from lane and element number to row and column."""
_PARTS = 6
"""Modifiers after sync, aligned and shape: two layouts, four types."""


def _upper(lane: int) -> int:
    return 4 * (lane >= _UPPER)


def _by_row(lane: int, i: int) -> tuple[int, int]:
    """Place of element ``i`` in row-major A, and in C and D of f16."""
    return lane % 4 + _upper(lane), i


def _by_column(lane: int, i: int) -> tuple[int, int]:
    """Place of element ``i`` in column-major A."""
    return i + _upper(lane), lane % 4


def _single(lane: int, i: int) -> tuple[int, int]:
    """Place of element ``i`` in C and D of f32."""
    return (lane & 1) + (i & 2) + _upper(lane), (i & 4) + (lane & 2) + (i & 1)


def _transposed_layout(place: _Place) -> _Place:
    """Layout with rows and columns exchanged: B is laid out as the transpose of A."""
    return lambda lane, i: place(lane, i)[::-1]


def _table(place: _Place, count: int, shape: tuple[int, int]) -> Array:
    """Index of element (product, row, column) among the ``count`` elements of each of 32 threads, flat."""
    table = np.zeros((_QUADS, *shape), np.intp)
    for lane in range(WARP):
        for i in range(count):
            table[lane % _UPPER // 4, *place(lane, i)] = lane * count + i
    return table.ravel()


# Gather tables of A and B by layout, and of C and D by type: with them matrices are taken from registers.
_LEFT = {name: _table(place, 4, (_ROWS, _DEPTH)) for name, place in (("row", _by_row), ("col", _by_column))}
_RIGHT = {
    name: _table(_transposed_layout(place), 4, (_DEPTH, _COLUMNS))
    for name, place in (("row", _by_column), ("col", _by_row))
}
_SUMS = {name: _table(place, 8, (_ROWS, _COLUMNS)) for name, place in (("f16", _by_row), ("f32", _single))}
_BACK = {name: np.argsort(table) for name, table in _SUMS.items()}
"""Inverse permutations of ``_SUMS``, from matrices back to the elements of threads."""


def quads(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of an ``mma.sync.aligned.m8n8k4`` with float16 operands.

    Raises:
        UnsupportedOpcode: a form that does not exist.
    """
    a_layout, b_layout, *types = instruction.modifiers[3:]
    known = (
        {a_layout, b_layout} <= {"row", "col"} and len(types) == _PARTS - 2 and types[1:3] == ["f16", "f16"]
    )
    d_type, c_type = types[0], types[-1]
    if not known or (d_type, c_type) not in {("f16", "f16"), ("f32", "f32"), ("f32", "f16")}:
        raise unsupported(instruction)
    lowering.tally.flop_kind = "tensor.f16"
    lowering.tally.flops_each = 2 * _QUADS * _ROWS * _COLUMNS * _DEPTH // WARP
    d, a, b, c = (items(one) for one in instruction.operands)
    words = {"f16": 4, "f32": 8}
    if (len(d), len(a), len(b), len(c)) != (words[d_type], 2, 2, words[c_type]):
        raise unsupported(instruction, "number of registers")
    slots = [[lowering.source(instruction, one, "b32") for one in part] for part in (a, b, c)]
    puts = [lowering.writer(instruction, one) for one in d]

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        left = (
            _elements(lanes, slots[0], "f16").take(_LEFT[a_layout], axis=1).reshape(-1, _QUADS, _ROWS, _DEPTH)
        )
        right = (
            _elements(lanes, slots[1], "f16")
            .take(_RIGHT[b_layout], axis=1)
            .reshape(-1, _QUADS, _DEPTH, _COLUMNS)
        )
        # float16 products are exact in float64; sum and accumulator are rounded once, to the type of D.
        sums = np.matmul(left.astype(F64), right.astype(F64)).reshape(len(left), -1)
        sums = sums + _elements(lanes, slots[2], c_type).take(_SUMS[c_type], axis=1)
        sums = sums.take(_BACK[d_type], axis=1)
        results = sums.astype(F16 if d_type == "f16" else F32).view(U32).reshape(len(left), WARP, -1)
        for index, put in enumerate(puts):
            put(lanes, mask, results[..., index].reshape(lanes.ctas, lanes.threads))

    return run


def _elements(lanes: Batch, slots: Sequence[int], kind: str) -> Array:
    """Elements of each thread, one thread after the other, as float32 of shape (warps, 32 × elements)."""
    registers = [lanes.full(lanes.registers[slot], U32).reshape(-1, WARP) for slot in slots]
    words = np.ascontiguousarray(np.stack(registers, axis=-1))
    numbers: Array = half(words) if kind == "f16" else words.view(F32)
    return numbers.reshape(len(words), -1)

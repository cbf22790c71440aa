"""``tcgen05.cp``: copies of a matrix in shared memory into tensor memory (PTX ISA, ``tcgen05.cp``).

With two CTAs each copies from its own shared memory, at the same places. Elements of 4 and 6 bits that are
unpacked on the way lie in the middle of a byte each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.values import U32, U64, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation
from cutegen_nb.simulator.ops.tensor.descriptors import UNIT, UnknownTensorDescriptor, decode_matrices
from cutegen_nb.simulator.ops.tensor.factors import HOLDER_SHIFT
from cutegen_nb.simulator.ops.tensor.places import (
    column_of,
    ctas_of,
    lane_of,
    memory_of,
    require_allocated,
    tensor_address,
)
from cutegen_nb.simulator.ops.tensor.work import issue
from cutegen_nb.simulator.ops.warp.byte_matrices import PACKED, unpacked
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, raise_outside
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask
from cutegen_nb.simulator.state.tensor_memory import HALF, LANES

_ROWS = np.arange(LANES)
_SHAPES: dict[tuple[str, str], tuple[Array, int]] = {
    ("128x256b", ""): (_ROWS, 2),
    ("128x128b", ""): (_ROWS, 1),
    ("4x256b", ""): (np.arange(4) * WARP, 2),
    # The first half of the rows to the first warp of each pair's name, the second to the other.
    ("64x128b", "warpx2::02_13"): (np.concatenate((_ROWS[:64], _ROWS[64:])), 1),
    ("64x128b", "warpx2::01_23"): (np.concatenate((_ROWS[:32], _ROWS[64:96], _ROWS[32:64], _ROWS[96:])), 1),
    ("32x128b", "warpx4"): (_ROWS, 1),
}
"""Shape and multicast → lane of each row, repeated for each warp that gets it, and 16-byte units of a row."""
_WORDS = UNIT // 4


@dataclass(slots=True)
class Copy:
    """Copies of one ``tcgen05.cp``, a row for each thread that issued one."""

    instruction: Instruction
    rows: int
    """Rows in shared memory."""
    lanes: Array
    """Lane of each row, repeated for each warp that gets it."""
    units: int
    """Units of 16 bytes of a row."""
    pair: bool
    """True for two CTAs."""
    threads: Array
    addresses: Array
    """Address in tensor memory."""
    descriptors: Array
    """Descriptor of the source."""
    packed: int
    """Bits of the packed elements of the source; 0 if it is copied as it is."""

    def _ctas(self, lanes: Batch, rows: Array) -> list[Array]:
        return ctas_of(lanes, self.threads[rows], pair=self.pair)

    def region(self, lanes: Batch, rows: Array) -> list[tuple[Array, Array, Array]]:
        """Groups of cells that are written."""
        first = column_of(self.addresses[rows])[:, None, None]
        columns = first + np.arange(self.units * _WORDS)[None, :, None]
        groups = np.unique((lane_of(self.addresses[rows])[:1] + self.lanes) // HALF)
        return [(ctas[:, None, None], columns, groups[None, None]) for ctas in self._ctas(lanes, rows)]

    def carry_out(self, lanes: Batch, rows: Array) -> None:
        """Copy, for some rows."""
        places = self.places(rows)
        columns = column_of(self.addresses[rows])[:, None, None] + np.arange(self.units * _WORDS)
        row = lane_of(self.addresses[rows])[:, None, None] + self.lanes[None, :, None]
        memory = lanes.shared.view(np.complex128)
        for ctas in self._ctas(lanes, rows):
            self._tell(lanes, ctas, rows, places)
            starts = (ctas * memory.shape[1])[:, None, None]
            units = memory.reshape(-1)[starts + places // UNIT]
            words = np.ascontiguousarray(units).view(U32).reshape(len(rows), self.rows, -1)
            if self.packed:
                each = unpacked(words.reshape(len(rows), self.rows, self.units, _WORDS), self.packed)
                words = (each << U32.type(HOLDER_SHIFT[self.packed])).reshape(words.shape)
            repeated = np.tile(words, (1, len(self.lanes) // self.rows, 1))
            memory_of(lanes).cells[ctas[:, None, None], columns, row] = repeated

    def places(self, rows: Array) -> Array:
        """Addresses in shared memory: (copies, rows, units).

        Raises:
            UnsupportedOpcode: a descriptor of a form that is not known.
        """
        try:
            return decode_matrices(self.descriptors[rows]).rows(self.rows, self.units)
        except UnknownTensorDescriptor as problem:
            raise unsupported(self.instruction, str(problem)) from problem

    def _tell(self, lanes: Batch, ctas: Array, rows: Array, places: Array) -> None:
        """Tell the race checker what was read of a thread's own CTA."""
        if lanes.watch is None:
            return
        threads = self.threads[rows]
        own = threads // lanes.threads == ctas
        if own.any():
            flat = places.reshape(len(places), -1)[own]
            request = ListedAddresses(flat.ravel(), np.repeat(threads[own], flat.shape[1]))
            lanes.watch.read(lanes, None, SharedAccess(self.instruction, request, UNIT, 1, "reads"))

    def check(self, lanes: Batch) -> None:
        """Check what is copied from where.

        Raises:
            OutOfBounds: columns that are not allocated, or a place outside shared memory.
        """
        rows = np.arange(len(self.threads))
        for ctas in self._ctas(lanes, rows):
            require_allocated(
                lanes, self.instruction, self.threads, ctas, column_of(self.addresses), self.units * _WORDS,
                "copies into",
            )  # fmt: skip
        places = self.places(rows)
        outside = (places < 0) | (places + UNIT > lanes.shared_limit)
        if outside.any():
            raise_outside(
                lanes, int(self.threads[np.argwhere(outside)[0, 0]]), self.instruction,
                f"copies from byte {int(places[outside][0])} of shared memory, of which the CTA has "
                f"{lanes.shared_limit} bytes",
            )  # fmt: skip


def lower_copy(instruction: Instruction, lowering: Lowering, modifiers: Modifiers, ctas: int) -> Operation:
    """Operation of ``tcgen05.cp``.

    Raises:
        UnsupportedOpcode: a shape that is not known.
    """
    shape = modifiers.one(*(one for one, _ in _SHAPES))
    multicast = modifiers.one(*(one for _, one in _SHAPES if one))
    unpacks = modifiers.flag("b8x16")
    packed = PACKED.get(modifiers.one(*PACKED), 0)
    modifiers.done()
    if (shape, multicast) not in _SHAPES or unpacks != bool(packed):
        raise unsupported(instruction)
    target, origin = instruction.operands
    at = tensor_address(instruction, lowering, target)
    source = lowering.source(instruction, origin, "b64")
    to, units = _SHAPES[shape, multicast]
    rows = int(shape.split("x", maxsplit=1)[0])
    lowering.tally.tensor_bytes_each = rows * units * UNIT

    def run(lanes: Batch, mask: Mask | None) -> None:
        threads = np.arange(lanes.lane_count) if mask is None else mask.index
        copy = Copy(
            instruction=instruction, rows=rows, lanes=to, units=units, pair=ctas > 1, threads=threads,
            addresses=at.of(lanes, threads),
            descriptors=lanes.full(lanes.registers[source], U64).reshape(-1)[threads], packed=packed,
        )  # fmt: skip
        copy.check(lanes)
        issue(lanes, copy)

    return run

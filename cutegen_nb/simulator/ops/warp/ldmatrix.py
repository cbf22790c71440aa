"""``ldmatrix``, ``stmatrix``, ``movmatrix``: tiles of 8 rows of 16 bytes between shared memory and a warp.

Lane ``8i + j`` gives the address of row ``j`` of tile ``i``. With 16-bit elements thread ``4g + t`` holds
the elements ``2t, 2t + 1`` of row ``g`` of every tile in one register (PTX ISA, "ldmatrix", "stmatrix",
"movmatrix"); :mod:`~cutegen_nb.simulator.ops.warp.byte_matrices` has the other forms, whose matrices of 16
rows are two tiles. The eight rows of a tile are served together: a tile without bank conflicts is one
wavefront.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import U32, U64, Array
from cutegen_nb.simulator.ops.lowering import NONE, Lowering, Modifiers, Operation, items, opcode, under
from cutegen_nb.simulator.ops.memory import shared
from cutegen_nb.simulator.ops.memory.load_store import BASES, address_of
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ops.warp.byte_matrices import (
    PACKED,
    loaded_by_columns,
    stored_by_columns,
    unpacked,
)
from cutegen_nb.simulator.ops.warp.fragments import GROUPS, PLACES, require_whole_warps
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction, Operand
from cutegen_nb.simulator.state.addressing import AddressOperand, ListedAddresses
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

_ROW_WORDS = 4
"""32-bit words of a row."""
_HALVES = 2
"""64-bit halves in which a row is stored."""
_ROW_BYTES = 16
"""Bytes of a row: 8 elements of 16 bits."""
_ROW = np.dtype(np.complex128)
"""dtype of 16 bytes, to copy a row as one element; never computed with."""
_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


class _Tiles:
    """Request of an ldmatrix or stmatrix: number of tiles, form of the matrices, and the address operand."""

    def __init__(
        self,
        instruction: Instruction,
        lowering: Lowering,
        place: Operand,
        registers: Operand,
        *,
        stores: bool,
    ) -> None:
        modifiers = Modifiers(instruction)
        known = modifiers.flag("sync") and modifiers.flag("aligned")
        self.shape = modifiers.one("m8n8", "m8n16", "m16n16", "m16n8")
        count = _COUNTS.get(modifiers.one(*_COUNTS), 0)
        self.transposed = modifiers.flag("trans")
        space = modifiers.one("shared", "shared::cta")
        kind = modifiers.one("b16", "b8", "b8x16")
        self.packed = PACKED.get(modifiers.one(*PACKED), 0)
        """Bits of a packed element; 0 if elements are not packed."""
        modifiers.done()
        self.registers = items(registers)
        self.count = count * (2 if self.shape == "m16n16" else 1)
        """Number of tiles and of registers."""
        if not known or not self._is_known(kind, stores=stores) or len(self.registers) != self.count:
            raise unsupported(instruction)
        self.instruction = instruction
        self.slot, offset, own = address_of(instruction, lowering, place)
        # Without a state space the address is generic: the base of the shared window is taken off.
        self.offset = offset if space or own else offset - BASES["shared"]
        self.form = SharedAccessForm(
            instruction=instruction, tally=lowering.tally, width=8, count=_HALVES, stores=stores
        )

    def _is_known(self, kind: str, *, stores: bool) -> bool:
        """Return whether the PTX ISA has the form."""
        if self.shape == "m8n8":
            return kind == "b16" and not self.packed
        if stores or self.shape == "m16n8":
            return stores and self.shape == "m16n8" and kind == "b8" and self.transposed
        if self.shape == "m16n16" and (not self.transposed or self.count * GROUPS > WARP):
            return False
        if self.shape == "m8n16" and self.transposed:
            return False
        return kind == "b8x16" if self.packed else kind == "b8" and self.shape == "m16n16"

    def rows(self, lanes: Batch, mask: Mask | None) -> Mask | None:
        """Lanes whose addresses count: the first 8 for each tile (PTX ISA, ``ldmatrix``)."""
        if self.count * GROUPS == WARP:
            return mask
        named = under(lanes, mask, (lanes.lane_of_thread < self.count * GROUPS)[None])
        return mask if named is NONE else named

    def at(self, lanes: Batch) -> AddressOperand:
        """Byte addresses of the rows, one a lane."""
        return AddressOperand(lanes.registers[self.slot], self.offset)


def transposed(tile: Array) -> Array:
    """Exchange rows and columns of 8×8 tiles of 16-bit elements, given as (…, 8, 4) words."""
    elements = np.ascontiguousarray(tile).view(U16)
    return np.ascontiguousarray(elements.swapaxes(-1, -2)).view(U32)


def _tiles_of(lanes: Batch, mask: Mask | None, tiles: _Tiles) -> Array:
    """Load the rows of every tile: words (ctas, tiles, warps of a CTA, 8 rows, 4).

    Inactive lanes read an arbitrary row, which the caller does not write back.
    """
    active = tiles.rows(lanes, mask)
    request = shared.admit(lanes, active, tiles.at(lanes), tiles.form)
    shared.report_access(lanes, active, request, tiles.form)
    if isinstance(request, ListedAddresses):
        addresses = np.zeros((lanes.ctas, lanes.threads), np.int64)
        addresses.reshape(-1)[slice(None) if request.lanes is None else request.lanes] = request.addresses
    else:
        addresses = np.zeros((1, lanes.threads), np.int64)
        addresses[0, slice(None) if request.active is None else request.active] = request.row
        addresses += int(request.column[0])
    by_warp = addresses.reshape(len(addresses), lanes.warps_per_cta, -1, GROUPS)[:, :, : tiles.count]
    place = by_warp.swapaxes(1, 2).reshape(len(addresses), -1) // _ROW_BYTES  # (ctas, tile × warp × row)
    memory = lanes.shared.view(_ROW)
    if len(place) == 1:
        # Every CTA reads the same places.
        rows = memory.take(place[0], axis=1)
    else:
        rows = memory.reshape(-1)[np.arange(lanes.ctas)[:, None] * memory.shape[1] + place]
    return rows.view(U32).reshape(lanes.ctas, tiles.count, lanes.warps_per_cta, GROUPS, _ROW_WORDS)


@opcode(
    "ldmatrix",
    forms="sync aligned m8n8 x1, x2, x4, trans, b16; m16n16 x1, x2, trans, b8; m8n16 and m16n16 of "
    "b6x16_p32 and b4x16_p64; shared or generic",
)
def _ldmatrix(instruction: Instruction, lowering: Lowering) -> Operation:
    target, place = instruction.operands
    tiles = _Tiles(instruction, lowering, place, target, stores=False)
    puts = [lowering.writer(instruction, one) for one in tiles.registers]

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        rows = _tiles_of(lanes, mask, tiles)
        if tiles.packed:
            rows = unpacked(rows, tiles.packed)
        if tiles.shape == "m16n16":
            rows = loaded_by_columns(rows)
        elif tiles.transposed:
            rows = transposed(rows)
        for index, put in enumerate(puts):
            put(lanes, mask, rows[:, index].reshape(lanes.ctas, lanes.threads))

    return run


@opcode(
    "stmatrix",
    forms="sync aligned m8n8 x1, x2, x4, trans, b16; m16n8 x1, x2, x4, trans, b8; shared or generic",
)
def _stmatrix(instruction: Instruction, lowering: Lowering) -> Operation:
    place, origin = instruction.operands
    tiles = _Tiles(instruction, lowering, place, origin, stores=True)
    slots = [lowering.source(instruction, one, "b32") for one in tiles.registers]

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        rows = np.zeros((lanes.ctas, lanes.warps_per_cta, WARP // GROUPS, GROUPS, _ROW_WORDS), U32)
        for index, slot in enumerate(slots):
            tile = lanes.full(lanes.registers[slot], U32).reshape(lanes.ctas, -1, GROUPS, PLACES)
            # Register i holds tile i, so its row r belongs to the address of lane 8i + r.
            if tiles.shape == "m16n8":
                tile = stored_by_columns(tile)
            elif tiles.transposed:
                tile = transposed(tile)
            rows[:, :, index] = tile
        flat = rows.reshape(lanes.ctas, lanes.threads, _ROW_WORDS).view(U64)
        halves = [flat[..., index] for index in range(_HALVES)]
        shared.store(lanes, tiles.rows(lanes, mask), tiles.at(lanes), halves, tiles.form)

    return run


@opcode("movmatrix", forms="sync aligned m8n8 trans b16")
def _movmatrix(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise unsupported(instruction)
    (slot,) = lowering.sources(instruction, ("b32",))
    put = lowering.writer(instruction, instruction.operands[0])

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        tile = lanes.full(lanes.registers[slot], U32).reshape(lanes.ctas, -1, GROUPS, PLACES)
        put(lanes, mask, transposed(tile).reshape(lanes.ctas, lanes.threads))

    return run

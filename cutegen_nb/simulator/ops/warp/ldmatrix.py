"""``ldmatrix``, ``stmatrix``, ``movmatrix``: 8×8 tiles of 16-bit elements between shared memory and a warp.

Lane ``8i + j`` gives the address of row ``j`` of tile ``i``; each row is 16 bytes. Thread ``4g + t`` holds
the elements ``2t, 2t + 1`` of row ``g`` of every tile in one register (PTX ISA, "ldmatrix", "stmatrix",
"movmatrix"). The eight rows of a tile are served together: a tile without bank conflicts is one wavefront.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import U32, U64, Array
from cutegen_nb.simulator.ops.lowering import NONE, Lowering, Modifiers, Operation, items, opcode, under
from cutegen_nb.simulator.ops.memory import shared
from cutegen_nb.simulator.ops.memory.load_store import BASES, address_of
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
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
_TILES = {"x1": 1, "x2": 2, "x4": 4}


class _Tiles:
    """Request of an ldmatrix or stmatrix: number of tiles, transposition, and the address operand."""

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
        (kind,) = modifiers.types()
        known = modifiers.flag("sync") and modifiers.flag("aligned") and modifiers.flag("m8n8")
        count = modifiers.one(*_TILES)
        self.transposed = modifiers.flag("trans")
        space = modifiers.one("shared", "shared::cta")
        modifiers.done()
        self.registers = items(registers)
        if not known or kind != "b16" or not count or len(self.registers) != _TILES[count]:
            raise unsupported(instruction)
        self.count = _TILES[count]
        self.instruction = instruction
        self.slot, offset, own = address_of(instruction, lowering, place)
        # Without a state space the address is generic: the base of the shared window is taken off.
        self.offset = offset if space or own else offset - BASES["shared"]
        self.form = SharedAccessForm(
            instruction=instruction, tally=lowering.tally, width=8, count=_HALVES, stores=stores
        )

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


@opcode("ldmatrix", forms="sync aligned m8n8 x1, x2, x4; trans; shared or generic; b16")
def _ldmatrix(instruction: Instruction, lowering: Lowering) -> Operation:
    target, place = instruction.operands
    tiles = _Tiles(instruction, lowering, place, target, stores=False)
    puts = [lowering.writer(instruction, one) for one in tiles.registers]

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        rows = _tiles_of(lanes, mask, tiles)
        if tiles.transposed:
            rows = transposed(rows)
        for index, put in enumerate(puts):
            put(lanes, mask, rows[:, index].reshape(lanes.ctas, lanes.threads))

    return run


@opcode("stmatrix", forms="sync aligned m8n8 x1, x2, x4; trans; shared or generic; b16")
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
            rows[:, :, index] = transposed(tile) if tiles.transposed else tile
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

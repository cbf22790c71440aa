"""Tensor map operands: where an instruction finds the 128 bytes, and the maps that they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ops.memory.load_store import BASES
from cutegen_nb.simulator.ptx.faults import OutOfBounds, SimulatorFault, place, unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch
from cutegen_nb.simulator.state.tensor_map import ALIGNMENT, MAP_BYTES, TensorMap, UnknownTensorMap


class TensorMapMisuse(SimulatorFault):
    """Tensor map at a misaligned address, or box that does not fit its map."""

    kind = "tensor-map-misuse"
    verdict = Verdict.CRASHED


def maps_of(
    lanes: Batch, instruction: Instruction, addresses: Array, threads: Array
) -> Iterator[tuple[TensorMap, Array]]:
    """Each distinct tensor map, with the positions of the threads that name it.

    Args:
        lanes: the batch.
        instruction: instruction, for messages.
        addresses: generic address of each thread's map, int64.
        threads: index of each thread into the flattened batch.

    Raises:
        TensorMapMisuse: an address is no multiple of 64.
        OutOfBounds: an address outside the kernel's parameters and every allocation.
        UnsupportedOpcode: a map of a kind that the simulator does not know.
    """
    for address in np.unique(addresses):
        positions = np.flatnonzero(addresses == address)
        thread, cta = lanes.place_of(int(threads[positions[0]]))
        data = _bytes_at(lanes, int(address))
        if data is None:
            raise OutOfBounds(
                f"Thread {thread} of CTA {cta} names a tensor map at address {int(address):#x}, which is "
                f"neither a parameter of the kernel nor in a tensor ({instruction.name}, "
                f"{place(instruction)}). Pass the TMA copy atom to the kernel.",
                instruction, thread=thread, cta=cta,
            )  # fmt: skip
        if address % ALIGNMENT:
            raise TensorMapMisuse(
                f"Thread {thread} of CTA {cta} names a tensor map at address {int(address):#x}, which is no "
                f"multiple of {ALIGNMENT} ({instruction.name}, {place(instruction)}). Align it.",
                instruction, thread=thread, cta=cta,
            )  # fmt: skip
        try:
            yield _decoded(data), positions
        except UnknownTensorMap as problem:
            raise unsupported(instruction, f"a tensor map whose {problem}") from problem


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> TensorMap:
    return TensorMap.read(data)


def _bytes_at(lanes: Batch, address: int) -> bytes | None:
    """Bytes of a map; None if they are in no known memory."""
    offset = address - BASES["param"]
    if 0 <= offset <= len(lanes.parameters) - MAP_BYTES:
        return lanes.parameters[offset : offset + MAP_BYTES]
    allocation = lanes.memory.find(address, address + MAP_BYTES)
    if allocation is None:
        return None
    start = address - allocation.address
    return allocation.bytes[start : start + MAP_BYTES].tobytes()

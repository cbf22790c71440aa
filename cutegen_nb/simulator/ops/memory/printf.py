"""``vprintf`` and ``__assertfail``: calls that a GPU's driver handles.

See CUDA C++ Programming Guide, "Formatted Output" and "Assertion". ``vprintf(format, arguments)`` takes the
generic address of a C string and that of a buffer in local memory.
"""

from __future__ import annotations

import struct

import numpy as np

from cutegen_nb.simulator.numbers.values import S64, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Operation, opcode
from cutegen_nb.simulator.ops.memory import local
from cutegen_nb.simulator.ops.memory.move import GENERIC_LOCAL
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ptx.faults import OutOfBounds, Trapped, place, unsupported
from cutegen_nb.simulator.ptx.inlining import ASSERT, PRINT
from cutegen_nb.simulator.ptx.model import Instruction, Operand, Symbol, Vector
from cutegen_nb.simulator.state.addressing import AddressOperand
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.printf import Piece, filled, pieces_of

_ARGUMENTS = 2
"""Arguments of ``vprintf``, and the result it gives."""
_LONGEST = 1 << 16
"""Maximum number of bytes read from a C string."""


@opcode("call", forms="of functions in the module, written out where they are called; vprintf, __assertfail")
def _call(instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.modifiers == (PRINT,):
        return _print(instruction, lowering)
    if instruction.modifiers == (ASSERT,):
        return _fail(instruction)
    raise unsupported(instruction)


def _fail(instruction: Instruction) -> Operation:
    def run(lanes: Batch, mask: Mask | None) -> None:
        lane = 0 if mask is None else int(mask.index[0])
        thread, cta = lanes.place_of(lane)
        raise Trapped(
            f"Thread {thread} of CTA {cta} failed a device assertion ({place(instruction)}).",
            instruction, thread=thread, cta=cta,
        )  # fmt: skip

    return run


def _print(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of ``vprintf``: append the text of every active thread, in thread order, to the output."""
    vectors = [one for one in instruction.operands if isinstance(one, Vector)]
    if len(vectors) != _ARGUMENTS or len(vectors[1].items) != _ARGUMENTS:
        raise unsupported(instruction, "argument form")
    result = _local(instruction, lowering, vectors[0].items[0])
    format_at, buffer_at = (_local(instruction, lowering, one) for one in vectors[1].items)
    reading = SharedAccessForm(instruction=instruction, tally=lowering.tally, width=8, count=1)
    writing = SharedAccessForm(instruction=instruction, tally=lowering.tally, width=4, count=1, stores=True)

    def run(lanes: Batch, mask: Mask | None) -> None:
        (formats,) = local.load_local(lanes, mask, AddressOperand(np.uint64(format_at), 0), reading)
        (buffers,) = local.load_local(lanes, mask, AddressOperand(np.uint64(buffer_at), 0), reading)
        active = np.arange(lanes.lane_count) if mask is None else mask.index
        _put(lanes, instruction, active, (_flat(lanes, formats), _flat(lanes, buffers)))
        local.store_local(lanes, mask, AddressOperand(np.uint64(result), 0), [np.uint32(_ARGUMENTS)], writing)

    return run


def _local(instruction: Instruction, lowering: Lowering, operand: Operand) -> int:
    """Address in local memory of a ``.param`` variable of the caller."""
    if isinstance(operand, Symbol):
        space, address = lowering.symbols(operand.name)
        if space == "local":
            return address + operand.offset
    raise unsupported(instruction, "argument that is no parameter variable")


def _flat(lanes: Batch, value: Array) -> Array:
    return np.broadcast_to(value.view(S64), (lanes.ctas, lanes.threads)).reshape(-1)


def _put(lanes: Batch, instruction: Instruction, active: Array, given: tuple[Array, Array]) -> None:
    formats, buffers = given
    known: dict[int, tuple[Piece, ...]] = {}
    local = lanes.local.reshape(lanes.lane_count, -1)

    def text_at(address: int) -> str:
        return _c_string(lanes, instruction, int(active[0]), address)

    for lane in active:
        if lanes.printed.full:
            return
        address = int(formats[lane])
        if address not in known:
            known[address] = pieces_of(text_at(address))
        first = int(buffers[lane]) - GENERIC_LOCAL
        raw = local[lane, max(first, 0) :].tobytes() if known[address] else b""
        lanes.printed.add(filled(known[address], raw, _double, text_at))


def _double(bits: bytes) -> float:
    value: float = struct.unpack("<d", bits.ljust(8, b"\0"))[0]
    return value


def _c_string(lanes: Batch, instruction: Instruction, lane: int, address: int) -> str:
    """Text at a global address, up to its zero byte.

    Raises OutOfBounds if the address lies in no allocation.
    """
    found = lanes.memory.find(address, address + 1)
    if found is None:
        thread, cta = lanes.place_of(lane)
        raise OutOfBounds(
            f"Thread {thread} of CTA {cta}: printf reads a string {lanes.memory.describe(address, 1)} "
            f"({place(instruction)}). Give it a string constant.",
            instruction, thread=thread, cta=cta,
        )  # fmt: skip
    raw = found.bytes[address - found.address :][:_LONGEST].tobytes()
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")

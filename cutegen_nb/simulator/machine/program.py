"""Program of a kernel: segments of straight-line code, memory layout, and operations built once.

A segment begins where a branch can arrive or where threads must meet. It ends at the next such place or at a
control instruction. All its instructions run for the same threads, so executions are counted by segment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.findings import UNINITIALISED, Findings
from cutegen_nb.simulator.checkers.global_memory import orders_ctas
from cutegen_nb.simulator.checkers.shared_cells import cell_bytes
from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.counters.load_use_distance import waits
from cutegen_nb.simulator.machine.bytes_read import bytes_read
from cutegen_nb.simulator.machine.register_uses import private_registers, read_first, registers_of
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ops.arithmetic import approximate, bit_fields, bits, compare, convert, floating
from cutegen_nb.simulator.ops.bulk import map_changes
from cutegen_nb.simulator.ops.cluster import addresses, async_stores, launch_control
from cutegen_nb.simulator.ops.lowering import Lowering, Operation, lower, refuse, stops
from cutegen_nb.simulator.ops.memory import atomics, load_store, move, printf
from cutegen_nb.simulator.ops.sync import async_copy, mbarrier
from cutegen_nb.simulator.ops.tensor import instructions
from cutegen_nb.simulator.ops.warp import ldmatrix, mma, mma_batching, shuffle
from cutegen_nb.simulator.ops.warpgroup import wgmma
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, UnsupportedOpcode, place, unsupported
from cutegen_nb.simulator.ptx.inlining import FlatKernel, flatten
from cutegen_nb.simulator.ptx.model import (
    Instruction,
    Kernel,
    Module,
    Register,
    Symbol,
    Variable,
)
from cutegen_nb.simulator.state.batch import Batch, Mask

LOADED = (
    addresses, approximate, async_copy, async_stores, atomics, bits, compare, convert, bit_fields, floating,
    instructions, launch_control, load_store, ldmatrix, map_changes, mma, mbarrier, move, printf, shuffle,
    wgmma,
)  # fmt: skip
"""Modules that register their opcodes when imported."""
CONTROL: dict[str, str] = {
    "bra": "uniform and divergent, guarded",
    "brx": "idx",
    "bar": "sync, arrive, red (popc, and, or), with id and count",
    "barrier": "cta sync, arrive, red; aligned or not; warp barrier as bar.warp.sync; cluster arrive, wait",
    "ret": "",
    "exit": "",
    "trap": "",
    "brkpt": "as trap",
    "call": "of functions in the module, written out where they are called; vprintf, __assertfail",
}
"""Supported forms of the control instructions, which ``schedule`` executes, by opcode."""
_BARRIER_FORMS = frozenset(
    {
        "sync", "arrive", "red", "cta", "aligned", "popc", "and", "or", "u32", "pred", "warp",
        "cluster", "wait", "release", "acquire", "relaxed",
    }
)  # fmt: skip
_WARP_WIDE = frozenset({"shfl", "vote", "match", "redux", "elect"})
"""Opcodes that the threads in a member mask, their last operand, execute together."""
_WHOLE_WARP = frozenset({"mma", "ldmatrix", "stmatrix", "movmatrix", "wgmma"})
"""Opcodes that all 32 threads of a warp execute together; they have no member mask."""
_ENDS = frozenset({"bra", "brx", "ret", "exit", "trap", "brkpt", "bar", "barrier"})
"""Opcodes that end a segment."""


@dataclass(slots=True)
class Segment:
    """Straight-line code that ends in at most one control instruction."""

    instructions: list[tuple[Instruction, InstructionTally]]
    """All instructions, each with its tally."""
    operations: list[Operation]
    """Operations of all instructions but ``end``."""
    end: Instruction | None
    """Control instruction at the end; None if the next segment follows."""
    end_tally: InstructionTally
    """Tally of the last instruction, which is ``end`` where there is one."""
    warp_wide: Instruction | None
    """First instruction, if threads of a warp must meet there; else None."""
    member: int
    """Slot of that instruction's member mask; -1 for none."""
    wait: mbarrier.MbarrierWait | None = None
    """First operation, if threads wait for an mbarrier there; else None."""
    guard: int = -1
    """Slot of the predicate of ``end``; -1 for none."""
    negated: bool = False
    """True if the predicate of ``end`` is negated (``@!p``)."""
    target: int = -1
    """Index of the segment that ``bra`` goes to; -1 for other instructions."""
    targets: tuple[int, ...] = ()
    """Indices of the segments that ``brx`` chooses from."""
    operand_slots: tuple[int, ...] = ()
    """Slots of the operands of ``end``: barrier id and count, index of ``brx``, predicate of ``bar.red``."""
    put: Callable[..., None] | None = None
    """Writer of the result of ``bar.red``; None for other instructions."""


@dataclass(slots=True)
class Program:
    """Kernel ready to run."""

    kernel: Kernel
    """Parsed kernel."""
    segments: list[Segment]
    """Code in order; execution begins with the first segment."""
    lowering: Lowering
    """Slots of the registers, and their initial values."""
    dynamic_smem_offset: int
    """Byte offset of dynamic shared memory in a CTA's shared memory."""
    local_bytes: int
    """Bytes of local memory of a thread."""
    own_memory: list[tuple[Array, str]]
    """Bytes and name of each global and const variable, kept from launch to launch."""
    unset: dict[int, Instruction]
    """Slots of registers that may be read before they are written, with the instruction that reads."""
    cells: tuple[int, int]
    """Bytes of a cell of shared and of local memory (`cell_bytes`)."""
    orders_ctas: bool
    """True if the kernel can order its CTAs or reads a clock."""
    takes_clusters: bool
    """True if its clusters may take the work of others (``clusterlaunchcontrol``)."""

    def registers(self, filling: Array) -> list[Value]:
        """Return the value of each slot before the first instruction; an unset register holds `filling`."""
        values = list(self.lowering.initial)
        for slot in self.unset:
            values[slot] = np.resize(filling, values[slot].nbytes).view(values[slot].dtype)[0]
        return values

    def doubt_registers(self, findings: Findings) -> None:
        """Note a doubt for each line that reads an unset register; moves and selections only pass it on."""
        for item in self.unset.values():
            if item.opcode not in _PASSES_ON:
                findings.add(
                    UNINITIALISED,
                    f"A thread reads a register that it has not written ({item.name}, {place(item)}). "
                    "Give the variable a first value (for a tensor in registers: fill) before it is used.",
                    item, doubt=True,
                )  # fmt: skip

    def tallied(self) -> Sequence[Sequence[tuple[Instruction, InstructionTally]]]:
        """Instructions with their tallies, by segment."""
        return [segment.instructions for segment in self.segments]


_VALUES = frozenset({"b16", "u16", "s16", "f16", "b32", "u32", "s32", "f32"})
"""Types of the registers that are looked at: those of 64 bits hold addresses and descriptors."""
_PASSES_ON = frozenset({"mov", "selp", "wgmma"})
"""Opcodes that may read a register whose value does not matter: ``wgmma`` may overwrite its sums."""
_by_module: dict[int, tuple[object, dict[str, Program]]] = {}
"""Cache of programs: module and programs by kernel name, by ``id`` of the module."""
_KEPT = 64
"""Modules in the cache at most."""


def program_of(module: Module, kernel: Kernel) -> Program:
    """Program of a kernel, built once for each module and kept in a cache."""
    known = _by_module.get(id(module))
    if known is None or known[0] is not module:
        if len(_by_module) >= _KEPT:
            _by_module.pop(next(iter(_by_module)))
        known = (module, {})
        _by_module[id(module)] = known
    programs = known[1]
    if kernel.name not in programs:
        programs[kernel.name] = _Assembler(module, kernel).program()
    return programs[kernel.name]


class _Assembler:
    """Builder of one program."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self._module = module
        self._kernel = kernel
        self._flat: FlatKernel = flatten(module, kernel)
        self._own_memory: list[tuple[Array, str]] = []
        self._addresses: dict[str, tuple[str, int]] = {}
        self._local_bytes = 0
        self._dynamic = 0
        self._lay_out()

    # -- memory ---------------------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        """Give every variable its address; all dynamic shared arrays begin together after the static ones."""
        for parameter in self._kernel.parameters:
            self._addresses[parameter.name] = ("param", parameter.offset_bytes)
        shared, dynamic_align = 0, 1
        for item in (*self._module.variables, *self._flat.variables):
            if item.space == "shared" and item.size_bytes:
                shared = _aligned(shared, item.align_bytes)
                self._addresses[item.name] = ("shared", shared)
                shared += item.size_bytes
            elif item.space == "shared":
                dynamic_align = max(dynamic_align, item.align_bytes)
            elif item.space in {"local", "param"}:
                self._local_bytes = _aligned(self._local_bytes, item.align_bytes)
                self._addresses[item.name] = ("local", self._local_bytes)
                self._local_bytes += item.size_bytes
            else:
                self._addresses[item.name] = (item.space, self._placed(item))
        self._dynamic = _aligned(shared, dynamic_align)
        for item in (*self._module.variables, *self._flat.variables):
            if item.space == "shared" and not item.size_bytes:
                self._addresses[item.name] = ("shared", self._dynamic)

    def _placed(self, item: Variable) -> int:
        room = np.zeros(item.size_bytes + item.align_bytes, np.uint8)
        skip = -int(room.ctypes.data) % item.align_bytes
        array = room[skip : skip + item.size_bytes]
        array[: len(item.initial)] = np.frombuffer(item.initial, np.uint8)
        self._own_memory.append((array, item.name))
        return int(array.ctypes.data)

    # -- code -----------------------------------------------------------------------------------------------
    def program(self) -> Program:
        """Divide the code into segments and build every operation."""
        body = self._flat.body
        starts = self._starts()
        ranges = [(start, end) for start, end in zip(starts, [*starts[1:], len(body)], strict=True)]
        number = {start: index for index, start in enumerate(starts)}
        number.setdefault(len(body), len(starts))
        lowering = Lowering(
            register_types=self._flat.type_of, symbols=self._symbol,
            private=private_registers(body, ranges), bytes_read=bytes_read(body),
            has_pairs=any("cta_group::2" in item.modifiers for item in body),
        )  # fmt: skip
        segments = [self._segment(body[start:end], lowering, number) for start, end in ranges]
        tallies = [tally for segment in segments for _, tally in segment.instructions]
        for one in waits(body, self._flat.labels, registers_of):
            tallies[one.load].wait_distance = one.distance
        return Program(
            kernel=self._kernel, segments=segments, lowering=lowering, dynamic_smem_offset=self._dynamic,
            local_bytes=self._local_bytes, own_memory=self._own_memory, unset=self._unset(lowering),
            cells=(cell_bytes(body, "shared"), cell_bytes(body, "local")), orders_ctas=orders_ctas(body),
            takes_clusters=any(item.opcode == "clusterlaunchcontrol" for item in body),
        )  # fmt: skip

    def _unset(self, lowering: Lowering) -> dict[int, Instruction]:
        first = read_first(self._flat.body)
        return {
            lowering.register(name): item for name, item in first.items()
            if name in lowering and self._flat.type_of(name) in _VALUES
        }  # fmt: skip

    def _symbol(self, name: str) -> tuple[str, int]:
        return self._addresses[name]

    def _starts(self) -> list[int]:
        body, starts = self._flat.body, {0}
        used = {
            one.name for item in body if item.opcode in {"bra", "brx"} for one in item.operands
            if isinstance(one, Symbol)
        }  # fmt: skip
        for name, targets in self._flat.branch_targets.items():
            if name in used:
                used.update(targets)
        starts.update(index for label, index in self._flat.labels.items() if label in used)
        for index, item in enumerate(body):
            if item.opcode in _ENDS:
                starts.add(index + 1)
            if item.opcode in _WARP_WIDE or (item.opcode in {"bar", "barrier"}) or mbarrier.is_wait(item):
                starts.add(index)
        _meet_once(body, starts)
        return sorted(index for index in starts if index < len(body)) or [0]

    def _segment(self, body: Sequence[Instruction], lowering: Lowering, number: dict[int, int]) -> Segment:
        instructions: list[tuple[Instruction, InstructionTally]] = []
        operations: list[Operation] = []
        end: Instruction | None = None
        for item in body:
            lowering.tally = InstructionTally()
            instructions.append((item, lowering.tally))
            if item.opcode in {"bar", "barrier"} and not _BARRIER_FORMS.issuperset(item.modifiers):
                operations.append(stops(unsupported(item)))
            elif item.opcode in {"bar", "barrier"} and "warp" in item.modifiers:
                operations.append(async_copy.no_effect)
            elif item.opcode == "call" and item in self._flat.refusals:
                operations.append(refuse(item, self._flat.refusals[item], lowering))
            elif item.opcode in _ENDS:
                end = item
            else:
                operations.append(lower(item, lowering))
        wide = body[0] if body and _is_warp_wide(body[0]) else None
        segment = Segment(
            instructions=instructions, operations=mma_batching.grouped(operations), end=end,
            end_tally=instructions[-1][1] if instructions else InstructionTally(),
            warp_wide=wide, member=_member(wide, lowering), wait=mbarrier.wait_of(operations),
        )  # fmt: skip
        if end is None:
            return segment
        try:
            self._finish(segment, end, lowering, number)
        except (UnsupportedOpcode, *SIMULATOR_DEFECTS) as problem:
            known = isinstance(problem, UnsupportedOpcode)
            segment.end = None
            segment.operations.append(stops(problem if known else unsupported(end, f"operands: {problem}")))
        return segment

    def _finish(self, segment: Segment, end: Instruction, lowering: Lowering, number: dict[int, int]) -> None:
        if end.guard is not None:
            segment.guard, segment.negated = lowering.register(end.guard.name), end.guard.negated
        if end.opcode == "bra":
            (label,) = (one for one in end.operands if isinstance(one, Symbol))
            segment.target = number[self._flat.labels[label.name]]
        elif end.opcode == "brx":
            index, table = end.operands
            assert isinstance(table, Symbol)
            segment.operand_slots = (lowering.source(end, index, "u32"),)
            names = self._flat.branch_targets[table.name]
            segment.targets = tuple(number[self._flat.labels[name]] for name in names)
        elif end.opcode in {"bar", "barrier"}:
            self._finish_barrier(segment, end, lowering)

    def _finish_barrier(self, segment: Segment, end: Instruction, lowering: Lowering) -> None:
        operands = list(end.operands)
        if "red" in end.modifiers:
            segment.put = lowering.writer(end, operands.pop(0))
            predicate = operands.pop()
            assert isinstance(predicate, Register)
            operands.insert(0, predicate)
        kinds = ["pred"] * ("red" in end.modifiers) + ["u32", "u32"]
        segment.operand_slots = tuple(
            lowering.source(end, one, kind) for one, kind in zip(operands, kinds, strict=False)
        )
        voter = operands[0] if operands else None
        if isinstance(voter, Register) and voter.negated:
            turned = lowering.scratch(np.bool_(False))
            segment.operations.append(_inverted(segment.operand_slots[0], turned))
            segment.operand_slots = (turned, *segment.operand_slots[1:])


def _is_warp_wide(item: Instruction) -> bool:
    if item.opcode in {"bar", "barrier"}:
        return "warp" in item.modifiers
    return item.opcode in _WARP_WIDE or _is_whole_warp(item)


def _is_whole_warp(item: Instruction) -> bool:
    """Return whether all 32 threads of a warp execute an instruction together; ``tcgen05.mma`` needs one."""
    return item.opcode in _WHOLE_WARP or (item.opcode == "tcgen05" and "sync" in item.modifiers)


def _member(wide: Instruction | None, lowering: Lowering) -> int:
    """Slot of the member mask of an instruction: its last operand, or all 32 lanes; -1 for no instruction."""
    if wide is None:
        return -1
    if not _is_whole_warp(wide):
        with contextlib.suppress(UnsupportedOpcode, *SIMULATOR_DEFECTS):  # lowering it says what is wrong
            return lowering.source(wide, wide.operands[-1], "b32")
    return lowering.constant(np.uint32(0xFFFFFFFF))


def _meet_once(body: Sequence[Instruction], starts: set[int]) -> None:
    """Begin a segment at the first whole-warp instruction of each stretch of straight-line code.

    A warp that has met there stays together up to the next segment.
    """
    together = False
    for index, item in enumerate(body):
        if index in starts:
            together = False
        if _is_whole_warp(item) and not together:
            starts.add(index)
            together = True


def _inverted(source: int, target: int) -> Operation:
    """Operation that puts the negation of a predicate into another slot."""

    def run(lanes: Batch, mask: Mask | None) -> None:
        del mask
        lanes.registers[target] = np.logical_not(lanes.registers[source])

    return run


def _aligned(offset: int, align: int) -> int:
    return -(-offset // max(1, align)) * max(1, align)


__all__ = ["CONTROL", "Program", "Segment", "program_of"]

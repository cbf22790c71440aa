"""Registers that steer a loop: those that feed branches, guards of memory accesses, and addresses.

A skipped iteration must have taken the same path and used the addresses that its count assumes. So these
registers have to repeat or to advance by a constant. All others hold data, whose values do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.machine.program import Program, Segment
from cutegen_nb.simulator.machine.register_uses import registers_of
from cutegen_nb.simulator.numbers.values import DTYPES, S64, Array, Value
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Address, Immediate, Instruction, Operand, Register
from cutegen_nb.simulator.sampling.steps import UNCHANGED, Unchanged, plain

_CONTROL = frozenset({"bra", "brx", "bar", "barrier", "ret", "exit", "trap", "brkpt", "mbarrier"})
"""Opcodes whose guard or operands decide about the path of threads."""
_EVEN = frozenset({"add", "sub", "mul", "mad", "neg", "mov", "cvta", "shl", "setp", "ld"})
"""Opcodes whose result advances evenly where their operands do, or that are judged apart."""
_FIXED_SPACES = frozenset({"param", "const"})
"""State spaces that no thread writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringComparison:
    """Comparison of integers that steers a loop."""

    kind: str
    """PTX type of the operands: ``s32``."""
    operands: tuple[int, int]
    """Slots of the operands; -1 for a constant."""
    constants: tuple[int, int]
    """Values of the operands that are constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopAnalysis:
    """Registers and comparisons that steer a loop."""

    steering: tuple[int, ...]
    """Slots of the registers that must repeat or advance by a constant."""
    loaded: frozenset[int]
    """Those of them that are loaded from memory, which must repeat: skipped stores do not change them."""
    comparisons: tuple[SteeringComparison, ...]
    """Comparisons of integers among the instructions that write steering predicates."""
    opaque: frozenset[int]
    """Slots that other comparisons read, of floats; they must not change."""
    synchronises: bool
    """True if threads wait for others of their CTA in the loop."""
    has_mbarrier: bool
    """True if the loop uses mbarriers."""
    bent: frozenset[int]
    """Slots that shifts, divisions or minima read: their results need not advance evenly with them."""
    detours: frozenset[int]
    """Segments of arithmetic that a branch may pass over, and that steer nothing: data may decide on them."""


def analysed(program: Program, segments: Iterable[int]) -> LoopAnalysis:
    """Analyse the loop that consists of these segments."""
    numbers = tuple(segments)
    detours, names = _without_detours(program, numbers)
    body = [item for at in numbers for item, _ in program.segments[at].instructions]
    slots = {name: program.lowering.register(name) for name in names if name in program.lowering}
    comparisons: list[SteeringComparison] = []
    loaded: set[int] = set()
    opaque: set[int] = set()
    bent: set[int] = set()
    for item in body:
        sources, targets = registers_of(item)
        hit = targets & names
        if not hit:
            continue
        if not _is_even(item):
            bent |= {slots[name] for name in sources if name in slots}
        if _is_load(item):
            loaded |= {slots[name] for name in hit if name in slots}
        elif item.opcode in {"setp", "set"}:
            found = _comparison(item, slots)
            if found is None:
                opaque |= {slots[name] for name in sources if name in slots}
            else:
                comparisons.append(found)
    opcodes = {item.opcode for item in body}
    return LoopAnalysis(
        steering=tuple(sorted(slots.values())), loaded=frozenset(loaded), comparisons=tuple(comparisons),
        opaque=frozenset(opaque), synchronises=bool(opcodes & {"bar", "barrier"}),
        bent=frozenset(bent), detours=detours,
        has_mbarrier="mbarrier" in opcodes or any("mbarrier" in item.modifiers for item in body),
    )  # fmt: skip


def _without_detours(program: Program, numbers: tuple[int, ...]) -> tuple[frozenset[int], set[str]]:
    """Return the segments of detours, and the names of the registers that steer the loop apart from them."""
    detours = {at: over for at in numbers if (over := _detour(program, numbers, at)) is not None}
    while True:
        branches = {at for start, over in detours.items() for at in (start, *over)}
        names = _closure(program, numbers, branches)
        # A register that a detour writes and an address reads makes the detour's branch steer.
        steers = [start for start, over in detours.items() if names & _written(program, over)]
        if not steers:
            return frozenset(at for over in detours.values() for at in over), names
        for start in steers:
            del detours[start]


def _detour(program: Program, numbers: tuple[int, ...], start: int) -> range | None:
    """Return the segments of arithmetic that the branch at the end of `start` may pass over.

    None where there is no such branch, where more than data of the turn decide it, or where a segment among
    them does anything but compute.
    """
    last, branch = max(numbers), program.segments[start]
    if (
        branch.end is None
        or branch.end.opcode != "bra"
        or branch.guard < 0
        or not start < branch.target <= last
    ):
        return None
    at, join = start + 1, branch.target
    while at < join:
        segment = program.segments[at]
        if not _only_computes(segment) or (segment.end is not None and not at < segment.target <= last):
            return None
        join = max(join, segment.target)
        at += 1
    over = range(start + 1, join)
    outside = (one for at, one in enumerate(program.segments) if not start <= at < join)
    entered = any(not {one.target, *one.targets}.isdisjoint(over) for one in outside)
    guards = (at for at in (start, *over) if program.segments[at].guard >= 0)
    return over if not entered and all(_is_decided_by_data(program, numbers, at) for at in guards) else None


def _is_decided_by_data(program: Program, numbers: tuple[int, ...], branch: int) -> bool:
    """Return whether the branch at the end of a segment depends on loads of the same turn of the loop.

    Neither counters nor values that turns hand on, as a maximum so far, may decide: turns would differ.
    """
    end = program.segments[branch].end
    assert end is not None
    needed, has_loads = registers_of(end)[0], False
    for at in sorted((one for one in numbers if one <= branch), reverse=True):
        for item, _ in reversed(program.segments[at].instructions):
            sources, targets = registers_of(item)
            if not targets & needed:
                continue
            if _is_load(item):
                needed, has_loads = needed - targets, True
            else:
                needed = (needed if item.guard is not None else needed - targets) | sources
    return has_loads and not needed & _written(program, numbers)


def _only_computes(segment: Segment) -> bool:
    """Return whether a segment touches no memory, waits for nobody and ends in no other way than a branch."""
    if segment.warp_wide is not None or (segment.end is not None and segment.end.opcode != "bra"):
        return False
    return all(
        item.opcode == "bra"
        or (item.opcode not in _CONTROL | {"cp"} and (not _addresses(item) or _is_fixed(item)))
        for item, _ in segment.instructions
    )


def _addresses(item: Instruction) -> bool:
    return any(isinstance(one, Address) for one in item.operands)


def _is_fixed(item: Instruction) -> bool:
    """Return whether an instruction loads from memory that no thread writes."""
    return item.opcode == "ld" and not _FIXED_SPACES.isdisjoint(one.split("::")[0] for one in item.modifiers)


def _written(program: Program, segments: Iterable[int]) -> set[str]:
    items = (item for at in segments for item, _ in program.segments[at].instructions)
    return {name for item in items for name in registers_of(item)[1]}


def _closure(program: Program, numbers: Iterable[int], but: set[int]) -> set[str]:
    """Names of the registers from which branches, guards of accesses and addresses are computed.

    The branches at the ends of the segments `but` are left out.
    """
    names: set[str] = set()
    body = []
    for at in numbers:
        segment = program.segments[at]
        for item, _ in segment.instructions:
            body.append(item)
            if item is not segment.end or at not in but:
                names |= _roots(item)
    flows = [(sources, targets) for item in body for sources, targets in [registers_of(item)]]
    before = -1
    while before != len(names):
        before = len(names)
        for sources, targets in reversed(flows):
            if targets & names:
                names |= sources
    return names


def _roots(item: Instruction) -> set[str]:
    sources, _ = registers_of(item)
    if item.opcode in _CONTROL or item.opcode == "cp":
        return sources  # of an asynchronous copy also the predicate or size that decides what it reads
    found = {
        one.base.name for one in item.operands if isinstance(one, Address) and isinstance(one.base, Register)
    }
    if found and item.guard is not None:
        found.add(item.guard.name)
    return found


def _is_even(item: Instruction) -> bool:
    """Return whether the result of an operation advances evenly where its operands do."""
    if item.opcode == "cvt":  # between integers
        return all(one[:1] in {"s", "u"} for one in item.modifiers)
    return item.opcode in _EVEN and "hi" not in item.modifiers and item.guard is None


def _is_load(item: Instruction) -> bool:
    if item.opcode == "ld":
        return not _is_fixed(item)
    return item.opcode in {"ldu", "atom", "ldmatrix"}


def _comparison(item: Instruction, slots: dict[str, int]) -> SteeringComparison | None:
    """Comparison of an instruction; None if it compares floats or has operands of another form."""
    kinds = [one for one in item.modifiers if one in TYPE_BYTES]
    kind = kinds[-1] if kinds else ""
    operands = item.operands[1:3]
    if kind[:1] not in {"s", "u", "b"} or kind == "bf16" or len(operands) != len(("left", "right")):
        return None
    if not {"eq", "ne"}.isdisjoint(item.modifiers):
        kind = f"s{kind[1:]}"  # equality has no sign, and a counter often runs from a negative number to 0
    found = [_operand(one, slots) for one in operands]
    if None in found:
        return None
    (left, first), (right, second) = (one for one in found if one is not None)
    return SteeringComparison(kind=kind, operands=(left, right), constants=(first, second))


def _operand(operand: Operand, slots: dict[str, int]) -> tuple[int, int] | None:
    if isinstance(operand, Register):
        return (slots[operand.name], 0) if operand.name in slots else None
    if isinstance(operand, Immediate):
        return -1, int(operand.value)
    return None


def exit_comparison(program: Program, target: int, at: int) -> SteeringComparison | None:
    """Return the comparison of integers that ends a loop of these segments; None without a single one."""
    segments = range(target, at + 1)
    last = program.segments[at]
    leaving = [at] if last.guard >= 0 else [one for one in segments if program.segments[one].target > at]
    guards = {program.segments[one].guard for one in leaving}
    found = [
        item
        for one in segments
        for item, _ in program.segments[one].instructions
        if any(program.lowering.register(name) in guards for name in registers_of(item)[1])
    ]
    if len(guards) != 1 or len(found) != 1 or found[0].opcode != "setp":
        return None
    names = {one.name for one in found[0].operands if isinstance(one, Register)}
    return _comparison(found[0], {name: program.lowering.register(name) for name in names})


# -- how long a comparison keeps its result ------------------------------------------------------------------
def periods_left(
    comparison: SteeringComparison,
    registers: list[Value],
    steps: dict[int, Value | Unchanged],
    active: Array | None,
) -> float:
    """Periods until a comparison may change its result in some active lane; infinity if it never does.

    The difference of its operands advances by a constant, so it changes sign after |difference| ÷ |step|. If
    it did so in the last period, the answer is 0: an operand that advances after the comparison has changed
    its result only for the next iteration, and lanes that cross one after the other look like a repetition.
    """
    dtype = DTYPES[comparison.kind]
    difference, slope = difference_of(comparison, registers), S64.type(0)
    for sign, slot in zip((1, -1), comparison.operands, strict=True):
        step = UNCHANGED if slot < 0 else steps[slot]
        if not isinstance(step, Unchanged):
            # A step is a difference: read as signed, whatever the type compared.
            slope = slope + sign * step.view(np.dtype(f"i{dtype.itemsize}")).astype(S64)
    if not np.any(slope):
        return np.inf
    difference, slope = np.broadcast_arrays(difference, slope)
    # At zero the result may change at once; away from zero it stays.
    changing = (slope != 0) & ((difference == 0) | ((difference < 0) != (slope < 0)))
    before = difference - slope
    crossed = (slope != 0) & ((before == 0) | ((difference < 0) != (before < 0)))
    if active is not None:
        changing, crossed = changing & active, crossed & active
    if crossed.any():
        return 0.0
    if not changing.any():
        return np.inf
    left = np.abs(difference) / np.maximum(np.abs(slope), 1)
    return float(np.min(np.where(changing, left, np.inf)))


def difference_of(comparison: SteeringComparison, registers: list[Value]) -> Value:
    """Return the first operand less the second, as 64-bit numbers."""
    dtype = DTYPES[comparison.kind]
    difference: Value = S64.type(0)
    for sign, slot, constant in zip((1, -1), comparison.operands, comparison.constants, strict=True):
        value: Value = S64.type(constant) if slot < 0 else plain(registers[slot]).view(dtype).astype(S64)
        difference = difference + sign * value
    return difference

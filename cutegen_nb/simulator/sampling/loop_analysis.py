"""Registers that steer a loop: those that feed branches, guards of memory accesses, and addresses.

A skipped iteration must have taken the same path and used the addresses that its count assumes. So these
registers have to repeat or to advance by a constant. All others hold data, whose values do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.machine.program import Program
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


def analysed(program: Program, segments: Iterable[int]) -> LoopAnalysis:
    """Analyse the loop that consists of these segments."""
    body = [item for at in segments for item, _ in program.segments[at].instructions]
    names = _closure(body)
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
        bent=frozenset(bent),
        has_mbarrier="mbarrier" in opcodes or any("mbarrier" in item.modifiers for item in body),
    )  # fmt: skip


def _closure(body: Sequence[Instruction]) -> set[str]:
    """Names of the registers from which branches, guards of accesses and addresses are computed."""
    names: set[str] = set()
    for item in body:
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
        return _FIXED_SPACES.isdisjoint(one.split("::")[0] for one in item.modifiers)
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

"""Where a warp waits for what it asked global memory for, and how much it does in between.

The assembler moves a load up as far as it can, but never over a barrier: the loads that count here are those
behind one. Of loads that are under way together the first one used is the wait; the others have come by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.simulator.ptx_model import Instruction, Symbol

FARTHEST = 1024
"""Instructions between after which nobody waits any more; a walk ends there."""

Registers = Callable[[Instruction], tuple[set[str], set[str]]]
"""Registers that an instruction reads and writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One place where a warp waits for global memory."""

    load: int
    """Index of the load, or of the first asynchronous copy, that is waited for."""
    distance: int
    """Instructions from it to its first use or to the instruction that waits for it, up to ``FARTHEST``."""


def waits(body: Sequence[Instruction], labels: Mapping[str, int], registers: Registers) -> tuple[Wait, ...]:
    """Waits of a kernel in the order in which a warp comes to them; bulk copies (TMA) are not followed."""
    loads = [index for index, item in enumerate(body) if _is_load(item) or _is_copy(item)]
    barriers = [index for index, item in enumerate(body) if _is_barrier(item)]
    if not loads or not barriers:
        return ()
    loops = [(target, index) for index, target in _backward(body, labels)]
    seen = [registers(item) for item in body]
    found = [
        (index, _distance(body, labels, seen, index)) for index in loads if _is_pinned(index, barriers, loops)
    ]
    return tuple(_first_used(found))


def _first_used(found: list[tuple[int, int]]) -> Iterator[Wait]:
    """Of loads under way at once, the one whose use comes first; of those used at once the last asked for."""
    last = -1
    for index, distance in sorted(found, key=lambda one: (sum(one), one[1])):
        if distance and index > last:
            last = index + distance
            yield Wait(load=index, distance=distance)


def _is_load(item: Instruction) -> bool:
    return item.opcode in {"ld", "ldu"} and "global" in item.modifiers


def _is_copy(item: Instruction) -> bool:
    return item.opcode == "cp" and item.modifiers[:1] == ("async",) and "global" in item.modifiers


def _is_barrier(item: Instruction) -> bool:
    return item.opcode in {"bar", "barrier"} and "warp" not in item.modifiers


def _backward(body: Sequence[Instruction], labels: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    for index, item in enumerate(body):
        target = _target(item, labels)
        if target is not None and target <= index:
            yield index, target


def _target(item: Instruction, labels: Mapping[str, int]) -> int | None:
    if item.opcode != "bra":
        return None
    # A label that is nowhere is refused with a sentence where the program is made.
    return next((labels.get(one.name) for one in item.operands if isinstance(one, Symbol)), None)


def _is_pinned(index: int, barriers: list[int], loops: list[tuple[int, int]]) -> bool:
    """Whether a barrier comes before it, in this turn of its loop or in the last."""
    if barriers[0] < index:
        return True
    around = [(first, last) for first, last in loops if first <= index <= last]
    return any(first <= barrier <= last for first, last in around for barrier in barriers)


def _distance(
    body: Sequence[Instruction],
    labels: Mapping[str, int],
    seen: Sequence[tuple[set[str], set[str]]],
    start: int,
) -> int:
    """Instructions from a load to its first use along the likeliest way: 0 where it is never used."""
    copy = _is_copy(body[start])
    held, commits = set(seen[start][1]), 0
    index, steps = _next(body, labels, start), 1
    while index < len(body) and steps < FARTHEST:
        item = body[index]
        if copy:
            commits += _names(item, "commit_group")
            if _ends_wait(item, commits):
                return steps
        else:
            reads, writes = seen[index]
            moved = item.opcode == "mov"
            if reads & held and not moved:
                return steps
            held = held | writes if moved and reads & held else held - writes
            if not held:
                return 0
        if item.opcode in {"ret", "exit", "trap"} and item.guard is None:
            return 0
        index, steps = _next(body, labels, index), steps + 1
    return FARTHEST if steps >= FARTHEST else 0


def _names(item: Instruction, word: str) -> bool:
    return item.opcode == "cp" and item.modifiers[:1] == ("async",) and word in item.modifiers


def _ends_wait(item: Instruction, commits: int) -> bool:
    """Whether a copy with so many groups closed since it was issued has come after this instruction."""
    if _names(item, "wait_all"):
        return True
    left = getattr(item.operands[0], "value", 0) if item.operands else 0
    return _names(item, "wait_group") and commits > left


def _next(body: Sequence[Instruction], labels: Mapping[str, int], index: int) -> int:
    """Where a warp goes on: back where a loop can turn, and past a branch that only skips something."""
    target = _target(body[index], labels)
    if target is not None and (body[index].guard is None or target <= index):
        return target
    return index + 1

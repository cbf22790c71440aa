"""Load-to-use distance: instructions between a load from global memory and the first use of its value.

The assembler moves a load up as far as it can, but never over a barrier. So only loads behind a barrier count
here. Of loads under way together, the first one used is the wait; the others have arrived by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.simulator.ptx.model import Instruction, Symbol

LONGEST_DISTANCE = 1024
"""Most instructions that are followed from a load; a use farther away counts as this distance."""

Registers = Callable[[Instruction], tuple[set[str], set[str]]]
"""Function that returns the names of the registers that an instruction reads and writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadWait:
    """Place where a warp waits for global memory."""

    load: int
    """Index in the kernel's body of the load, or of the asynchronous copy, that is waited for."""
    distance: int
    """Instructions from the load to its first use or wait instruction, up to ``LONGEST_DISTANCE``."""


def waits(
    body: Sequence[Instruction], labels: Mapping[str, int], registers: Registers
) -> tuple[LoadWait, ...]:
    """Return the waits of a kernel, in the order of the places of use. Bulk copies (TMA) are not followed.

    Args:
        body: instructions of the kernel.
        labels: label → index in ``body``.
        registers: function that returns the registers an instruction reads and writes.
    """
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


def _first_used(found: list[tuple[int, int]]) -> Iterator[LoadWait]:
    """Of loads under way together, keep the one used first; of those used at one place, the last issued.

    ``found`` has pairs of index and distance, so their sum is the place of use.
    """
    last = -1  # place of use of the previous wait; loads issued before it have arrived by then
    for index, distance in sorted(found, key=lambda one: (sum(one), one[1])):
        if distance and index > last:
            last = index + distance
            yield LoadWait(load=index, distance=distance)


def _is_load(item: Instruction) -> bool:
    return item.opcode in {"ld", "ldu"} and "global" in item.modifiers


def _is_copy(item: Instruction) -> bool:
    plain = item.modifiers[:1] == ("async",) and "bulk" not in item.modifiers
    return item.opcode == "cp" and plain and "global" in item.modifiers


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
    # An undefined label is reported where the program is built.
    return next((labels.get(one.name) for one in item.operands if isinstance(one, Symbol)), None)


def _is_pinned(index: int, barriers: list[int], loops: list[tuple[int, int]]) -> bool:
    """Return whether a barrier comes before the load, in this iteration of a loop or in the one before."""
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
    """Count instructions from a load to its first use along the likeliest path; 0 if it is never used."""
    copy = _is_copy(body[start])
    # Registers that hold the loaded value, copies by ``mov`` included; groups committed since a cp.async.
    held, commits = set(seen[start][1]), 0
    index, steps = _next(body, labels, start), 1
    while index < len(body) and steps < LONGEST_DISTANCE:
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
    return LONGEST_DISTANCE if steps >= LONGEST_DISTANCE else 0


def _names(item: Instruction, word: str) -> bool:
    return item.opcode == "cp" and item.modifiers[:1] == ("async",) and word in item.modifiers


def _ends_wait(item: Instruction, commits: int) -> bool:
    """Return whether a copy, with ``commits`` groups committed since its issue, has arrived after ``item``.

    ``cp.async.wait_group N`` waits until at most the N latest groups are pending (PTX ISA,
    ``cp.async.wait_group``).
    """
    if _names(item, "wait_all"):
        return True
    left = getattr(item.operands[0], "value", 0) if item.operands else 0
    return _names(item, "wait_group") and commits > left


def _next(body: Sequence[Instruction], labels: Mapping[str, int], index: int) -> int:
    """Index of the likeliest next instruction: backward branches are taken, guarded forward ones are not."""
    target = _target(body[index], labels)
    if target is not None and (body[index].guard is None or target <= index):
        return target
    return index + 1

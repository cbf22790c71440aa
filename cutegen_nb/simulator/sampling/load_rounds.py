"""Rounds of loads: the number of times that a warp waits for global memory in each basic block.

Loads that do not depend on one another are in flight together and count once; a chain of dependent loads
counts its length. A wait for asynchronous copies counts once. The assembler moves no load ahead of a store
that may write to the same address, so loads after a store wait for the loads before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.machine.register_uses import registers_of
from cutegen_nb.simulator.ptx.model import Instruction


def rounds_by_segment(program: Program) -> list[int]:
    """Rounds of each basic block, at the place of its first segment; 0 at its other segments."""
    rounds = [0] * len(program.segments)
    for first, end in _blocks(program):
        body = [item for segment in program.segments[first:end] for item, _ in segment.instructions]
        rounds[first] = _rounds(body)
    return rounds


def _blocks(program: Program) -> Iterator[tuple[int, int]]:
    """Basic blocks as ranges of segments, which also end where the threads of a warp meet."""
    arrived = {one.target for one in program.segments} | {
        at for one in program.segments for at in one.targets
    }
    first = 0
    for at, segment in enumerate(program.segments, 1):
        if segment.end is not None or at in arrived or at == len(program.segments):
            yield first, at
            first = at


def _rounds(body: Sequence[Instruction]) -> int:
    depth: dict[str, int] = {}
    most = waits = stored = 0
    for item in body:
        sources, targets = registers_of(item)
        before = max((depth.get(name, 0) for name in sources), default=0)
        loads = item.opcode in {"ld", "ldu", "atom"} and "global" in item.modifiers
        if loads and "nc" not in item.modifiers:
            before = max(before, stored)
        stored = most if item.opcode == "st" and "global" in item.modifiers else stored
        depth.update(dict.fromkeys(targets, before + loads))
        most = max(most, before + loads)
        waits += item.opcode == "cp" and not {"wait_group", "wait_all"}.isdisjoint(item.modifiers)
    return most + waits

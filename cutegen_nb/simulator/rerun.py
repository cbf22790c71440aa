"""Doubts settled by running a launch again from the same memory under other circumstances.

Whether a value that nobody wrote matters, or the order in which CTAs run, is decided by what the launch
leaves in global memory: the machine is deterministic, so that a difference proves the dependence, and an
equal result lets the kernel off.  The memory of the first run is what stays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.faults import OutOfTime, SimulatorFault, UnsupportedOpcode
from cutegen_nb.simulator.findings import CTA_ORDER, UNINITIALISED, Findings
from cutegen_nb.simulator.memory import Allocation, GlobalMemory
from cutegen_nb.simulator.values import Array

FILLING: Array = np.repeat(np.array([0x7B, 0xFB], np.uint8), 8)
"""What shared and local memory hold at first in a second run: large numbers of both signs, no NaN."""
_UNKNOWN = "Whether anything depends on it was not tried: the second run needs more time or memory."


def settle(findings: Findings, memory: GlobalMemory, again: Callable[[Array | None, int], None]) -> None:
    """Settle the doubts of a launch that ended; ``again(filling, step)`` runs it once more.

    A step of 1 or -1 runs the CTAs one by one, forwards or backwards; 0 as in the first run.
    """
    if findings.doubts(UNINITIALISED):
        matters = _differs(memory, lambda: again(FILLING, 0), other_poison=True)
        why = "A second run of the launch, with something else in there, left other values in memory."
        findings.settle(UNINITIALISED, matters=matters, why=_UNKNOWN if matters is None else why)
    if findings.doubts(CTA_ORDER):
        tried = [
            _differs(memory, lambda: again(None, -1), other_poison=False),
            _differs(memory, lambda: again(None, 1), other_poison=False),
        ]
        matters = True if True in tried else None if None in tried else False
        why = "A second run of the launch, with its CTAs one by one, left other values in memory."
        findings.settle(CTA_ORDER, matters=matters, why=_UNKNOWN if matters is None else why)


def _differs(memory: GlobalMemory, run: Callable[[], None], *, other_poison: bool) -> bool | None:
    """Whether a second run leaves something else in memory; None where that cannot be said."""
    if any(one.lost for one in memory.allocations):
        return None
    if other_poison:
        for one in memory.allocations:
            if one.poison:
                one.keep()
    first = {one.address: one.bytes.copy() for one in memory.allocations if one.before is not None}
    for one in memory.allocations:
        if one.before is not None:
            one.bytes[:] = one.before
            if other_poison:
                _repoison(one)
    try:
        run()
        return any(
            _unlike(one, first.get(one.address), other_poison=other_poison) for one in memory.allocations
        )
    except (OutOfTime, UnsupportedOpcode):
        return None
    except SimulatorFault:
        return True  # an address or a loop depended on it
    finally:
        for one in memory.allocations:
            if one.before is not None:
                one.bytes[:] = first.get(one.address, one.before)


def _repoison(one: Allocation) -> None:
    if one.poison is None:
        return
    elements, _ = one.elements(one.poison.width)
    elements[elements == one.poison.bits] = one.poison.other


def _unlike(one: Allocation, first: Array | None, *, other_poison: bool) -> bool:
    if one.before is None:
        return False
    reference = one.before if first is None else first
    if not other_poison or one.poison is None:
        return not np.array_equal(one.bytes, reference)
    width = one.poison.width
    now, _ = one.elements(width)
    skip = -one.address % width
    before = reference[skip : skip + now.nbytes].view(now.dtype)
    changed = now != before
    untouched = (before == one.poison.bits) & (now == one.poison.other)
    return bool((changed & ~untouched).any())

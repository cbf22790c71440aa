"""Reruns of a launch that decide uncertain findings: uninitialised values and the order of CTAs.

The launch runs again from the same memory with other initial contents, or with its CTAs in another order. The
simulator is deterministic, so a difference in global memory proves the dependence. Equal results drop the
finding. The memory of the first run is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.checkers.findings import CTA_ORDER, UNINITIALISED, Findings
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.faults import OutOfTime, SimulatorFault, UnsupportedOpcode
from cutegen_nb.simulator.state.global_memory import Allocation, GlobalMemory

FILLING: Array = np.repeat(np.array([0x7B, 0xFB], np.uint8), 8)
"""Initial contents of shared and local memory in a rerun: large numbers of both signs, no NaN."""
_UNKNOWN = "Whether anything depends on it was not tried: the second run needs more time or memory."


def settle(findings: Findings, memory: GlobalMemory, again: Callable[[Array | None, int], None]) -> None:
    """Decide the uncertain findings of a launch that ended, by reruns with ``again(filling, step)``.

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
    """Return whether a rerun leaves other contents in memory; None if that cannot be told.

    With ``other_poison`` unwritten global memory holds another fill pattern in the rerun.
    """
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
    """Replace the fill pattern of unwritten memory by the other one."""
    if one.poison is None:
        return
    elements, _ = one.elements(one.poison.width)
    elements[elements == one.poison.bits] = one.poison.other


def _unlike(one: Allocation, first: Array | None, *, other_poison: bool) -> bool:
    """Return whether an allocation differs from the first run, elements that neither run wrote left aside."""
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

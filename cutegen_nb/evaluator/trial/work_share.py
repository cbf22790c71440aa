"""Shares of one call's work: the candidate's kernels, PyTorch and the host.

Amounts are bytes on the simulator (`of_call`) and device time on a GPU (`shares`, called by the timing).
"""

from __future__ import annotations

from cutegen_nb.core.evaluation import WorkShare
from cutegen_nb.evaluator.trial.call import CallRecord

_SECTOR_BYTES = 32
"""Bytes of a sector of global memory, in which atomics are counted."""


def of_call(called: CallRecord) -> WorkShare | None:
    """Shares of the bytes that were read and written; None on a GPU and where there were none."""
    if called.launches is None:
        return None
    made = sum(item.size_bytes for item in called.origins or () if item.from_kernel)
    counted = sum(
        one.counters.gmem_load_bytes
        + one.counters.gmem_store_bytes
        + _SECTOR_BYTES * one.counters.gmem_atomic_sectors
        for one in called.launches
    )
    # Counters miss the stores of the copy engine, so count at least the outputs that kernels made.
    own = max(counted, made) if called.launches else 0
    return shares(
        own,
        sum(item.size_bytes for item in called.computed),
        sum(item.size_bytes for item in called.moved if item.down),
    )


def shares(own: float, library: float, host: float) -> WorkShare | None:
    """Shares of amounts in one unit; None where all are zero."""
    whole = own + library + host
    if not whole:
        return None
    return WorkShare(own_fraction=own / whole, library_fraction=library / whole, host_fraction=host / whole)

"""Sentences about a layout: bank conflicts, and the partition of tiles among threads."""

from __future__ import annotations

from cutegen_nb.analysis.layout.banks import SharedTensor, TileAccess, along, shared_tensor, tile_access
from cutegen_nb.analysis.layout.partition import Partition, partition
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord


def layout_words(record: LayoutRecord) -> tuple[str, ...]:
    """Describe a layout of a kernel in sentences; empty where the record does not say enough."""
    try:
        if record.kind is LayoutKind.ACCESS:
            words = access_words(tile_access(record))
            return (words, ASYNC_NOTE) if is_async(record) else (words,)
        if record.kind is LayoutKind.SHARED:
            return along_words(shared_tensor(record))
        return tuple(f"{view.role}: {sharing_words(partition(view))}." for view in record.views)
    except UsageError:
        return ()


ASYNC_NOTE = (
    "Reckoned as stores from registers; an asynchronous copy passes what comes from one 128-byte line of "
    "global memory at a time, which the simulator counts."
)
"""Caveat for accesses by ``cp.async``, whose passes depend on the source in global memory as well."""


def is_async(record: LayoutRecord) -> bool:
    """Return whether an access writes by ``cp.async``."""
    return record.atom.startswith("simt_async_copy")


def access_words(cost: TileAccess) -> str:
    """Describe the wavefronts and bank conflicts of a tiled copy for one tile."""
    ways = (
        "free of bank conflicts"
        if cost.wavefronts == cost.least
        else f"bank conflicts: {cost.wavefronts / cost.least:.3g} times the least"
    )
    accesses = "The one access" if cost.count == 1 else f"All {cost.count} accesses"
    said = f"{accesses} of the tile: {passes(cost.wavefronts)}, {cost.least} at least: {ways}."
    if not cost.apart:
        return said
    bits = cost.first.lane_bytes * 8
    return f"{said} The atom's {cost.atom_bits} bits lie apart in this tensor: a lane moves {bits} at once."


def along_words(tensor: SharedTensor) -> tuple[str, ...]:
    """Describe the conflicts of 32 lanes that access neighbours down a column or along a row."""
    said = []
    for mode, words in ((0, "down a column (mode 0)"), (1, "along a row (mode 1)")):
        found = along(tensor, mode)
        if found is None:
            continue
        free = found.wavefronts == found.least
        cost = "free of conflicts" if free else f"{found.conflict_ways:.3g}-way conflict"
        said.append(f"A warp with one element a lane {words}: {passes(found.wavefronts)}, {cost}.")
    return tuple(said)


def sharing_words(part: Partition) -> str:
    """Describe the partition of a tile among threads."""
    values = "1 value" if part.values == 1 else f"{part.values} values"
    said = f"{part.rows} × {part.columns} elements on {part.threads} threads, {values} each"
    # A broadcast layout gives one element to several threads.
    most = max(len({thread for thread, _ in held}) for held in part.holders().values())
    return f"{said}, an element on up to {most} threads" if most > 1 else said


def passes(number: int) -> str:
    """Format a number of passes over the banks."""
    return "1 pass" if number == 1 else f"{number} passes"

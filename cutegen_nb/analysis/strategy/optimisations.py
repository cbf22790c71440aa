"""Optimisations that a kernel carries out already: one predicate for each name, with its figures in words."""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.analysis.figures.quantity import share
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.core.strategy import Optimisation

_NEARLY_ALL = 0.8
"""Share of the bytes from which the rest are tails and values of a row."""
_COALESCED = 0.7
"""Least ÷ touched sectors from which accesses count as coalesced: 128 bytes that start in the middle of a
sector touch 5 instead of 4, and more where a short row ends."""
_MERGED_PASSES = 2.6
"""Passes below which statistics share one: statistics, result, and values of a row that are loaded again."""
_ONE_PASS = 1.3
"""Passes below which rows are read once."""
_FEW_INTERMEDIATES = 0.05
"""Bytes stored beyond the outputs, as a share of the least bytes, up to which no intermediate tensor is
stored: partial sums and statistics of rows are far fewer."""
_STAGED = 0.5
"""Bytes stored in shared memory ÷ bytes loaded from which tiles are staged; partial sums are far fewer."""
_REGISTER_BLOCK = 1.5
"""Multiply-adds an element loaded from which registers hold blocks. A block of r × r does r/2; a thread with
one output does a half."""
_COVERED = 64
"""Instructions between a load and its first use from which the computation of a tile lies there."""
_CONFLICT_FREE = 1.05
"""Wavefronts ÷ least wavefronts up to which shared memory has no conflicts worth a round."""

Answer = tuple[bool, str]
"""True if a kernel carries out an optimisation, and the figure in words."""
_Predicate = Callable[[KernelTraits], Answer | None]


def in_force(name: Optimisation, traits: KernelTraits) -> Answer | None:
    """Return whether a kernel carries out an optimisation, with its figure; None if nothing tells."""
    return _PREDICATES[name](traits)


def _coalesced(traits: KernelTraits) -> Answer | None:
    found = traits.coalesced_fraction
    said = f"{share(found or 0.0)} of the sectors touched are needed"
    return None if found is None else (found >= _COALESCED, said)


def _vectors(traits: KernelTraits) -> Answer | None:
    found = traits.wide_fraction
    widest = f"; the widest access has {traits.widest_bits} bits" if traits.widest_bits else ""
    said = f"{share(found or 0.0)} of the bytes move by whole vectors{widest}"
    return None if found is None else (found >= _NEARLY_ALL, said)


def _in_flight(traits: KernelTraits) -> Answer | None:
    found = traits.loads_in_flight
    loads = "1 load" if found == 1 else f"{found} loads"
    return None if found is None else (found > 1, f"a thread issues {loads} at a time")


def _grid_stride(traits: KernelTraits) -> Answer | None:
    said = "a loop walks the work with the stride of the grid"
    return (True, said) if traits.grid_stride else (False, "no loop walks the grid")


def _one_kernel(traits: KernelTraits) -> Answer | None:
    if not traits.launches:
        return None
    found = traits.intermediate_fraction
    fused = traits.launches == 1 or (found is not None and found <= _FEW_INTERMEDIATES)
    if not fused:
        return False, f"{traits.launches} launches pass tensors on"
    if traits.launches > 1 and traits.values_passed_bytes:
        what = "partial sums" if traits.split else "statistics or partial sums"
        passed = f"{traits.values_passed_bytes:,} bytes"
        return True, f"{traits.launches} launches pass {what} of {passed}, and no intermediate tensor"
    return True, "no intermediate tensor is stored"


def _rows_shared(traits: KernelTraits) -> Answer | None:
    return (traits.row_owner != "thread", f"a {traits.row_owner} reduces a row") if traits.row_owner else None


def _warp_a_row(traits: KernelTraits) -> Answer | None:
    return (traits.row_owner == "warp", f"a {traits.row_owner} reduces a row") if traits.row_owner else None


def _row_kept(traits: KernelTraits) -> Answer | None:
    return _passes(traits, _ONE_PASS)


def _passes_merged(traits: KernelTraits) -> Answer | None:
    return _passes(traits, _MERGED_PASSES)


def _passes(traits: KernelTraits, most: float) -> Answer | None:
    found = traits.passes
    if found is None:
        return None
    at_most = max(found, traits.passes_at_most or 0.0)
    if found <= most < at_most:
        return None  # loads of parameters may hide another pass
    least, highest = (f"{passes:.2g}" for passes in (found, at_most))
    times = f"{least} times" if least == highest else f"{least} to {highest} times"
    return found <= most, f"rows are read {'once' if times == '1 times' else times}"


def _split(traits: KernelTraits) -> Answer | None:
    said = "CTAs share sums" if traits.split else "no sum is shared by CTAs"
    return None if traits.split is None else (traits.split, said)


def _shared_tiles(traits: KernelTraits) -> Answer | None:
    found = traits.staged_fraction
    if traits.async_copies:
        return True, "asynchronous copies fill shared memory"
    return None if found is None else (found >= _STAGED, f"{share(found)} of the bytes loaded are staged")


def _register_blocks(traits: KernelTraits) -> Answer | None:
    if traits.tensor_types:
        return True, "fragments of tensor cores are blocks"
    found = traits.multiply_adds_a_load
    if found is None:
        return None
    return found >= _REGISTER_BLOCK, f"{found:.2g} multiply-adds for each element loaded"


def _tensor_cores(traits: KernelTraits) -> Answer | None:
    if traits.tensor_types:
        return True, "products run on tensor cores"
    return (False, "no product runs on tensor cores") if traits.launches else None


def _pipelined(traits: KernelTraits) -> Answer | None:
    if traits.groups_in_flight:
        one = traits.groups_in_flight == 1
        many = f"{traits.groups_in_flight} groups of copies stay under way"
        return True, "a group of copies stays under way" if one else many
    found = traits.covered_instructions
    if found is None:
        return (False, "nothing is loaded ahead of a barrier") if traits.launches else None
    said = f"{found:.0f}"
    between = "1 instruction lies" if said == "1" else f"{said} instructions lie"
    return found >= _COVERED, f"{between} between a load and its use"


def _conflict_free(traits: KernelTraits) -> Answer | None:
    found = traits.conflict_ratio
    if found is None:
        return (True, "shared memory is not used") if traits.launches else None
    return found <= _CONFLICT_FREE, f"{found:.2f} × the least wavefronts"


_PREDICATES: dict[Optimisation, _Predicate] = {
    Optimisation.COALESCED: _coalesced,
    Optimisation.VECTORS: _vectors,
    Optimisation.IN_FLIGHT: _in_flight,
    Optimisation.GRID_STRIDE: _grid_stride,
    Optimisation.ONE_KERNEL: _one_kernel,
    Optimisation.ROWS_SHARED: _rows_shared,
    Optimisation.WARP_A_ROW: _warp_a_row,
    Optimisation.ROW_KEPT: _row_kept,
    Optimisation.PASSES_MERGED: _passes_merged,
    Optimisation.SPLIT: _split,
    Optimisation.SHARED_TILES: _shared_tiles,
    Optimisation.REGISTER_BLOCKS: _register_blocks,
    Optimisation.TENSOR_CORES: _tensor_cores,
    Optimisation.PIPELINED: _pipelined,
    Optimisation.CONFLICT_FREE: _conflict_free,
}
"""Predicate of each optimisation."""

"""Conditions under which a strategy is possible and can win: one predicate for each name, with its figures.

Sizes are those of the full problem, whatever size was simulated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.figures.quantity import count
from cutegen_nb.analysis.hardware.occupancy import REGISTERS_PER_SM, limits_of
from cutegen_nb.analysis.problem.extents import (
    ProductExtents,
    Rows,
    largest_given,
    product_of,
    rows_of,
    scanned_rows_of,
)
from cutegen_nb.analysis.problem.workload import base_name, is_pointwise
from cutegen_nb.analysis.strategy.algebra import PRODUCTS, shortcut
from cutegen_nb.analysis.strategy.kernel_traits import VECTOR_BITS, KernelTraits
from cutegen_nb.analysis.strategy.optimisations import Answer
from cutegen_nb.core.device import Device
from cutegen_nb.core.graph import DTYPE_BYTES, TensorSpec
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.strategy import Condition

_ROW_REGISTER_BYTES = REGISTERS_PER_SM * 4 // 2
"""Largest row that the registers of one CTA hold, in bytes: half of the 65,536 registers of 4 bytes. The
other half holds indices, results and what the compiler needs."""
_LARGEST_CLUSTER = 16
"""CTAs of the largest cluster of Hopper."""
_SHORT_ROW = 4096
"""Most elements of a row that a warp reduces by itself: 128 for each of its lanes."""
_TILE = 128
"""Extent of the usual tile of a product, on both sides."""
_LONG_K = 1024
"""Least terms of a sum that are worth sharing among CTAs: 32 K tiles of 32."""
_FEW_ROWS = 32
"""Most rows that each CTA reads whole beside its part of the other operand."""
_REUSED = 16
"""Least outputs that an element of an operand serves for tiles to pay: the extent of one MMA."""
_USUAL_RESIDENT_CTAS = 8
"""CTAs that a multiprocessor holds where the kernel's resources are not known: 8 of 256 threads."""
_WAVES = 4
"""Least waves of CTAs for which a persistent grid saves work that counts: set-up and launch of each CTA."""
_MASKS = frozenset({"triu", "tril", "masked_fill", "where"})
"""ATen operations that leave out values by their place."""
_HEAVY = frozenset({WorkloadClass.CONVOLUTION, WorkloadClass.ATTENTION})
"""Classes with products inside whose extents no `ProductExtents` states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Problem, device and kernel that a strategy is chosen for."""

    facts: ProblemFacts
    """Facts of the problem, of which the full size counts."""
    device: Device
    """Device that the kernel is meant for."""
    traits: KernelTraits
    """Traits of the kernel."""

    @property
    def full(self) -> Workload:
        """Workload at its full size."""
        return self.facts.full


_Predicate = Callable[[Circumstances], Answer | None]


def holds(name: Condition, here: Circumstances) -> Answer | None:
    """Return whether a condition holds, with its figure in words; None if nothing tells."""
    return _PREDICATES[name](here)


def _of_rows(test: Callable[[Rows, Circumstances], Answer | None]) -> _Predicate:
    """Predicate on the rows of a reduction or a scan; false where nothing is reduced."""

    def predicate(here: Circumstances) -> Answer | None:
        rows = rows_of(here.full) or scanned_rows_of(here.full)
        if rows is None:
            return (False, "no rows are reduced") if here.full.graph.nodes else None
        return test(rows, here)

    return predicate


def _of_product(test: Callable[[ProductExtents, Circumstances], Answer | None]) -> _Predicate:
    """Predicate on the extents of a product; false where there is none, unknown inside a convolution."""

    def predicate(here: Circumstances) -> Answer | None:
        product = product_of(here.full)
        if product is not None:
            return test(product, here)
        inside = _HEAVY & {here.facts.workload_class, *here.facts.parts}
        return None if inside or not here.full.graph.nodes else (False, "there is no matrix product")

    return predicate


def _against_sms(number: float, of: str, here: Circumstances, *, fewer: bool) -> Answer | None:
    sms = here.device.sm_count
    if not sms:
        return None
    said = f"{count(number)} {of} for {sms} multiprocessors"
    return (number < sms) is fewer, said


def _rows_fill_device(rows: Rows, here: Circumstances) -> Answer | None:
    return _against_sms(rows.count, "rows" if rows.count != 1 else "row", here, fewer=False)


def _few_rows(rows: Rows, here: Circumstances) -> Answer | None:
    return _against_sms(rows.count, "rows" if rows.count != 1 else "row", here, fewer=True)


def _few_ctas(here: Circumstances) -> Answer | None:
    ctas = here.traits.ctas
    return None if ctas is None else _against_sms(ctas, "CTAs", here, fewer=True)


def _several_waves(here: Circumstances) -> Answer | None:
    ctas, sms = here.traits.ctas, here.device.sm_count
    if ctas is None or not sms:
        return None
    held = (here.traits.resident_ctas or _USUAL_RESIDENT_CTAS) * sms
    return ctas >= _WAVES * held, f"{count(ctas)} CTAs, of which the device holds {count(held)} at once"


def _few_tiles(product: ProductExtents, here: Circumstances) -> Answer | None:
    # Tiles that cover the result, rounded up on each side: −(−a // b) = ⌈a / b⌉.
    tiles = -(-product.m // _TILE) * -(-product.n // _TILE) * product.batch
    return _against_sms(tiles, f"tiles of {_TILE} × {_TILE}", here, fewer=True)


def _long_k(product: ProductExtents, here: Circumstances) -> Answer:  # noqa: ARG001 - the predicate's form
    return product.k >= _LONG_K, f"sums of {count(product.k)} terms"


def _operands_reused(product: ProductExtents, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    least = min(product.m, product.n)
    return least >= _REUSED, f"an element of an operand serves {count(least)} outputs"


def _product_of_few_rows(product: ProductExtents, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    least = min(product.m, product.n)
    return 1 < least <= _FEW_ROWS, f"an operand of {count(least)} rows"


def _row_fits_registers(rows: Rows, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    said = f"a row of {count(rows.size_bytes)} bytes, registers for {count(_ROW_REGISTER_BYTES)}"
    return rows.size_bytes <= _ROW_REGISTER_BYTES, said


def _row_exceeds_registers(rows: Rows, here: Circumstances) -> Answer:
    fits, said = _row_fits_registers(rows, here)
    return not fits, said


def _row_fits_shared(rows: Rows, here: Circumstances) -> Answer | None:
    limits = limits_of(here.device.architecture)
    if limits is None:
        return None
    most = limits.smem_per_cta_bytes
    said = f"a row of {count(rows.size_bytes)} bytes, shared memory of {count(most)}"
    return rows.size_bytes <= most, said


def _row_exceeds_cluster(rows: Rows, here: Circumstances) -> Answer | None:
    limits = limits_of(here.device.architecture)
    if limits is None:
        return None
    most = _LARGEST_CLUSTER * limits.smem_per_cta_bytes
    said = f"a row of {count(rows.size_bytes)} bytes, a cluster's shared memory of {count(most)}"
    return rows.size_bytes > most, said


def _short_rows(rows: Rows, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    return rows.length <= _SHORT_ROW, f"rows of {count(rows.length)} elements"


def _rows_contiguous(rows: Rows, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    return rows.contiguous, f"the reduced dimension is {'' if rows.contiguous else 'not '}the innermost"


def _rows_strided(rows: Rows, here: Circumstances) -> Answer:
    contiguous, said = _rows_contiguous(rows, here)
    return not contiguous, said


def _several_passes(rows: Rows, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    several = rows.statistics > 1 or rows.elementwise_result
    return several, f"a row needs {'several passes' if several else 'one pass'}"


def _several_statistics(rows: Rows, here: Circumstances) -> Answer:  # noqa: ARG001 - as above
    return rows.statistics > 1, f"a row has {rows.statistics} statistic{'s' if rows.statistics > 1 else ''}"


def _vectors_fit(here: Circumstances) -> Answer | None:
    largest, rows = largest_given(here.full), rows_of(here.full)
    if largest is None:
        return None
    extent = _contiguous_extent(largest)
    # A dense tensor without rows may be flattened; a row must not be crossed, whatever follows it.
    if rows is None and product_of(here.full) is None and _is_dense(largest):
        extent = largest.elements
    elif rows and rows.contiguous and product_of(here.full) is None:
        extent = rows.length
    elements = VECTOR_BITS // 8 // DTYPE_BYTES[largest.dtype]
    return extent % elements == 0, f"{count(extent)} contiguous elements, vectors of {elements}"


def _contiguous_extent(spec: TensorSpec) -> int:
    """Extent of the dimension of stride 1; 1 where there is none."""
    return next((extent for extent, stride in zip(spec.shape, spec.strides, strict=True) if stride == 1), 1)


def _is_dense(spec: TensorSpec) -> bool:
    """Return whether the elements fill their memory without gaps."""
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.strides, strict=True))
    return reach == spec.elements


def _epilogue(here: Circumstances) -> Answer | None:
    nodes = here.full.graph.nodes
    if not nodes:
        return None
    heavy = [i for i, node in enumerate(nodes) if base_name(node.op) in PRODUCTS]
    follows = bool(heavy) and any(is_pointwise(node) for node in nodes[heavy[0] + 1 :])
    return follows, f"{'' if follows else 'no '}point-wise operations follow the product"


def _mask(here: Circumstances) -> Answer | None:
    nodes = here.full.graph.nodes
    masks = any(base_name(node.op) in _MASKS for node in nodes)
    return (masks, f"the reference masks {'some values' if masks else 'nothing'}") if nodes else None


def _shortcut(here: Circumstances) -> Answer | None:
    graph = here.full.graph
    found = shortcut(graph)
    return (bool(found), found or "no identity saves a step of the reference") if graph.nodes else None


def _serialised_wgmma(here: Circumstances) -> Answer | None:
    found = here.traits.serialised_wgmma
    said = "each wgmma waits for the one before it" if found else "no wgmma waits for the one before it"
    return None if found is None else (found, said)


_PREDICATES: dict[Condition, _Predicate] = {
    Condition.ROWS_FILL_DEVICE: _of_rows(_rows_fill_device),
    Condition.FEW_ROWS: _of_rows(_few_rows),
    Condition.FEW_CTAS: _few_ctas,
    Condition.SEVERAL_WAVES: _several_waves,
    Condition.FEW_TILES: _of_product(_few_tiles),
    Condition.LONG_K: _of_product(_long_k),
    Condition.OPERANDS_REUSED: _of_product(_operands_reused),
    Condition.PRODUCT_OF_FEW_ROWS: _of_product(_product_of_few_rows),
    Condition.ROW_FITS_REGISTERS: _of_rows(_row_fits_registers),
    Condition.ROW_EXCEEDS_REGISTERS: _of_rows(_row_exceeds_registers),
    Condition.ROW_FITS_SHARED: _of_rows(_row_fits_shared),
    Condition.ROW_EXCEEDS_CLUSTER: _of_rows(_row_exceeds_cluster),
    Condition.SHORT_ROWS: _of_rows(_short_rows),
    Condition.ROWS_CONTIGUOUS: _of_rows(_rows_contiguous),
    Condition.ROWS_STRIDED: _of_rows(_rows_strided),
    Condition.SEVERAL_PASSES: _of_rows(_several_passes),
    Condition.SEVERAL_STATISTICS: _of_rows(_several_statistics),
    Condition.VECTORS_FIT: _vectors_fit,
    Condition.EPILOGUE: _epilogue,
    Condition.MASK: _mask,
    Condition.SHORTCUT: _shortcut,
    Condition.SERIALISED_WGMMA: _serialised_wgmma,
}
"""Predicate of each condition."""

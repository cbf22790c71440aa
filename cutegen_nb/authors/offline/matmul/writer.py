"""Writer of matrix products with a fused epilogue, from a naive kernel to pipelined tensor cores and split-K.

All sums are in fp32 and rounded once, when the output is stored. On tensor cores fp16 and bf16 are multiplied
as they are, and a product of fp32 is three products in TF32, by Hopper's wgmma three in fp16. On CUDA cores
fp32 takes one FFMA for each multiply-add, and fp16 and bf16 are widened as they are staged.
"""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.matmul.graph import MatrixProduct, has_product
from cutegen_nb.authors.offline.matmul.source import MatmulVariant, product_of, source_of, taken_to
from cutegen_nb.authors.offline.matmul.strategies import (
    BLOCK_STRATEGIES,
    BLOCKING,
    HOPPER_STRATEGIES,
    MULTISTAGE,
    MULTISTAGE_STRATEGY,
    PIPELINE,
    ROW_STRATEGIES,
    ROW_UNROLL,
    ROW_VECTORS,
    ROWS,
    SKIP,
    SKIP_STRATEGY,
    SPLIT,
    SPLIT_STRATEGY,
    TENSOR,
    TENSOR_STRATEGIES,
    THREE_PRODUCTS,
    TILE_STRATEGY,
    TILES,
    VECTORS,
    WGMMA,
)
from cutegen_nb.authors.offline.writers import WrittenKernel
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import Library, LibraryFamily
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy

_STEPS: dict[str, dict[str, object]] = {
    TILES: {"level": "tiled"},
    TENSOR: {"level": "tensor"},
    MULTISTAGE: {"level": "tensor", "pipelined": True},
    BLOCKING: {"level": "blocked"},
    VECTORS: {"level": "blocked", "vectors": True},
    PIPELINE: {"level": "blocked", "pipelined": True},
    SPLIT: {"level": "tensor", "split": True},
    SKIP: {"level": "tensor", "skipping": True},
    WGMMA: {"level": "wgmma"},
    THREE_PRODUCTS: {"level": "three_products"},
    ROWS: {"level": "rows"},
    ROW_VECTORS: {"level": "rows", "vectors": True},
    ROW_UNROLL: {"level": "rows", "vectors": True, "unrolled": True},
}
"""Changes of the variant by strategy name."""
_BUT_HOPPER = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_100", "sm_103", "sm_120", "sm_121")
"""Architectures with mma.sync and without wgmma."""
_ON_EITHER = (SPLIT, SKIP)
"""Strategies for kernels on tensor cores and on CUDA cores."""

LARGEST_TENSOR = 2**31
"""Largest number of elements of a tensor: the compiler computes offsets in 32 bits."""
FEW_TILES = 128
"""Largest number of 128 × 128 tiles for split-K: with so few, a large GPU has idle multiprocessors."""
SMALLEST_MMA = 8
"""Smallest extent of an MMA: those of 16 × 8 × 8 and 16 × 8 × 16 have n = 8."""
LONG_ENOUGH = 256
"""Smallest depth k for wgmma: with k = 32 a CTA takes longer to start and to store than to multiply."""
DEEP = 1024
"""Smallest depth k for split-K; a shallower product is not worth splitting."""


class MatmulWriter:
    """Writer of graphs that are one matrix product and its epilogue."""

    def accepts(self, facts: ProblemFacts, library: Library = ()) -> bool:
        """Return whether the graph holds a matrix product, and the policy leaves none to PyTorch."""
        return LibraryFamily.MATMUL not in library and has_product(facts.full.graph)

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the protocol's
        """List the strategies for the product's shape. Raises Declined, naming what is not supported."""
        product = product_of(facts)
        _check_size(product)
        if is_vector_product(product):
            return ROW_STRATEGIES
        more = [SKIP_STRATEGY] if product.triangle else []
        more += [SPLIT_STRATEGY] if wants_split(product) else []
        if not suits_tensor_cores(product):
            return (TILE_STRATEGY, *BLOCK_STRATEGIES, *more)
        dtype = "float32" if product.operand_dtype == "float32" else "float16"
        if not suits_wgmma(product):
            return (TILE_STRATEGY, TENSOR_STRATEGIES[dtype], MULTISTAGE_STRATEGY, *more)
        # On Hopper mma.sync would stand in the way of wgmma, which is faster.
        others = tuple(
            replace(one, architectures=_BUT_HOPPER) for one in (TENSOR_STRATEGIES[dtype], MULTISTAGE_STRATEGY)
        )
        return (TILE_STRATEGY, *HOPPER_STRATEGIES, *others, *more)

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        product = product_of(facts)
        _check_size(product)
        variant = MatmulVariant()
        for name in applied:
            if name not in _STEPS:
                raise Declined(
                    f"the offline author does not know the strategy {name!r} for a matrix product; it knows "
                    f"{', '.join(_STEPS)}"
                )
            variant = _after(variant, name, product)
        built = constructor(problem)
        source = source_of(facts, variant, built=built, title=_title(variant))
        known = {
            item.name: item
            for item in (*BLOCK_STRATEGIES, *ROW_STRATEGIES, *HOPPER_STRATEGIES, *self.menu(facts))
        }
        last = known.get(applied[-1]) if applied else None
        return WrittenKernel(
            source=source, rationale=last.statement if last else "One output element a thread."
        )


def _after(variant: MatmulVariant, name: str, product: MatrixProduct) -> MatmulVariant:
    """Return the variant with one more strategy. A kernel on tensor cores stays there."""
    step = _STEPS[name]
    if variant.level in (
        "wgmma",
        "three_products",
    ):  # it has every other step's gain already, but for empty tiles
        return taken_to(variant, {key: value for key, value in step.items() if key == "skipping"})
    if name in _ON_EITHER and variant.level != "tensor":
        blocked = variant.level == "blocked" or not suits_tensor_cores(product)
        step = {**step, "level": "blocked" if blocked else "tensor"}
    elif variant.level == "tensor":
        step = {**step, "level": "tensor"}
    return taken_to(variant, step)


_WORDS = {
    "naive": "one output element a thread",
    "tiled": "tiles staged in shared memory",
    "blocked": "a block of outputs in each thread's registers, on CUDA cores",
    "tensor": "a block of outputs in each warp's registers, on tensor cores",
    "wgmma": "tiles by TMA, multiplied by wgmma",
    "three_products": "three fp16 products for one of fp32, tiles by TMA, multiplied by wgmma",
    "rows": "a CTA for each output of a matrix-vector product",
}


def _title(variant: MatmulVariant) -> str:
    """First line of the file."""
    tensor = variant.level == "tensor"
    words = [_WORDS[variant.level]]
    words += ["128-bit copies"] if variant.vectors and not tensor else []
    words += ["three stages" if tensor else "double buffering"] if variant.pipelined else []
    words += ["split k"] if variant.split else []
    return f"A matrix product: {', '.join(words)}."


def is_vector_product(product: MatrixProduct) -> bool:
    """Return whether one operand is a vector and both are contiguous along k.

    Each element of the matrix is then used once, so the speed depends on loads and not on reuse.
    """
    return (product.m.is_one or product.n.is_one) and all(product.k_contiguous)


def suits_tensor_cores(product: MatrixProduct) -> bool:
    """Return whether no extent of the full size is below that of an MMA: most of its factors would be zeros.

    Every dtype that the products support has an MMA: float16, bfloat16, and float32 as three of TF32.
    """
    return min(product.m.full, product.n.full, product.k.full) >= SMALLEST_MMA


def suits_wgmma(product: MatrixProduct) -> bool:
    """Return whether the full size has work for CTAs that fill a multiprocessor each, for long enough."""
    # A tensor in two parts has twice the elements, and offsets are computed in 32 bits.
    operands = ((product.m, product.k), (product.n, product.k))
    fits = all(2 * elements((*one, product.batch)).full <= LARGEST_TENSOR for one in operands)
    return fits and product.k.full >= LONG_ENOUGH and not wants_split(product)


def wants_split(product: MatrixProduct) -> bool:
    """Return whether the full size has too few tiles for a large GPU, and enough depth to share."""
    # Tiles of 128 × 128, rounded up: −(−a // b) = ⌈a / b⌉.
    tiles = -(-product.m.full // 128) * -(-product.n.full // 128) * product.batch.full
    return tiles <= FEW_TILES and product.k.full >= DEEP


def _check_size(product: MatrixProduct) -> None:
    for rows, columns in ((product.m, product.k), (product.n, product.k), (product.m, product.n)):
        size = elements((rows, columns, product.batch)).full
        if size > LARGEST_TENSOR:
            raise Declined(
                f"the offline author's products index tensors in 32 bits, and one here has {size} elements"
            )

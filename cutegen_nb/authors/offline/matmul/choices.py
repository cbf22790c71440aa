"""Strategies that fit a product's shape, and the variant of the kernel after some of them."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.matmul.graph import MatrixProduct
from cutegen_nb.authors.offline.matmul.source import MatmulVariant, taken_to
from cutegen_nb.authors.offline.matmul.strategies import (
    BLOCK_STRATEGIES,
    BLOCKING,
    FEW_ROWS,
    FEW_ROWS_STRATEGY,
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
    SPLIT_IN_REGISTERS,
    SPLIT_IN_REGISTERS_STRATEGY,
    SPLIT_STRATEGY,
    TENSOR,
    TENSOR_STRATEGIES,
    THREE_PRODUCTS,
    TILE_STRATEGY,
    TILES,
    VECTORS,
    WGMMA,
)
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.strategy import Strategy

STEPS: dict[str, dict[str, object]] = {
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
    SPLIT_IN_REGISTERS: {"level": "split_in_registers"},
    ROWS: {"level": "rows"},
    ROW_VECTORS: {"level": "rows", "vectors": True},
    ROW_UNROLL: {"level": "rows", "vectors": True, "unrolled": True},
    FEW_ROWS: {"level": "few_rows"},
}
"""Changes of the variant by strategy name."""
BUT_HOPPER = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_100", "sm_103", "sm_120", "sm_121")
"""Architectures with mma.sync and without wgmma."""
_ON_EITHER = (SPLIT, SKIP)
"""Strategies for kernels on tensor cores and on CUDA cores."""

LARGEST_TENSOR = 2**31
"""Largest number of elements of a tensor: the compiler computes offsets in 32 bits."""
FEW_TILES = 128
"""Largest number of 128 × 128 tiles for split-K: with so few, a large GPU has idle multiprocessors."""
SMALLEST_MMA = 8
"""Smallest extent of an MMA: those of 16 × 8 × 8 and 16 × 8 × 16 have n = 8."""
FEWEST_OF_PARTS = 33
"""Fewest 128 × 128 tiles for which float32 is split into fp16 parts on Hopper, which costs a launch for each
operand. On an H200 512³, 16 tiles, takes 0.018 ms with them and 0.014 without; 1024 × 1024 × 4096, 64 tiles,
0.081 and, with split-K, 0.134 (``benchmarks/products.py``)."""
FEWEST_BESIDE_SPLIT = 24
"""The same for 16 bits where split-K, for which there is no kernel by wgmma, is the other choice. On an
H200 128 × 4096 × 4096, 32 tiles, takes 0.020 ms by wgmma and 0.025 with split-K; half the tiles leave three
quarters of the multiprocessors idle."""
LONG_ENOUGH = {"float16": 256, "bfloat16": 256, "float32": 64}
"""Smallest depth k for wgmma, by dtype: with a shorter one a tile takes longer to start and to store than to
multiply. 32768 × 32768 with k = 64 in float32 takes 1.62 ms by wgmma on an H200 and 2.36 by mma.sync, with
k = 32 1.65 and 1.63 (KernelBench 1/7, 1/9)."""
MUCH_WORK = 2**35
"""Multiplications and additions of the full size from which the simplest kernel is too slow to begin with."""
FEW_FOR_WEIGHTS = 256
"""Most rows of the smaller operand for which the larger is split in registers, once for each 128 of them.
With more the tensor cores have the most to do, and splitting beforehand costs less than once for each
tile."""
MANY_WEIGHTS = 8192
"""Fewest rows of that larger operand: 128 CTAs of 64 rows each read it."""
DEEP = 1024
"""Smallest depth k for split-K; a shallower product is not worth splitting."""
FEW = {"float16": 32, "bfloat16": 32, "float32": 16}
"""Most rows for which the other operand is read into registers, by dtype. Each CTA reads all of them."""
MANY = 1024
"""Fewest rows of that other operand: 64 CTAs of 16 rows each read it."""


def strategies_for(product: MatrixProduct) -> tuple[Strategy, ...]:
    """List the strategies for a product's shape, in order. Raises Declined for one that is too large."""
    _check_size(product)
    if is_vector_product(product):
        return ROW_STRATEGIES
    if has_few_rows(product):
        return (FEW_ROWS_STRATEGY,)
    more = [SKIP_STRATEGY] if product.triangle else []
    if wants_split(product):
        more.append(replace(SPLIT_STRATEGY, architectures=BUT_HOPPER if suits_wgmma(product) else ()))
    return (*(() if starts_tiled(product) else (TILE_STRATEGY,)), *_after_tiles(product), *more)


def _after_tiles(product: MatrixProduct) -> tuple[Strategy, ...]:
    """List the strategies that may follow tiles in shared memory, in order."""
    if not suits_tensor_cores(product):
        return BLOCK_STRATEGIES
    dtype = "float32" if product.operand_dtype == "float32" else "float16"
    if not suits_wgmma(product):
        return (TENSOR_STRATEGIES[dtype], MULTISTAGE_STRATEGY)
    # On Hopper mma.sync would stand in the way of wgmma, which is faster.
    others = tuple(
        replace(one, architectures=BUT_HOPPER) for one in (TENSOR_STRATEGIES[dtype], MULTISTAGE_STRATEGY)
    )
    more = (SPLIT_IN_REGISTERS_STRATEGY,) if suits_split_in_registers(product) else ()
    return (*HOPPER_STRATEGIES, *more, *others)


def variant_for(product: MatrixProduct, applied: tuple[str, ...]) -> MatmulVariant:
    """Return the variant with the strategies in `applied`. Raises Declined for an unknown one."""
    variant = MatmulVariant(level="tiled") if starts_tiled(product) else MatmulVariant()
    for name in applied:
        if name not in STEPS:
            raise Declined(
                f"the offline author does not know the strategy {name!r} for a matrix product; it knows "
                f"{', '.join(STEPS)}"
            )
        variant = _after(variant, name, product)
    return variant


def _after(variant: MatmulVariant, name: str, product: MatrixProduct) -> MatmulVariant:
    """Return the variant with one more strategy. A kernel on tensor cores stays there."""
    step = STEPS[name]
    if name == SPLIT_IN_REGISTERS:
        return taken_to(variant, step)
    if variant.level in ("wgmma", "three_products", "split_in_registers"):
        # It has every other step's gain already, but for empty tiles.
        return taken_to(variant, {key: value for key, value in step.items() if key == "skipping"})
    if name in _ON_EITHER and variant.level != "tensor":
        blocked = variant.level == "blocked" or not suits_tensor_cores(product)
        step = {**step, "level": "blocked" if blocked else "tensor"}
    elif variant.level == "tensor":
        step = {**step, "level": "tensor"}
    return taken_to(variant, step)


def starts_tiled(product: MatrixProduct) -> bool:
    """Return whether the first kernel has tiles in shared memory already, since the full size has much work.

    One thread an output took 0.3 s for 137 GFLOP on an H100, so that its verdict took a minute.
    """
    work = elements((product.m, product.n, product.k, product.batch)).full
    return work >= MUCH_WORK and not is_vector_product(product)


def is_vector_product(product: MatrixProduct) -> bool:
    """Return whether one operand is a vector and both are contiguous along k.

    Each element of the matrix is then used once, so the speed depends on loads and not on reuse.
    """
    return (product.m.is_one or product.n.is_one) and all(product.k_contiguous)


def has_few_rows(product: MatrixProduct) -> bool:
    """Return whether a large operand meets few rows, and both are contiguous along a k worth dividing."""
    few, many = sorted((product.m.full, product.n.full))
    contiguous = all(product.k_contiguous) and product.triangle is None
    return contiguous and few <= FEW[product.operand_dtype] and many >= MANY and product.k.full >= DEEP // 2


def suits_split_in_registers(product: MatrixProduct) -> bool:
    """Return whether a large operand, contiguous along k, meets so few rows that it takes longest to split.

    Splitting beforehand reads it, writes as much and lets the product read that: three times its bytes.
    """
    few, many = sorted((product.m.full, product.n.full))
    contiguous = product.k_contiguous[0 if product.m.full > product.n.full else 1]
    return (
        product.operand_dtype == "float32"
        and contiguous
        and product.triangle is None
        and few <= FEW_FOR_WEIGHTS
        and many >= MANY_WEIGHTS
    )


def suits_tensor_cores(product: MatrixProduct) -> bool:
    """Return whether no extent of the full size is below that of an MMA: most of its factors would be zeros.

    Every dtype that the products support has an MMA: float16, bfloat16, and float32 as three of TF32.
    """
    return min(product.m.full, product.n.full, product.k.full) >= SMALLEST_MMA


def fits_wgmma(product: MatrixProduct) -> bool:
    """Return whether a kernel by wgmma reaches all of the operands, and has a k long enough for its start."""
    # A tensor in two parts has twice the elements, and offsets are computed in 32 bits.
    operands = ((product.m, product.k), (product.n, product.k))
    fits = all(2 * elements((*one, product.batch)).full <= LARGEST_TENSOR for one in operands)
    return fits and product.k.full >= LONG_ENOUGH[product.operand_dtype]


def suits_wgmma(product: MatrixProduct) -> bool:
    """Return whether wgmma is the faster choice on Hopper: no extent is tiny, and there are tiles enough."""
    fewest = FEWEST_BESIDE_SPLIT if wants_split(product) else 1
    if product.operand_dtype == "float32":
        fewest = FEWEST_OF_PARTS
    return suits_tensor_cores(product) and fits_wgmma(product) and _tiles(product) >= fewest


def wants_split(product: MatrixProduct) -> bool:
    """Return whether the full size has too few tiles for a large GPU, and enough depth to share."""
    return _tiles(product) <= FEW_TILES and product.k.full >= DEEP


def _tiles(product: MatrixProduct) -> int:
    """Return the tiles of 128 × 128 of the full size, rounded up: −(−a // b) = ⌈a / b⌉."""
    return -(-product.m.full // 128) * -(-product.n.full // 128) * product.batch.full


def _check_size(product: MatrixProduct) -> None:
    for rows, columns in ((product.m, product.k), (product.n, product.k), (product.m, product.n)):
        size = elements((rows, columns, product.batch)).full
        if size > LARGEST_TENSOR:
            raise Declined(
                f"the offline author's products index tensors in 32 bits, and one here has {size} elements"
            )

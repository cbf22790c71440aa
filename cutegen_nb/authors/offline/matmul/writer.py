"""Writer of matrix products on CUDA cores with a fused epilogue, from a naive kernel to split-K.

fp32 stays fp32 (one FFMA a multiply-add). fp16 and bf16 are widened as they are staged, accumulated in fp32
and rounded once, when the output is stored.
"""

from __future__ import annotations

from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.authors.offline.matmul.graph import MatrixProduct, has_product
from cutegen_nb.authors.offline.matmul.source import MatmulVariant, product_of, source_of, taken_to
from cutegen_nb.authors.offline.writers import WrittenKernel
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import Library, LibraryFamily
from cutegen_nb.core.problem import Problem, ProblemFacts, WorkloadClass
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy

# Names of the strategies.
TILES = "shared-memory-tiles"
BLOCKING = "register-blocking"
VECTORS = "copies-128-bit"
PIPELINE = "double-buffered-tiles"
SPLIT = "split-k"
SKIP = "skip-zero-tiles"
ROWS = "cta-per-output"
ROW_VECTORS = "row-vectors-128-bit"
ROW_UNROLL = "row-vectors-in-flight"

_STEPS: dict[str, dict[str, object]] = {
    TILES: {"level": "tiled"},
    BLOCKING: {"level": "blocked"},
    VECTORS: {"level": "blocked", "vectors": True},
    PIPELINE: {"level": "blocked", "pipelined": True},
    SPLIT: {"level": "blocked", "pipelined": True, "split": True},
    SKIP: {"level": "blocked", "skipping": True},
    ROWS: {"level": "rows"},
    ROW_VECTORS: {"level": "rows", "vectors": True},
    ROW_UNROLL: {"level": "rows", "vectors": True, "unrolled": True},
}
"""Changes of the variant by strategy name."""

LARGEST_TENSOR = 2**31
"""Largest number of elements of a tensor: the compiler computes offsets in 32 bits."""
FEW_TILES = 128
"""Largest number of 128 × 128 tiles for split-K: with so few, a large GPU has idle multiprocessors."""
DEEP = 1024
"""Smallest depth k for split-K; a shallower product is not worth splitting."""


def _strategy(name: str, statement: str, effects: str, *needs: str) -> Strategy:
    """Build a strategy; `effects` are counters that go down, separated by spaces."""
    return Strategy(
        name=name,
        statement=statement,
        classes=(WorkloadClass.MATMUL, WorkloadClass.FUSED),
        bounds=(Bound.MEMORY, Bound.COMPUTE, Bound.LATENCY),
        preconditions=needs,
        effects=tuple(ExpectedEffect(counter=item, direction=Direction.DOWN) for item in effects.split()),
    )


PRODUCT_STRATEGIES = (
    _strategy(
        TILES,
        "Stage 16 × 16 tiles of A and B in shared memory, so that each element loaded from global memory "
        "serves 16 threads instead of one.",
        "gmem_load_sectors",
    ),
    _strategy(
        BLOCKING,
        "Give each thread a block of up to 8 × 8 outputs in registers and each CTA a tile of up to "
        "128 × 128: a value read from shared memory is used up to eight times, 128 bits a read.",
        "smem_wavefronts warp_instructions gmem_load_sectors",
    ),
    _strategy(
        VECTORS,
        "Copy tiles 128 bits at a time, pad shared memory against bank conflicts of transposed stores, and "
        "store four outputs at once.",
        "gmem_requests warp_instructions",
        "rows of 16-byte multiples; other shapes keep one element a copy",
    ),
    _strategy(
        PIPELINE,
        "Keep two tiles in shared memory and load the next one into registers while the present one is "
        "multiplied: one barrier a tile instead of two, and the load's latency is hidden.",
        "barriers latency_ms",
    ),
)
"""Strategies for a matrix product, in order."""

SPLIT_STRATEGY = _strategy(
    SPLIT,
    "Let several CTAs share the depth of one tile and add their partial sums in a second kernel, in a fixed "
    "order, so that a deep product with few tiles fills the GPU.",
    "latency_ms",
    "few tiles and a deep k",
)

SKIP_STRATEGY = _strategy(
    SKIP,
    "Do not multiply tiles of which the triangle that follows keeps nothing: nearly half of them.",
    "gmem_load_sectors warp_instructions",
    "a triangle (triu, tril) after the product",
)

ROW_STRATEGIES = (
    _strategy(
        ROWS,
        "Give each output to a whole CTA: neighbouring threads read neighbouring elements along k and add up "
        "through registers and shared memory.",
        "gmem_load_sectors",
    ),
    _strategy(
        ROW_VECTORS,
        "Load 128 bits a thread along k.",
        "gmem_requests warp_instructions",
        "rows of 16-byte multiples",
    ),
    _strategy(
        ROW_UNROLL,
        "Issue four vector loads of each operand before the first is used, so that more bytes are in flight.",
        "branches latency_ms",
    ),
)
"""Strategies for a matrix-vector product whose operands are contiguous along k, in order."""


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
        return (*PRODUCT_STRATEGIES, *more)

    def write(self, problem: Problem, facts: ProblemFacts, applied: tuple[str, ...]) -> WrittenKernel:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        _check_size(product_of(facts))
        variant = MatmulVariant()
        for name in applied:
            if name not in _STEPS:
                raise Declined(
                    f"the offline author does not know the strategy {name!r} for a matrix product; it knows "
                    f"{', '.join(_STEPS)}"
                )
            variant = taken_to(variant, _STEPS[name])
        built = constructor(problem)
        known = (*PRODUCT_STRATEGIES, SKIP_STRATEGY, SPLIT_STRATEGY, *ROW_STRATEGIES)
        last = next((item for item in known if applied and item.name == applied[-1]), None)
        source = source_of(facts, variant, built=built, title=_title(variant))
        return WrittenKernel(
            source=source, rationale=last.statement if last else "One output element a thread."
        )


_WORDS = {
    "naive": "one output element a thread",
    "tiled": "tiles staged in shared memory",
    "blocked": "a block of outputs in each thread's registers",
    "rows": "a CTA for each output of a matrix-vector product",
}


def _title(variant: MatmulVariant) -> str:
    """First line of the file."""
    words = [_WORDS[variant.level]]
    words += ["128-bit copies"] if variant.vectors else []
    words += ["double buffering"] if variant.pipelined else []
    words += ["split k"] if variant.split else []
    return f"A matrix product on CUDA cores: {', '.join(words)}."


def is_vector_product(product: MatrixProduct) -> bool:
    """Return whether one operand is a vector and both are contiguous along k.

    Each element of the matrix is then used once, so the speed depends on loads and not on reuse.
    """
    return (product.m.is_one or product.n.is_one) and all(product.k_contiguous)


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
